// Block decoder, Q4_0: fp16 d, 16 bytes of nibbles (weight i low, i + 16 high in byte i).
// w = (q - 8) d.
//
// Combinational; gives 0 while sel_i is low, so that the decoders' outputs are or-ed.
module ws_dec_q4_0 (
  input  logic                  sel_i,
  input  logic [8*ws_pkg::BytesQ4_0-1:0] blk_i,
  output ws_kernel_pkg::dec_t                  dec_o
);

  always_comb begin
    dec_o = '0;
    if (sel_i) begin
      dec_o.q     = ws_kernel_pkg::sext4(ws_kernel_pkg::nibbles(blk_i[143:16]) ^ {32{8'h08}});
      dec_o.d     = blk_i[15:0];
      dec_o.sc_lo = 8'sd1;
      dec_o.sc_hi = 8'sd1;
    end
  end

endmodule
