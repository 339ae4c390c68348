// Turns a group into issue slots of the lanes, one a cycle: for each step (Lanes times 32 weights)
// one slot a column, so that the weights are decoded once.
//
// The lanes behind it never stall. Slots that end a row, and the four slots of a footer, each
// produce a word; they are issued only when the result buffer is sure to have room for it. Weights
// wait until the activations issued before them are in the memory.
//
// Latency 0: the slot is a function of the group and this module's counters.
module ws_issue #(
  parameter int unsigned MaxCols = 4,
  parameter int unsigned Stride = 512,     // addresses of a column
  parameter int unsigned Credits = 64,     // words of the result buffer
  localparam int unsigned AddrW = ws_kernel_pkg::index_width(MaxCols * Stride),
  localparam int unsigned ColW = ws_kernel_pkg::index_width(MaxCols)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // Group.
  input  logic             valid_i,
  input  logic [1:0]       kind_i,
  input  logic             first_i,        // of the row
  input  logic             last_i,         // of the row
  input  logic             makes_i,        // the last step makes words; of a footer, each
  input  logic [2:0]       step_max_i,
  input  logic [AddrW-1:0] addr_i,
  input  logic [ColW-1:0]  col_max_i,
  output logic             done_o,

  // Slot.
  output logic             store_o,        // activations to be stored at addr_o
  output logic             weight_o,       // weights to be multiplied
  output logic             footer_o,       // footer word `word_o`
  output logic             fresh_o,        // the first slot of its weights
  output logic             first_o,        // of its row and column
  output logic             last_o,         // of its row and column
  output logic [2:0]       step_o,
  output logic [1:0]       word_o,
  output logic [ColW-1:0]  col_o,
  output logic [AddrW-1:0] addr_o,

  input  logic             store_busy_i,   // activations are on their way to the memory
  input  logic             word_pop_i      // a word has left the result buffer
);

  localparam int unsigned CreditW = $clog2(Credits + 1);

  logic [ColW-1:0]    col_q;
  logic [2:0]         step_q;              // of the block, or word of the footer
  logic [AddrW-1:0]   offset_q, offset_next;
  logic [CreditW-1:0] used_q;
  logic               room_q;
  logic               is_act, is_weight, is_footer, go, makes_word, col_last, step_last;

  assign is_act      = kind_i == ws_kernel_pkg::KindAct;
  assign is_weight   = kind_i == ws_kernel_pkg::KindWeight;
  assign is_footer   = kind_i == ws_kernel_pkg::KindFooter;
  assign col_last    = col_q == col_max_i;
  assign step_last   = step_q == step_max_i;
  assign makes_word  = makes_i && (step_last || is_footer);
  assign go          = valid_i && (!makes_word || room_q) && !(is_weight && store_busy_i);
  assign done_o      = go && col_last && step_last;
  assign offset_next = col_last ? AddrW'(step_q) + 1'b1 : offset_q + AddrW'(Stride);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      col_q    <= '0;
      step_q   <= '0;
      offset_q <= '0;
    end else if (go) begin
      col_q    <= col_last ? '0 : col_q + 1'b1;
      step_q   <= !col_last ? step_q : step_last ? '0 : step_q + 1'b1;
      offset_q <= col_last && step_last ? '0 : offset_next;
    end
  end

  // ------------------------------------------------ credits
  logic [CreditW-1:0] used_d;
  assign used_d = used_q + CreditW'(go && makes_word) - CreditW'(word_pop_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q <= '0;
      room_q <= 1'b1;
    end else begin
      used_q <= used_d;
      room_q <= used_d != CreditW'(Credits);
    end
  end

  assign store_o  = go && is_act;
  assign weight_o = go && is_weight;
  assign footer_o = go && is_footer;
  assign fresh_o  = col_q == '0;
  assign first_o  = first_i && step_q == '0;
  assign last_o   = last_i && step_last;
  assign step_o   = step_q;
  assign word_o   = step_q[1:0];
  assign col_o    = col_q;
  assign addr_o   = addr_i + offset_q;

`ifndef SYNTHESIS
  a_credits : assert property (@(posedge clk_i) disable iff (!rst_ni)
      used_q <= CreditW'(Credits) && !(word_pop_i && used_q == '0));
`endif

endmodule
