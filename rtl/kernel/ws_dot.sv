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

  logic signed [7:0][17:0] quad;
  for (genvar i = 0; i < 8; i++) begin : gen_dot4
    ws_dot4 u_dot4 (
      .clk_i,
      .mul_i(valid_i[1]),
      .add_i(valid_i[2]),
      .a_i  (a_q[32*i +: 32]),
      .b_i  (b_q[32*i +: 32]),
      .sum_o(quad[i])
    );
  end

  logic signed [19:0] lo_q, hi_q;
  always_ff @(posedge clk_i) begin
    if (valid_i[3]) begin
      lo_q <= (20'($signed(quad[0])) + 20'($signed(quad[1])))
            + (20'($signed(quad[2])) + 20'($signed(quad[3])));
      hi_q <= (20'($signed(quad[4])) + 20'($signed(quad[5])))
            + (20'($signed(quad[6])) + 20'($signed(quad[7])));
    end
  end

  assign lo_o = lo_q;
  assign hi_o = hi_q;

endmodule
