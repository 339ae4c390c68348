// Dot product of 16 signed bytes. Latency 3 (products, sums of four, sum), one a cycle. `valid_i`
// holds the valid bit of each stage's input, the first in bit 0.
module ws_dot16 (
  input  logic               clk_i,
  input  logic [2:0]         valid_i,
  input  logic [127:0]       a_i,
  input  logic [127:0]       b_i,
  output logic signed [19:0] sum_o
);

  logic signed [17:0] quad0, quad1, quad2, quad3;

  ws_dot4 u_dot4_0 (
    .clk_i, .valid_i(valid_i[1:0]), .a_i(a_i[0 +: 32]), .b_i(b_i[0 +: 32]), .sum_o(quad0)
  );
  ws_dot4 u_dot4_1 (
    .clk_i, .valid_i(valid_i[1:0]), .a_i(a_i[32 +: 32]), .b_i(b_i[32 +: 32]), .sum_o(quad1)
  );
  ws_dot4 u_dot4_2 (
    .clk_i, .valid_i(valid_i[1:0]), .a_i(a_i[64 +: 32]), .b_i(b_i[64 +: 32]), .sum_o(quad2)
  );
  ws_dot4 u_dot4_3 (
    .clk_i, .valid_i(valid_i[1:0]), .a_i(a_i[96 +: 32]), .b_i(b_i[96 +: 32]), .sum_o(quad3)
  );

  logic signed [19:0] sum_q;
  always_ff @(posedge clk_i) begin
    if (valid_i[2]) sum_q <= (20'(quad0) + 20'(quad1)) + (20'(quad2) + 20'(quad3));
  end
  assign sum_o = sum_q;

endmodule
