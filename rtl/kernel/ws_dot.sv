// Dot product of 32 signed bytes, in two halves of 16, for formats with a scale a 16 weights.
//
// Latency 4: operands, products, sums of four, sums of sixteen. One dot product a cycle. `valid_i`
// holds the valid bit of each of the four stages' inputs, the first in bit 0.
module ws_dot (
  input  logic               clk_i,
  input  logic [3:0]         valid_i,
  input  logic [255:0]       a_i,
  input  logic [255:0]       b_i,
  output logic signed [19:0] lo_o,
  output logic signed [19:0] hi_o
);

  // Operand registers: the DSP's own, behind the memory's and the decoder's.
  logic [255:0] a_q, b_q;
  always_ff @(posedge clk_i) begin
    if (valid_i[0]) begin
      a_q <= a_i;
      b_q <= b_i;
    end
  end

  ws_dot16 u_lo (
    .clk_i, .valid_i(valid_i[3:1]), .a_i(a_q[127:0]), .b_i(b_q[127:0]), .sum_o(lo_o)
  );
  ws_dot16 u_hi (
    .clk_i, .valid_i(valid_i[3:1]), .a_i(a_q[255:128]), .b_i(b_q[255:128]), .sum_o(hi_o)
  );

endmodule
