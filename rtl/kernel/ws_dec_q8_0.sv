// Block decoder, Q8_0: fp16 d, 32 signed bytes. w = q d. Activations are in this format too.
//
// Combinational; gives 0 while sel_i is low, so that the decoders' outputs are or-ed.
module ws_dec_q8_0 (
  input  logic                  sel_i,
  input  logic [8*ws_pkg::BytesQ8_0-1:0] blk_i,
  output ws_kernel_pkg::dec_t                  dec_o
);

  always_comb begin
    dec_o = '0;
    if (sel_i) begin
      dec_o.q     = blk_i[271:16];
      dec_o.d     = blk_i[15:0];
      dec_o.sc_lo = 8'sd1;
      dec_o.sc_hi = 8'sd1;
    end
  end

endmodule
