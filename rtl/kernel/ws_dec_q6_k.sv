// Block decoder, Q6_K: 128 bytes of low nibbles, 64 bytes of high 2-bit parts, 16 signed bytes of
// scales (one a 16 weights), fp16 d. w = (q - 32) sc d.
//
// In each half of the block, weight 32 j + l has its nibble in byte 32 (j mod 2) + l (low nibble
// for j < 2, high otherwise) and its high part in bits 2 j of byte l.
// Combinational; gives 0 while sel_i is low, so that the decoders' outputs are or-ed.
module ws_dec_q6_k #(
  parameter int unsigned GroupBits = 1680
) (
  input  logic                 sel_i,
  input  logic [2:0]           unit_i,   // which 32 of the 256
  input  logic [GroupBits-1:0] blk_i,    // the block in its low bits
  output ws_kernel_pkg::dec_t                 dec_o
);

  logic unused_blk;
  assign unused_blk = ^blk_i;

  logic [255:0] low, high;
  logic [127:0] scales;
  logic [15:0]  pair;

  always_comb begin
    dec_o  = '0;
    low    = '0;
    high   = '0;
    scales = '0;
    pair   = '0;
    if (sel_i) begin
      unique case ({unit_i[2], unit_i[0]})
        2'd0: low = blk_i[0 +: 256];
        2'd1: low = blk_i[256 +: 256];
        2'd2: low = blk_i[512 +: 256];
        2'd3: low = blk_i[768 +: 256];
      endcase
      high        = unit_i[2] ? blk_i[1535:1280] : blk_i[1279:1024];
      scales      = blk_i[1663:1536];
      pair        = scales[{unit_i, 4'b0000} +: 16];
      dec_o.q     = ws_kernel_pkg::sext6((ws_kernel_pkg::pick_nibble(low, unit_i[1])
                                          | (ws_kernel_pkg::pick_pair(high, unit_i[1:0]) << 4))
                                         ^ {32{8'h20}});
      dec_o.d     = blk_i[1679:1664];
      dec_o.sc_lo = pair[7:0];
      dec_o.sc_hi = pair[15:8];
    end
  end

endmodule
