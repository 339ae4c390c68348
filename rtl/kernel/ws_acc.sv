// Sums the lanes' terms and accumulates them, exactly, in a 128-bit fixed-point number a column.
//
// Slots of one row and column may follow each other directly or with other columns between. The sum
// so far is fetched a cycle ahead, past the memory if it is being written, so that the loop is one
// 128-bit add and a choice. Words of the footer pass through in their place among the results.
//
// Latency log2(Lanes) + 2. One slot a cycle.
module ws_acc #(
  parameter int unsigned Lanes = 1,
  parameter int unsigned MaxCols = 4,
  parameter int unsigned TermWidth = 107,
  localparam int unsigned ColW = ws_kernel_pkg::index_width(MaxCols),
  localparam int unsigned Levels = $clog2(Lanes)
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,

  input  logic                            valid_i,    // of the terms
  input  logic [Lanes-1:0][TermWidth-1:0] term_i,     // signed
  input  logic [Lanes-1:0]                bad_i,
  // The slot these terms belong to, Levels cycles after them.
  input  logic                            slot_valid_i,
  input  logic                            footer_i,   // no terms: a footer word
  input  logic [1:0]                      word_i,
  input  logic                            first_i,
  input  logic                            last_i,
  input  logic [ColW-1:0]                 col_i,

  output logic                            valid_o,    // a sum, or a footer word
  output logic                            footer_o,
  output logic [1:0]                      word_o,
  output logic signed [127:0]             sum_o,
  output logic                            bad_o       // a scale in the sum is inf or NaN
);

  // ------------------------------------------------ lanes
  localparam int unsigned JoinWidth = TermWidth + Levels;

  logic signed [JoinWidth-1:0] join_term;
  logic                        join_bad;

  if (Lanes == 1) begin : gen_one
    logic unused_valid;
    assign unused_valid = valid_i;
    assign join_term    = term_i[0];
    assign join_bad     = bad_i[0];
  end else if (Lanes == 2) begin : gen_two
    always_ff @(posedge clk_i) begin
      if (valid_i) begin
        join_term <= JoinWidth'($signed(term_i[0])) + JoinWidth'($signed(term_i[1]));
        join_bad  <= |bad_i;
      end
    end
  end else begin : gen_four
    logic signed [TermWidth:0] low_q, high_q;
    logic                      bad_q, valid_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) valid_q <= 1'b0;
      else valid_q <= valid_i;
      if (valid_i) begin
        low_q  <= (TermWidth + 1)'($signed(term_i[0])) + (TermWidth + 1)'($signed(term_i[1]));
        high_q <= (TermWidth + 1)'($signed(term_i[2])) + (TermWidth + 1)'($signed(term_i[3]));
        bad_q  <= |bad_i;
      end
      if (valid_q) begin
        join_term <= JoinWidth'(low_q) + JoinWidth'(high_q);
        join_bad  <= bad_q;
      end
    end
  end

  // ------------------------------------------------ accumulator
  logic [128:0]          held_q [MaxCols];  // bad, sum
  logic                  valid_q, first_q, last_q, footer_q, bad_q, base_bad_q;
  logic [1:0]            word_q;
  logic [ColW-1:0]       col_q;
  logic [127:0]          term_q, base_q, sum;
  logic                  sum_bad, slot;

  assign slot    = slot_valid_i && !footer_i;
  assign sum     = base_q + term_q;
  assign sum_bad = base_bad_q || bad_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      footer_q <= 1'b0;
      valid_o  <= 1'b0;
    end else begin
      valid_q  <= slot;
      footer_q <= slot_valid_i && footer_i;
      valid_o  <= (valid_q && last_q) || footer_q;
    end
    if (slot) begin
      term_q  <= 128'(join_term);
      bad_q   <= join_bad;
      col_q   <= col_i;
      first_q <= first_i;
      last_q  <= last_i;
      if (first_i) {base_bad_q, base_q} <= '0;
      else if (valid_q && col_q == col_i) {base_bad_q, base_q} <= {sum_bad, sum};
      else {base_bad_q, base_q} <= held_q[col_i];
    end
    if (valid_q) held_q[col_q] <= {sum_bad, sum};
    if (valid_q && last_q) begin
      sum_o <= sum;
      bad_o <= sum_bad;
    end
    footer_o <= footer_q;
    if (slot_valid_i) word_q <= word_i;
    if (footer_q) word_o <= word_q;
  end

  logic unused_first;
  assign unused_first = first_q;

endmodule
