// One lane's share of a group, decoded: whatever the format, 32 signed bytes with their scales.
//
// Blocks of 32 lie in the group one behind the other; the lane takes the one of its number modulo
// the blocks in a group. Of a block of 256 it takes the 32 weights that step and lane name.
//
// Combinational; the outputs of the decoders are or-ed, of which one is selected.
module ws_decode
  import ws_pkg::*;
  import ws_kernel_pkg::*;
#(
  parameter int unsigned ExtBytes = 34,
  parameter int unsigned Lanes = 1,
  parameter int unsigned Lane = 0,
  parameter logic [15:0] Types = 16'h7DCC,
  localparam int unsigned GroupBits = 8 * ExtBytes * most_pieces(Types, ExtBytes)
) (
  input  logic [GroupBits-1:0] group_i,
  input  logic [3:0]           type_i,
  input  logic [2:0]           step_i,
  output dec_t                 dec_o
);

  // First bit of this lane's block, for types of 32 weights a block.
  function automatic int unsigned block_at(input int unsigned weight_type);
    block_at = 8 * block_bytes(weight_type)
             * (Lane % (1 << log_blocks(weight_type, Lanes, ExtBytes)));
  endfunction

  // The last piece of the largest block ends before the group does.
  logic unused_group;
  assign unused_group = ^group_i;

  logic [2:0] unit;
  assign unit = 3'(step_i << $clog2(Lanes)) | 3'(Lane);

  dec_t [15:0] dec;

  for (genvar t = 0; t < 16; t++) begin : gen_type
    // Activations come as Q8_0, so that decoder is always there.
    localparam bit Built = (Types[t] || t == TypeQ8_0) && block_bytes(t) != 0;
    localparam int unsigned At = block_weights(t) == 32 ? block_at(t) : 0;
    localparam int unsigned Bits = 8 * block_bytes(t);
    logic sel;
    assign sel = type_i == 4'(t);
    if (!Built) begin : gen_none
      logic unused_sel;
      assign unused_sel = sel;
      assign dec[t] = '0;
    end else if (t == TypeQ4_0) begin : gen_q4_0
      ws_dec_q4_0 u_dec (.sel_i(sel), .blk_i(group_i[At +: Bits]), .dec_o(dec[t]));
    end else if (t == TypeQ4_1) begin : gen_q4_1
      ws_dec_q4_1 u_dec (.sel_i(sel), .blk_i(group_i[At +: Bits]), .dec_o(dec[t]));
    end else if (t == TypeQ5_0) begin : gen_q5_0
      ws_dec_q5_0 u_dec (.sel_i(sel), .blk_i(group_i[At +: Bits]), .dec_o(dec[t]));
    end else if (t == TypeQ5_1) begin : gen_q5_1
      ws_dec_q5_1 u_dec (.sel_i(sel), .blk_i(group_i[At +: Bits]), .dec_o(dec[t]));
    end else if (t == TypeQ8_0) begin : gen_q8_0
      ws_dec_q8_0 u_dec (.sel_i(sel), .blk_i(group_i[At +: Bits]), .dec_o(dec[t]));
    end else if (t == TypeQ2_K) begin : gen_q2_k
      ws_dec_q2_k u_dec (.sel_i(sel), .unit_i(unit), .blk_i(group_i[Bits-1:0]), .dec_o(dec[t]));
    end else if (t == TypeQ3_K) begin : gen_q3_k
      ws_dec_q3_k u_dec (.sel_i(sel), .unit_i(unit), .blk_i(group_i[Bits-1:0]), .dec_o(dec[t]));
    end else if (t == TypeQ4_K) begin : gen_q4_k
      ws_dec_q4_k u_dec (.sel_i(sel), .unit_i(unit), .blk_i(group_i[Bits-1:0]), .dec_o(dec[t]));
    end else if (t == TypeQ5_K) begin : gen_q5_k
      ws_dec_q5_k u_dec (.sel_i(sel), .unit_i(unit), .blk_i(group_i[Bits-1:0]), .dec_o(dec[t]));
    end else if (t == TypeQ6_K) begin : gen_q6_k
      ws_dec_q6_k u_dec (.sel_i(sel), .unit_i(unit), .blk_i(group_i[Bits-1:0]), .dec_o(dec[t]));
    end
  end

  always_comb begin
    dec_o = '0;
    for (int t = 0; t < 16; t++) dec_o = dec_o | dec[t];
  end

endmodule
