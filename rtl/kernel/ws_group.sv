// Gathers the pieces of a block, so that formats that carry their scales last need no special care,
// and holds what the lanes work on.
//
// Two buffers: pieces fill one while the lanes read the other; the last piece of a block goes
// straight into the second. Blocks that come in one piece pass through the second alone.
//
// Latency 1 cycle from the last piece. Throughput: a piece a cycle while the reader keeps up.
module ws_group #(
  parameter int unsigned ExtBytes = 34,
  parameter int unsigned Pieces = 7,
  parameter int unsigned UserWidth = 1,
  localparam int unsigned PieceW = Pieces > 1 ? $clog2(Pieces) : 1
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic                         valid_i,
  output logic                         ready_o,
  input  logic [8*ExtBytes-1:0]        raw_i,
  input  logic [PieceW-1:0]            piece_i,
  input  logic                         piece_last_i,
  input  logic [UserWidth-1:0]         user_i,

  output logic                         valid_o,
  output logic [Pieces*8*ExtBytes-1:0] group_o,
  output logic [UserWidth-1:0]         user_o,
  input  logic                         done_i      // the reader needs the group no longer
);

  logic                 valid_q, load;
  logic [UserWidth-1:0] user_q;

  assign ready_o = !piece_last_i || !valid_q || done_i;
  assign load    = valid_i && piece_last_i && (!valid_q || done_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (load) valid_q <= 1'b1;
    else if (done_i) valid_q <= 1'b0;
    if (load) user_q <= user_i;
  end

  // Whole vectors, so that the readers see one variable.
  logic [Pieces*8*ExtBytes-1:0] fill_q, group_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < Pieces; p++) begin
      if (valid_i && !piece_last_i && piece_i == PieceW'(p)) begin
        fill_q[8*ExtBytes*p +: 8*ExtBytes] <= raw_i;
      end
      if (load && piece_i == PieceW'(p)) begin
        group_q[8*ExtBytes*p +: 8*ExtBytes] <= raw_i;
      end else if (load && piece_i > PieceW'(p)) begin
        group_q[8*ExtBytes*p +: 8*ExtBytes] <= fill_q[8*ExtBytes*p +: 8*ExtBytes];
      end
    end
  end

  assign group_o = group_q;
  assign valid_o = valid_q;
  assign user_o  = user_q;

`ifndef SYNTHESIS
  a_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_q && !done_i |=> valid_q && $stable(user_q));
`endif

endmodule
