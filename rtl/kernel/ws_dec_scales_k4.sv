// The 12 bytes of 6-bit scales and minima that Q4_K and Q5_K share: pair `unit_i` of the eight.
//
// Pairs 0 to 3: scale in bytes 0 to 3, minimum in bytes 4 to 7 (low 6 bits). Pairs 4 to 7: low 4
// bits of scale and minimum in the nibbles of bytes 8 to 11, high 2 bits on top of bytes 0 to 7.
// Combinational.
module ws_dec_scales_k4 (
  input  logic [95:0] scales_i,
  input  logic [2:0]  unit_i,
  output logic [5:0]  scale_o,
  output logic [5:0]  minimum_o
);

  logic [7:0] a, b, c;
  always_comb begin
    unique case (unit_i[1:0])
      2'd0: {c, b, a} = {scales_i[71:64], scales_i[39:32], scales_i[7:0]};
      2'd1: {c, b, a} = {scales_i[79:72], scales_i[47:40], scales_i[15:8]};
      2'd2: {c, b, a} = {scales_i[87:80], scales_i[55:48], scales_i[23:16]};
      2'd3: {c, b, a} = {scales_i[95:88], scales_i[63:56], scales_i[31:24]};
    endcase
  end

  assign scale_o   = unit_i[2] ? {a[7:6], c[3:0]} : a[5:0];
  assign minimum_o = unit_i[2] ? {b[7:6], c[7:4]} : b[5:0];

endmodule
