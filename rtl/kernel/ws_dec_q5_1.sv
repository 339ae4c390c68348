// Block decoder, Q5_1: fp16 d, fp16 m, 32 fifth bits, 16 bytes of nibbles (weight i low, i + 16
// high in byte i). w = q d + m.
//
// Combinational; gives 0 while sel_i is low, so that the decoders' outputs are or-ed.
module ws_dec_q5_1 (
  input  logic                  sel_i,
  input  logic [8*ws_pkg::BytesQ5_1-1:0] blk_i,
  output ws_kernel_pkg::dec_t                  dec_o
);

  always_comb begin
    dec_o = '0;
    if (sel_i) begin
      dec_o.q     = ws_kernel_pkg::nibbles(blk_i[191:64]) | ws_kernel_pkg::fifth_bits(blk_i[63:32]);
      dec_o.d     = blk_i[15:0];
      dec_o.m     = blk_i[31:16];
      dec_o.mn_lo = 6'd1;
      dec_o.mn_hi = 6'd1;
      dec_o.sc_lo = 8'sd1;
      dec_o.sc_hi = 8'sd1;
    end
  end

endmodule
