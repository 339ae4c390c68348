// What the kernel's modules share among themselves: the table of weight types, the decoded form of
// 32 weights, and byte-lane helpers.
//
// A weight type is added by one module ws_dec_<type>.sv, its line in ws_decode.sv and its row in
// each of the two tables here.
package ws_kernel_pkg;


  // ------------------------------------------------ decoded weights
  // 32 weights, w[i] = q[i] * sc * d + mn * m, with sc and mn of its half (lo: 0 to 15, hi: 16 to
  // 31). Formats without a minimum leave m and mn at 0; those that subtract it negate m.
  typedef struct packed {
    logic [5:0]        mn_hi;
    logic [5:0]        mn_lo;
    logic signed [7:0] sc_hi;
    logic signed [7:0] sc_lo;
    logic [15:0]       m;      // fp16
    logic [15:0]       d;      // fp16
    logic [255:0]      q;      // 32 signed bytes, weight 0 lowest
  } dec_t;

  // What a group of bytes on its way to the lanes is.
  typedef enum logic [1:0] {
    KindAct    = 2'd0,  // activations, to be stored
    KindWeight = 2'd1,  // weights
    KindFooter = 2'd2   // no bytes: the job ends here
  } kind_e;

  // ------------------------------------------------ table of weight types
  // Bytes in a block; 0 for a number that is no type.
  function automatic int unsigned block_bytes(input int unsigned weight_type);
    case (weight_type)
      ws_pkg::TypeQ4_0: block_bytes = ws_pkg::BytesQ4_0;
      ws_pkg::TypeQ4_1: block_bytes = ws_pkg::BytesQ4_1;
      ws_pkg::TypeQ5_0: block_bytes = ws_pkg::BytesQ5_0;
      ws_pkg::TypeQ5_1: block_bytes = ws_pkg::BytesQ5_1;
      ws_pkg::TypeQ8_0: block_bytes = ws_pkg::BytesQ8_0;
      ws_pkg::TypeQ2K: block_bytes = ws_pkg::BytesQ2K;
      ws_pkg::TypeQ3K: block_bytes = ws_pkg::BytesQ3K;
      ws_pkg::TypeQ4K: block_bytes = ws_pkg::BytesQ4K;
      ws_pkg::TypeQ5K: block_bytes = ws_pkg::BytesQ5K;
      ws_pkg::TypeQ6K: block_bytes = ws_pkg::BytesQ6K;
      default:  block_bytes = 0;
    endcase
  endfunction

  // Weights in a block.
  function automatic int unsigned block_weights(input int unsigned weight_type);
    case (weight_type)
      ws_pkg::TypeQ4_0: block_weights = ws_pkg::WeightsQ4_0;
      ws_pkg::TypeQ4_1: block_weights = ws_pkg::WeightsQ4_1;
      ws_pkg::TypeQ5_0: block_weights = ws_pkg::WeightsQ5_0;
      ws_pkg::TypeQ5_1: block_weights = ws_pkg::WeightsQ5_1;
      ws_pkg::TypeQ8_0: block_weights = ws_pkg::WeightsQ8_0;
      ws_pkg::TypeQ2K: block_weights = ws_pkg::WeightsQ2K;
      ws_pkg::TypeQ3K: block_weights = ws_pkg::WeightsQ3K;
      ws_pkg::TypeQ4K: block_weights = ws_pkg::WeightsQ4K;
      ws_pkg::TypeQ5K: block_weights = ws_pkg::WeightsQ5K;
      ws_pkg::TypeQ6K: block_weights = ws_pkg::WeightsQ6K;
      default:  block_weights = 0;
    endcase
  endfunction

  // ------------------------------------------------ what follows from it
  // Bytes that the realignment stage takes out of the stream in a cycle. At least a bus word for
  // every type: whole blocks where 32 weights are a block, even pieces where 256 are.
  function automatic int unsigned extract_bytes(input int unsigned bus_bytes);
    extract_bytes = bus_bytes <= 16 ? ws_pkg::BytesQ8_0 : bus_bytes == 32 ? 48 : 96;
  endfunction

  // log2 of the number of 32-weight blocks taken in a cycle.
  function automatic int unsigned log_blocks(input int unsigned weight_type,
                                             input int unsigned lanes, input int unsigned extract);
    log_blocks = 0;
    if (block_weights(weight_type) == 32) begin
      if (lanes >= 4 && block_bytes(weight_type) * 4 <= extract) log_blocks = 2;
      else if (lanes >= 2 && block_bytes(weight_type) * 2 <= extract) log_blocks = 1;
    end
  endfunction

  // Weights in a full group: a block of 256, or a block of 32 for each lane.
  function automatic int unsigned group_weights(input int unsigned weight_type,
                                                input int unsigned lanes);
    group_weights = block_weights(weight_type) == 256 ? 256 : 32 * lanes;
  endfunction

  // Pieces in which a full group is extracted.
  function automatic int unsigned group_pieces(input int unsigned weight_type,
                                               input int unsigned lanes,
                                               input int unsigned extract);
    group_pieces = block_weights(weight_type) == 256
                 ? (block_bytes(weight_type) + extract - 1) / extract
                 : lanes >> log_blocks(weight_type, lanes, extract);
  endfunction

  // Bytes of a full piece.
  function automatic int unsigned piece_bytes(input int unsigned weight_type,
                                              input int unsigned lanes,
                                              input int unsigned extract);
    piece_bytes = block_weights(weight_type) == 256
                ? (block_bytes(weight_type) > extract ? extract : block_bytes(weight_type))
                : block_bytes(weight_type) << log_blocks(weight_type, lanes, extract);
  endfunction

  // The most pieces of a group among the types of a mask and the activations.
  function automatic int unsigned most_pieces(input logic [15:0] types, input int unsigned lanes,
                                              input int unsigned extract);
    most_pieces = 1;
    for (int unsigned t = 0; t < 16; t++) begin
      if ((types[t] || t == ws_pkg::TypeQ8_0)
          && group_pieces(t, lanes, extract) > most_pieces) begin
        most_pieces = group_pieces(t, lanes, extract);
      end
    end
  endfunction

  // Width of an index into n things, at least 1.
  function automatic int unsigned index_width(input int unsigned n);
    index_width = n > 1 ? $clog2(n) : 1;
  endfunction

  // ------------------------------------------------ byte lanes
  // Low and high nibbles of 16 bytes as 32 bytes, as Q4_0, Q4_1, Q5_0 and Q5_1 have them.
  function automatic logic [255:0] nibbles(input logic [127:0] v);
    nibbles = {(v >> 4) & {16{8'h0F}}, v & {16{8'h0F}}};
  endfunction

  // Bit i of v as bit 4 of byte i.
  function automatic logic [255:0] fifth_bits(input logic [31:0] v);
    for (int i = 0; i < 32; i++) fifth_bits[8*i +: 8] = {3'b0, v[i], 4'b0};
  endfunction

  // Of each of 32 bytes a field of 2, 4 or 1 bits, number `index` from below, in its low bits.
  // Written as choices among fixed fields, lest a synthesizer share shifters between the formats.
  function automatic logic [255:0] pick_pair(input logic [255:0] v, input logic [1:0] index);
    unique case (index)
      2'd0: pick_pair = v & {32{8'h03}};
      2'd1: pick_pair = (v >> 2) & {32{8'h03}};
      2'd2: pick_pair = (v >> 4) & {32{8'h03}};
      2'd3: pick_pair = (v >> 6) & {32{8'h03}};
    endcase
  endfunction

  function automatic logic [255:0] pick_nibble(input logic [255:0] v, input logic index);
    pick_nibble = (index ? v >> 4 : v) & {32{8'h0F}};
  endfunction

  function automatic logic [255:0] pick_bit(input logic [255:0] v, input logic [2:0] index);
    unique case (index)
      3'd0: pick_bit = v & {32{8'h01}};
      3'd1: pick_bit = (v >> 1) & {32{8'h01}};
      3'd2: pick_bit = (v >> 2) & {32{8'h01}};
      3'd3: pick_bit = (v >> 3) & {32{8'h01}};
      3'd4: pick_bit = (v >> 4) & {32{8'h01}};
      3'd5: pick_bit = (v >> 5) & {32{8'h01}};
      3'd6: pick_bit = (v >> 6) & {32{8'h01}};
      3'd7: pick_bit = (v >> 7) & {32{8'h01}};
    endcase
  endfunction

  // Each byte's low 3, 4, 5 or 6 bits taken as a signed number; the bits above must be 0.
  function automatic logic [255:0] sext3(input logic [255:0] v);
    logic [255:0] s;
    s = v & {32{8'h04}};
    sext3 = v | (s << 1) | (s << 2) | (s << 3) | (s << 4) | (s << 5);
  endfunction

  function automatic logic [255:0] sext4(input logic [255:0] v);
    logic [255:0] s;
    s = v & {32{8'h08}};
    sext4 = v | (s << 1) | (s << 2) | (s << 3) | (s << 4);
  endfunction

  function automatic logic [255:0] sext5(input logic [255:0] v);
    logic [255:0] s;
    s = v & {32{8'h10}};
    sext5 = v | (s << 1) | (s << 2) | (s << 3);
  endfunction

  function automatic logic [255:0] sext6(input logic [255:0] v);
    logic [255:0] s;
    s = v & {32{8'h20}};
    sext6 = v | (s << 1) | (s << 2);
  endfunction

endpackage
