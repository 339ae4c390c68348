// value_i times a 22-bit mantissa product, shifted left by 0 to 58: a term in units of 2^-48.
//
// Latency 4: two partial products, their sum, fine shift (0 to 15), coarse shift (0, 16, 32, 48).
// One a cycle. `valid_i` holds the valid bit of each stage's input, the first in bit 0.
module ws_mul_shift #(
  parameter int unsigned ValueWidth = 26,
  localparam int unsigned TermWidth = ValueWidth + 22 + 58
) (
  input  logic                         clk_i,
  input  logic [3:0]                   valid_i,
  input  logic signed [ValueWidth-1:0] value_i,
  input  logic [21:0]                  mant_i,
  input  logic [5:0]                   shift_i,
  output logic signed [TermWidth-1:0]  term_o
);

  localparam int unsigned ProdWidth = ValueWidth + 22;

  // The value is split at 17 bits, a DSP's unsigned operand; the mantissa fits the other operand.
  localparam int unsigned HighWidth = ValueWidth - 17;

  logic signed [40:0]            low_q;
  logic signed [HighWidth+22:0]  high_q;
  logic signed [ProdWidth-1:0]   prod_q;
  logic signed [ProdWidth+14:0]  fine_q;
  logic signed [TermWidth-1:0]   term_q;
  logic [5:0]                    shift1_q, shift2_q;
  logic [1:0]                    shift3_q;

  always_ff @(posedge clk_i) begin
    if (valid_i[0]) begin
      low_q    <= $signed({1'b0, value_i[16:0]}) * $signed({1'b0, mant_i});
      high_q   <= $signed(value_i[ValueWidth-1:17]) * $signed({1'b0, mant_i});
      shift1_q <= shift_i;
    end
    if (valid_i[1]) begin
      prod_q   <= ProdWidth'(low_q) + (ProdWidth'(high_q) <<< 17);
      shift2_q <= shift1_q;
    end
    if (valid_i[2]) begin
      fine_q   <= (ProdWidth + 15)'(prod_q) <<< shift2_q[3:0];
      shift3_q <= shift2_q[5:4];
    end
    if (valid_i[3]) begin
      unique case (shift3_q)
        2'd0: term_q <= TermWidth'(fine_q);
        2'd1: term_q <= TermWidth'(fine_q) <<< 16;
        2'd2: term_q <= TermWidth'(fine_q) <<< 32;
        2'd3: term_q <= TermWidth'(fine_q) <<< 48;
      endcase
    end
  end

  assign term_o = term_q;

endmodule
