// Block decoder, Q5_K: fp16 d, fp16 dmin, 12 bytes of 6-bit scales and minima (one pair a 32
// weights), 32 bytes of fifth bits, 128 bytes of nibbles. w = q sc d - mn dmin.
//
// Each 32 bytes hold 64 weights: the first 32 in the low nibbles, the others in the high ones.
// Weight 32 u + l has its fifth bit in bit u of byte l.
// Combinational; gives 0 while sel_i is low, so that the decoders' outputs are or-ed.
module ws_dec_q5_k #(
  parameter int unsigned GroupBits = 1680
) (
  input  logic                 sel_i,
  input  logic [2:0]           unit_i,   // which 32 of the 256
  input  logic [GroupBits-1:0] blk_i,    // the block in its low bits
  output ws_kernel_pkg::dec_t                 dec_o
);

  logic unused_blk;
  assign unused_blk = ^blk_i;

  logic [5:0]   scale, minimum;
  logic [255:0] quarter, fifth;

  ws_dec_scales_k4 u_scales (
    .scales_i (blk_i[127:32]),
    .unit_i,
    .scale_o  (scale),
    .minimum_o(minimum)
  );

  always_comb begin
    dec_o   = '0;
    quarter = '0;
    fifth   = '0;
    if (sel_i) begin
      unique case (unit_i[2:1])
        2'd0: quarter = blk_i[384 +: 256];
        2'd1: quarter = blk_i[640 +: 256];
        2'd2: quarter = blk_i[896 +: 256];
        2'd3: quarter = blk_i[1152 +: 256];
      endcase
      fifth       = ws_kernel_pkg::pick_bit(blk_i[383:128], unit_i);
      dec_o.q     = ws_kernel_pkg::pick_nibble(quarter, unit_i[0]) | (fifth << 4);
      dec_o.d     = blk_i[15:0];
      dec_o.m     = {~blk_i[31], blk_i[30:16]};
      dec_o.sc_lo = {2'b00, scale};
      dec_o.sc_hi = {2'b00, scale};
      dec_o.mn_lo = minimum;
      dec_o.mn_hi = minimum;
    end
  end

endmodule
