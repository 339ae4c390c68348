// Block decoder, Q3_K: 32 bytes of third bits, 64 bytes of 2-bit q, 12 bytes of 6-bit scales (one a
// 16 weights), fp16 d. w = (q - 4) (sc - 32) d, q with its third bit.
//
// In each half of the block, weight 32 j + l has its low bits in bits 2 j of byte l; weight 32 u +
// l of the block has its third bit in bit u of byte l. Scale i has its low 4 bits in a nibble of
// byte i mod 8 (high one from 8 on) and its high 2 in bits 2 (i / 4) of byte 8 + i mod 4.
// Combinational; gives 0 while sel_i is low, so that the decoders' outputs are or-ed.
module ws_dec_q3_k #(
  parameter int unsigned GroupBits = 1680
) (
  input  logic                 sel_i,
  input  logic [2:0]           unit_i,   // which 32 of the 256
  input  logic [GroupBits-1:0] blk_i,    // the block in its low bits
  output ws_kernel_pkg::dec_t                 dec_o
);

  logic unused_blk;
  assign unused_blk = ^blk_i;

  logic [255:0] half, third;
  logic [95:0]  scales;
  logic [3:0]   low_lo, low_hi;
  logic [1:0]   high_lo, high_hi;
  logic [63:0]  lows;
  logic [31:0]  highs;

  always_comb begin
    dec_o   = '0;
    half    = '0;
    third   = '0;
    scales  = '0;
    low_lo  = '0;
    low_hi  = '0;
    high_lo = '0;
    high_hi = '0;
    lows    = '0;
    highs   = '0;
    if (sel_i) begin
      half        = unit_i[2] ? blk_i[767:512] : blk_i[511:256];
      third       = ws_kernel_pkg::pick_bit(blk_i[255:0], unit_i);
      // The third bit counts -4 where it is clear: its inverse is the sign of a 3-bit number.
      dec_o.q     = ws_kernel_pkg::sext3(ws_kernel_pkg::pick_pair(half, unit_i[1:0])
                                         | ((third << 2) ^ {32{8'h04}}));
      dec_o.d     = blk_i[879:864];
      scales      = blk_i[863:768];
      // Scales 2 u and 2 u + 1 lie in neighbouring bytes.
      lows        = scales[63:0];
      highs       = scales[95:64];
      low_lo      = lows[{unit_i[1:0], 1'b0, unit_i[2], 2'b00} +: 4];
      low_hi      = lows[{unit_i[1:0], 1'b1, unit_i[2], 2'b00} +: 4];
      high_lo     = highs[{unit_i[0], 1'b0, unit_i[2:1], 1'b0} +: 2];
      high_hi     = highs[{unit_i[0], 1'b1, unit_i[2:1], 1'b0} +: 2];
      // Taking 32 away flips the top bit of a 6-bit two's complement number.
      dec_o.sc_lo = {{3{~high_lo[1]}}, high_lo[0], low_lo};
      dec_o.sc_hi = {{3{~high_hi[1]}}, high_hi[0], low_hi};
    end
  end

endmodule
