// Puts the footer's words in place of the rounder's in the footer's slots, and watches for NaN.
//
// Combinational from the rounder to `word_o`, a word a cycle. The job's cycles are taken at its first
// footer word.
module ws_footer (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [63:0] now_i,

  input  logic        valid_i,
  input  logic        footer_i,        // footer word `word_i`, else a result
  input  logic [1:0]  word_i,
  input  logic [31:0] float_i,

  input  logic [31:0] tag_i,
  input  logic [31:0] status_i,        // without NONFINITE
  input  logic [63:0] start_i,

  output logic [31:0] word_o,
  output logic        last_o,
  output logic        done_o,          // the job's footer is complete
  output logic [31:0] status_o         // its status, with done_o
);

  logic        nan_q;
  logic [63:0] cycles_q;

  assign status_o = status_i | (nan_q ? ws_pkg::StatusNonfinite : '0);
  assign last_o   = footer_i && word_i == 2'd3;
  assign done_o   = valid_i && last_o;

  always_comb begin
    word_o = float_i;
    if (footer_i) begin
      unique case (word_i)
        2'd0: word_o = tag_i;
        2'd1: word_o = status_o;
        2'd2: word_o = cycles_q[31:0];
        2'd3: word_o = cycles_q[63:32];
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) nan_q <= 1'b0;
    else if (done_o) nan_q <= 1'b0;
    else if (valid_i && !footer_i && float_i == ws_pkg::ResultNan) nan_q <= 1'b1;
    if (valid_i && footer_i && word_i == 2'd0) cycles_q <= now_i - start_i;
  end

endmodule
