// Block decoder, Q2_K: 16 bytes of scales (low nibble: scale, high: minimum, one a 16 weights),
// 64 bytes of 2-bit q, fp16 d, fp16 dmin. w = q sc d - mn dmin.
//
// In each half of the block, weight 32 j + l is in bits 2 j of byte l.
// Combinational; gives 0 while sel_i is low, so that the decoders' outputs are or-ed.
module ws_dec_q2_k #(
  parameter int unsigned GroupBits = 1680
) (
  input  logic                 sel_i,
  input  logic [2:0]           unit_i,   // which 32 of the 256
  input  logic [GroupBits-1:0] blk_i,    // the block in its low bits
  output ws_kernel_pkg::dec_t                 dec_o
);

  logic unused_blk;
  assign unused_blk = ^blk_i;

  logic [255:0] half;
  logic [127:0] scales;
  logic [15:0]  pair;

  always_comb begin
    dec_o  = '0;
    half   = '0;
    scales = '0;
    pair   = '0;
    if (sel_i) begin
      half        = unit_i[2] ? blk_i[639:384] : blk_i[383:128];
      scales      = blk_i[127:0];
      pair        = scales[{unit_i, 4'b0000} +: 16];
      dec_o.q     = ws_kernel_pkg::pick_pair(half, unit_i[1:0]);
      dec_o.d     = blk_i[655:640];
      dec_o.m     = {~blk_i[671], blk_i[670:656]};
      dec_o.sc_lo = {4'b0000, pair[3:0]};
      dec_o.sc_hi = {4'b0000, pair[11:8]};
      dec_o.mn_lo = {2'b00, pair[7:4]};
      dec_o.mn_hi = {2'b00, pair[15:12]};
    end
  end

endmodule
