// One lane's share of a group, decoded: whatever the format, 32 signed bytes with their scales.
//
// Of the blocks of 32 in a group the lane takes the one of its number; of a block of 256 it takes
// the 32 weights that step and lane name.
//
// Combinational; the outputs of the decoders are or-ed, of which one is selected.
module ws_decode #(
  parameter int unsigned ExtBytes = 34,
  parameter int unsigned Lanes = 1,
  parameter int unsigned Lane = 0,
  parameter logic [15:0] Types = 16'h7DCC,
  localparam int unsigned Pieces = ws_kernel_pkg::most_pieces(Types, Lanes, ExtBytes),
  localparam int unsigned GroupBits = 8 * ExtBytes * Pieces
) (
  input  logic [GroupBits-1:0] group_i,
  input  logic [3:0]           type_i,
  input  logic [2:0]           step_i,
  output ws_kernel_pkg::dec_t                 dec_o
);

  // First bit of this lane's block, for types of 32 weights a block: each piece of the group has
  // some whole blocks from its start on.
  function automatic int unsigned block_at(input int unsigned weight_type);
    block_at = 8 * (ExtBytes * (Lane >> ws_kernel_pkg::log_blocks(weight_type, Lanes, ExtBytes))
                    + ws_kernel_pkg::block_bytes(weight_type)
                    * (Lane % (1 << ws_kernel_pkg::log_blocks(weight_type, Lanes, ExtBytes))));
  endfunction

  logic [2:0] unit;  // which 32 of a block of 256
  logic       unused_unit;
  assign unit = 3'(step_i << $clog2(Lanes)) | 3'(Lane);
  assign unused_unit = ^unit;

  ws_kernel_pkg::dec_t q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k;

  if (Types[ws_pkg::TypeQ4_0]) begin : gen_q4_0
    ws_dec_q4_0 u_dec (
      .sel_i (type_i == ws_pkg::TypeQ4_0[3:0]),
      .blk_i (group_i[block_at(ws_pkg::TypeQ4_0) +: 8*ws_pkg::BytesQ4_0]),
      .dec_o (q4_0)
    );
  end else begin : gen_no_q4_0
    assign q4_0 = '0;
  end

  if (Types[ws_pkg::TypeQ4_1]) begin : gen_q4_1
    ws_dec_q4_1 u_dec (
      .sel_i (type_i == ws_pkg::TypeQ4_1[3:0]),
      .blk_i (group_i[block_at(ws_pkg::TypeQ4_1) +: 8*ws_pkg::BytesQ4_1]),
      .dec_o (q4_1)
    );
  end else begin : gen_no_q4_1
    assign q4_1 = '0;
  end

  if (Types[ws_pkg::TypeQ5_0]) begin : gen_q5_0
    ws_dec_q5_0 u_dec (
      .sel_i (type_i == ws_pkg::TypeQ5_0[3:0]),
      .blk_i (group_i[block_at(ws_pkg::TypeQ5_0) +: 8*ws_pkg::BytesQ5_0]),
      .dec_o (q5_0)
    );
  end else begin : gen_no_q5_0
    assign q5_0 = '0;
  end

  if (Types[ws_pkg::TypeQ5_1]) begin : gen_q5_1
    ws_dec_q5_1 u_dec (
      .sel_i (type_i == ws_pkg::TypeQ5_1[3:0]),
      .blk_i (group_i[block_at(ws_pkg::TypeQ5_1) +: 8*ws_pkg::BytesQ5_1]),
      .dec_o (q5_1)
    );
  end else begin : gen_no_q5_1
    assign q5_1 = '0;
  end

  // Activations come in this format, so it is always there.
  ws_dec_q8_0 u_q8_0 (
    .sel_i(type_i == ws_pkg::TypeQ8_0[3:0]),
    .blk_i(group_i[block_at(ws_pkg::TypeQ8_0) +: 8*ws_pkg::BytesQ8_0]),
    .dec_o(q8_0)
  );

  if (Types[ws_pkg::TypeQ2K]) begin : gen_q2_k
    ws_dec_q2_k #(.GroupBits(GroupBits)) u_dec (
      .sel_i (type_i == ws_pkg::TypeQ2K[3:0]),
      .unit_i(unit),
      .blk_i (group_i),
      .dec_o (q2_k)
    );
  end else begin : gen_no_q2_k
    assign q2_k = '0;
  end

  if (Types[ws_pkg::TypeQ3K]) begin : gen_q3_k
    ws_dec_q3_k #(.GroupBits(GroupBits)) u_dec (
      .sel_i (type_i == ws_pkg::TypeQ3K[3:0]),
      .unit_i(unit),
      .blk_i (group_i),
      .dec_o (q3_k)
    );
  end else begin : gen_no_q3_k
    assign q3_k = '0;
  end

  if (Types[ws_pkg::TypeQ4K]) begin : gen_q4_k
    ws_dec_q4_k #(.GroupBits(GroupBits)) u_dec (
      .sel_i (type_i == ws_pkg::TypeQ4K[3:0]),
      .unit_i(unit),
      .blk_i (group_i),
      .dec_o (q4_k)
    );
  end else begin : gen_no_q4_k
    assign q4_k = '0;
  end

  if (Types[ws_pkg::TypeQ5K]) begin : gen_q5_k
    ws_dec_q5_k #(.GroupBits(GroupBits)) u_dec (
      .sel_i (type_i == ws_pkg::TypeQ5K[3:0]),
      .unit_i(unit),
      .blk_i (group_i),
      .dec_o (q5_k)
    );
  end else begin : gen_no_q5_k
    assign q5_k = '0;
  end

  if (Types[ws_pkg::TypeQ6K]) begin : gen_q6_k
    ws_dec_q6_k #(.GroupBits(GroupBits)) u_dec (
      .sel_i (type_i == ws_pkg::TypeQ6K[3:0]),
      .unit_i(unit),
      .blk_i (group_i),
      .dec_o (q6_k)
    );
  end else begin : gen_no_q6_k
    assign q6_k = '0;
  end

  assign dec_o = q4_0 | q4_1 | q5_0 | q5_1 | q8_0
               | q2_k | q3_k | q4_k | q5_k | q6_k;

endmodule
