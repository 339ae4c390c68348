// Four products of signed bytes and their sum. Latency 2 (products, sum), one a cycle. `valid_i`
// holds the valid bit of each stage's input, the first in bit 0.
module ws_dot4 (
  input  logic               clk_i,
  input  logic [1:0]         valid_i,
  input  logic [31:0]        a_i,
  input  logic [31:0]        b_i,
  output logic signed [17:0] sum_o
);

  logic signed [15:0] p0_q, p1_q, p2_q, p3_q;
  logic signed [17:0] sum_q;

  always_ff @(posedge clk_i) begin
    if (valid_i[0]) begin
      p0_q <= $signed(a_i[7:0]) * $signed(b_i[7:0]);
      p1_q <= $signed(a_i[15:8]) * $signed(b_i[15:8]);
      p2_q <= $signed(a_i[23:16]) * $signed(b_i[23:16]);
      p3_q <= $signed(a_i[31:24]) * $signed(b_i[31:24]);
    end
    if (valid_i[1]) sum_q <= (18'(p0_q) + 18'(p1_q)) + (18'(p2_q) + 18'(p3_q));
  end

  assign sum_o = sum_q;

endmodule
