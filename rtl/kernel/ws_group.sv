// Gathers the pieces of a group and holds what the lanes work on, so that formats that carry their
// scales last, or more lanes than blocks come in a cycle, need no special care.
//
// Two buffers: pieces fill one while the lanes read the other; the last piece of a group goes
// straight into the second. Groups that come in one piece pass through the second alone.
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

  // ------------------------------------------------ skid
  // One piece is kept when the second buffer turns out to be busy, so that ready_o is a register.
  localparam int unsigned InWidth = 8 * ExtBytes + PieceW + 1 + UserWidth;

  logic                  ready_q, in_valid, in_ready, piece_last;
  logic [InWidth-1:0]    skid_q;
  logic [8*ExtBytes-1:0] raw;
  logic [PieceW-1:0]     piece;
  logic [UserWidth-1:0]  user;

  assign ready_o  = ready_q;
  assign in_valid = valid_i || !ready_q;
  assign {raw, piece, piece_last, user} = ready_q ? {raw_i, piece_i, piece_last_i, user_i} : skid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ready_q <= 1'b1;
    else ready_q <= in_ready || !in_valid;
    if (ready_q && valid_i) skid_q <= {raw_i, piece_i, piece_last_i, user_i};
  end

  // ------------------------------------------------ buffers
  logic                 valid_q, load;
  logic [UserWidth-1:0] user_q;

  assign in_ready = !piece_last || !valid_q || done_i;
  assign load     = in_valid && piece_last && in_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (load) valid_q <= 1'b1;
    else if (done_i) valid_q <= 1'b0;
    if (load) user_q <= user;
  end

  // Whole vectors, so that the readers see one variable.
  logic [Pieces*8*ExtBytes-1:0] fill_q, group_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < Pieces; p++) begin
      if (in_valid && !piece_last && piece == PieceW'(p)) begin
        fill_q[8*ExtBytes*p +: 8*ExtBytes] <= raw;
      end
      // Whenever no group stands there, whether or not one is whole: the enable comes late.
      if (!valid_q || done_i) begin
        group_q[8*ExtBytes*p +: 8*ExtBytes] <= piece == PieceW'(p) ? raw
                                             : fill_q[8*ExtBytes*p +: 8*ExtBytes];
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
