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
  assign a = scales_i[{2'b00, unit_i[1:0], 3'b000} +: 8];
  assign b = scales_i[7'd32 + {2'b00, unit_i[1:0], 3'b000} +: 8];
  assign c = scales_i[7'd64 + {2'b00, unit_i[1:0], 3'b000} +: 8];

  assign scale_o   = unit_i[2] ? {a[7:6], c[3:0]} : a[5:0];
  assign minimum_o = unit_i[2] ? {b[7:6], c[7:4]} : b[5:0];

endmodule
