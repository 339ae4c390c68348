// The stream-to-memory writer. It cuts the stream into bursts as it comes: a burst closes when
// it is full, at a 4 KiB boundary, at the end of a packet or of a buffer. Only closed bursts are
// put on AXI, so a write once begun never waits for the stream. A descriptor is complete when the
// responses to all its bursts have come.
//
// Latency: 4 cycles from a burst's last beat to its address on AXI; its data follow the address.
// Throughput: a beat a cycle.
module ws_dma_s2mm #(
  parameter int unsigned BusWidth  = 128,
  parameter int unsigned MaxBurst  = 16,  // beats, a power of two; MaxBurst bus words <= 4 KiB
  parameter int unsigned FifoDepth = 64,  // beats, a power of two, at least 2 * MaxBurst
  localparam int unsigned BusBytes = BusWidth / 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  // Control
  input  logic                run_i,
  input  logic                halted_i,
  output logic                quiet_o,
  output logic                idle_o,
  output ws_dma_pkg::err_t dma_err_o,
  output ws_dma_pkg::err_t sg_err_o,
  output logic                mark_o,       // an error that no write-back tells of, at `mark_ptr_o`
  output ws_dma_pkg::desc_ptr_t mark_ptr_o,
  // Descriptors
  input  logic                desc_valid_i,
  /* verilator lint_off UNUSEDSIGNAL */
  input  ws_dma_pkg::desc_t desc_i,       // `eof` is the host's to say for MM2S alone
  /* verilator lint_on UNUSEDSIGNAL */
  output logic                desc_ready_o,
  // Status write-backs
  output logic                update_valid_o,
  output ws_dma_pkg::update_t update_o,
  input  logic                update_ready_i,
  input  logic                retire_i,
  // AXI4 write channels
  output logic [63:0]         awaddr_o,
  output logic [7:0]          awlen_o,
  output logic                awvalid_o,
  input  logic                awready_i,
  output logic [BusWidth-1:0] wdata_o,
  output logic [BusBytes-1:0] wstrb_o,
  output logic                wlast_o,
  output logic                wvalid_o,
  input  logic                wready_i,
  input  logic [1:0]          bresp_i,
  input  logic                bvalid_i,
  output logic                bready_o,
  // AXI4-Stream
  input  logic [BusWidth-1:0] s_axis_tdata_i,
  input  logic [BusBytes-1:0] s_axis_tkeep_i,
  input  logic                s_axis_tlast_i,
  input  logic                s_axis_tvalid_i,
  output logic                s_axis_tready_o
);
  localparam int unsigned ByteBits  = $clog2(BusBytes);
  localparam int unsigned BurstBits = $clog2(MaxBurst);
  localparam int unsigned RoomBits  = $clog2(FifoDepth) + 1;
  localparam int unsigned MaxWrites = 16;
  localparam int unsigned MaxSegs   = 8;
  localparam int unsigned MaxDescs  = 16;

  // What a burst tells of its descriptor when it is its last
  typedef struct packed {
    logic        last;
    logic        sof;
    logic        eof;
    logic [25:0] bytes;
  } outcome_t;

  typedef struct packed {
    outcome_t             outcome;
    logic [BurstBits-1:0] len;      // beats less one
    logic [63:ByteBits]   addr;
  } seg_t;

  // ---------------------------------------------------------------------------------------------
  // A register for the stream's beat. It keeps a beat for the next descriptor over a halt.
  // ---------------------------------------------------------------------------------------------
  logic                in_valid_q, in_last_q;
  logic [BusWidth-1:0] in_data_q;
  logic [BusBytes-1:0] in_keep_q;
  logic [ByteBits:0]   in_bytes_q;    // that it counts: all, or those kept in a packet's last beat
  logic                can_take, can_beat, beat;

  function automatic logic [ByteBits:0] kept(input logic [BusBytes-1:0] keep);
    kept = '0;
    for (int unsigned i = 0; i < BusBytes; i++) kept = kept + (ByteBits+1)'(keep[i]);
  endfunction

  assign s_axis_tready_o = can_take && (!in_valid_q || can_beat);
  assign beat            = in_valid_q && can_beat;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) in_valid_q <= 1'b0;
    else if (s_axis_tvalid_i && s_axis_tready_o) in_valid_q <= 1'b1;
    else if (beat) in_valid_q <= 1'b0;
    if (s_axis_tvalid_i && s_axis_tready_o) begin
      in_data_q  <= s_axis_tdata_i;
      in_keep_q  <= s_axis_tkeep_i;
      in_last_q  <= s_axis_tlast_i;
      in_bytes_q <= s_axis_tlast_i ? kept(s_axis_tkeep_i) : (ByteBits+1)'(BusBytes);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Taking descriptors
  // ---------------------------------------------------------------------------------------------
  logic               cur_valid_q;
  logic [63:ByteBits] cur_addr_q;
  logic [25:0]        cur_left_q;     // bytes left in the buffer
  logic               cur_much_q;     // more than a word of them
  logic [25-ByteBits:0] cur_beats_q;  // beats taken
  ws_dma_pkg::desc_ptr_t cur_ptr_q;
  logic               cur_sof_q;      // a packet began in this descriptor
  logic               in_packet_q;    // the next beat is not a packet's first
  ws_dma_pkg::err_t fail_q;         // what the channel will halt with
  logic               fail_told_q;    // the failed descriptor's status is on its way
  logic               over_q;         // the packet does not fit the current descriptor's last word
  logic [4:0]         pend_q;         // descriptors taken and not yet written back
  logic               drained;        // no burst is closed or on AXI
  logic               free_q;         // the next may be taken
  logic               ready, take, take_bad, take_mark;

  // A descriptor that cannot be carried out waits at the head until all before it have ended.
  assign ready     = desc_valid_i && free_q && (fail_q == '0);
  assign take      = ready && (desc_i.err == '0) && !desc_i.bad && (pend_q != 5'(MaxDescs));
  assign take_bad  = ready && (desc_i.err == '0) && desc_i.bad && drained;
  assign take_mark = ready && (desc_i.err != '0) && drained && (pend_q == '0);

  assign desc_ready_o = take || take_bad || take_mark;
  assign mark_o       = take_mark;
  assign mark_ptr_o   = desc_i.ptr;
  assign sg_err_o     = take_mark ? desc_i.err : '0;

  // ---------------------------------------------------------------------------------------------
  // Beats to bursts
  // ---------------------------------------------------------------------------------------------
  logic [63:ByteBits]   seg_addr_q;
  logic [BurstBits-1:0] seg_len_q;    // beats in the open burst
  logic [RoomBits-1:0]  room_q;
  logic                 fits, fills, finish, close, wpop;
  logic                 seg_push_q;
  seg_t                 seg_new_q, seg_head;
  logic                 seg_valid;
  logic [$clog2(MaxSegs+1)-1:0] segs;

  // A pushed burst is counted a cycle later, so one entry stays free.
  assign can_take   = cur_valid_q && run_i && (fail_q == '0) && !over_q;
  assign can_beat   = can_take && (room_q != '0) && (segs < 4'(MaxSegs - 1));
  assign fits       = cur_much_q || (cur_left_q[ByteBits:0] >= in_bytes_q);
  assign fills      = !cur_much_q && (cur_left_q[ByteBits:0] == in_bytes_q);
  assign finish     = beat && fits && (in_last_q || fills);
  assign close      = finish || (beat && fits && ((&cur_addr_q[11:ByteBits]) || (&seg_len_q)));

  always_ff @(posedge clk_i) begin
    seg_push_q <= close;
    if (take) begin
      cur_addr_q   <= desc_i.addr[63:ByteBits];
      cur_left_q   <= desc_i.length;
      cur_much_q   <= desc_i.length > 26'(BusBytes);
      cur_beats_q  <= '0;
      cur_ptr_q    <= desc_i.ptr;
      cur_sof_q    <= 1'b0;
    end else if (beat) begin
      cur_addr_q <= cur_addr_q + 1'b1;
      // A beat of less than a word is the buffer's last.
      cur_left_q  <= cur_left_q - 26'(BusBytes);
      cur_much_q  <= cur_left_q > 26'(2 * BusBytes);
      cur_beats_q <= cur_beats_q + 1'b1;
      cur_sof_q  <= cur_sof_q || !in_packet_q;
      if (seg_len_q == '0) seg_addr_q <= cur_addr_q;
    end
    if (close) begin
      seg_new_q.addr          <= (seg_len_q == '0) ? cur_addr_q : seg_addr_q;
      seg_new_q.len           <= seg_len_q;
      seg_new_q.outcome.last  <= finish;
      seg_new_q.outcome.sof   <= cur_sof_q || !in_packet_q;
      seg_new_q.outcome.eof   <= in_last_q;
      seg_new_q.outcome.bytes <= {cur_beats_q, {ByteBits{1'b0}}} + 26'(in_bytes_q);
    end
  end

  always_ff @(posedge clk_i) begin
    free_q <= run_i && rst_ni && !cur_valid_q && !desc_ready_o;
    if (!rst_ni) in_packet_q <= 1'b0;
    else if (beat) in_packet_q <= !in_last_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || halted_i) begin
      cur_valid_q <= 1'b0;
      seg_len_q   <= '0;
      over_q      <= 1'b0;
      room_q      <= RoomBits'(FifoDepth);
    end else begin
      if (take) cur_valid_q <= 1'b1;
      if (beat) begin
        if (finish) cur_valid_q <= 1'b0;
        seg_len_q <= close ? '0 : seg_len_q + 1'b1;
        over_q    <= !fits;
      end
      if (beat || wpop) room_q <= room_q - RoomBits'(beat && fits) + RoomBits'(wpop);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Write address
  // ---------------------------------------------------------------------------------------------
  logic [$clog2(MaxWrites+1)-1:0] writes;
  logic                           writes_out, issue;
  outcome_t                       outcome;  // of the oldest burst in flight
  logic                           bvalid_q;
  ws_dma_pkg::err_t berr_q;

  assign issue   = seg_valid && run_i && (fail_q == '0) && !awvalid_o &&
                   (writes != 5'(MaxWrites));
  assign drained = !seg_valid && !seg_push_q && !writes_out;

  ws_dma_fifo #(
    .Width($bits(seg_new_q)),
    .Depth(MaxSegs)
  ) u_segs (
    .clk_i,
    .rst_ni,
    .clear_i(halted_i),
    .push_i (seg_push_q),
    .data_i (seg_new_q),
    .pop_i  (issue),
    .valid_o(seg_valid),
    .data_o (seg_head),
    .count_o(segs)
  );

  always_ff @(posedge clk_i) begin
    if (issue) begin
      awaddr_o <= {seg_head.addr, {ByteBits{1'b0}}};
      awlen_o  <= 8'(seg_head.len);
    end
    if (!rst_ni) awvalid_o <= 1'b0;
    else if (issue) awvalid_o <= 1'b1;
    else if (awready_i) awvalid_o <= 1'b0;
  end

  ws_dma_fifo #(
    .Width($bits(outcome)),
    .Depth(MaxWrites)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (issue),
    .data_i (seg_head.outcome),
    .pop_i  (bvalid_q),
    .valid_o(writes_out),
    .data_o (outcome),
    .count_o(writes)
  );

  // ---------------------------------------------------------------------------------------------
  // Write data: a burst's data follows its accepted address
  // ---------------------------------------------------------------------------------------------
  logic [4:0] bursts_q;  // bursts whose address is taken and whose data is not yet all sent
  logic       data_valid;

  assign wvalid_o = data_valid && (bursts_q != '0);
  assign wpop     = wvalid_o && wready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) bursts_q <= '0;
    else if (awvalid_o || wvalid_o) begin
      bursts_q <= bursts_q + 5'(awvalid_o && awready_i) - 5'(wpop && wlast_o);
    end
  end

  ws_dma_stream_fifo #(
    .BusWidth(BusWidth),
    .Depth   (FifoDepth)
  ) u_data (
    .clk_i,
    .rst_ni,
    .clear_i(halted_i),
    .push_i (beat && fits),
    .data_i (in_data_q),
    .keep_i (in_keep_q),
    .last_i (close),
    .pop_i  (wpop),
    .valid_o(data_valid),
    .data_o (wdata_o),
    .keep_o (wstrb_o),
    .last_o (wlast_o)
  );

  // ---------------------------------------------------------------------------------------------
  // Completion and failure
  // ---------------------------------------------------------------------------------------------
  ws_dma_pkg::desc_ptr_t begun_ptr, fail_ptr_q;
  logic       begun_valid, complete, tell_fail;
  ws_dma_pkg::update_t update_q;
  logic       update_push_q;
  logic [4:0] updates_q;  // status words not yet in memory

  assign bready_o  = 1'b1;
  assign complete  = bvalid_q && outcome.last && (fail_q == '0) && (berr_q == '0);
  assign tell_fail = (fail_q != '0) && !fail_told_q && !writes_out;

  always_ff @(posedge clk_i) begin
    bvalid_q <= bvalid_i && rst_ni;
    if (bvalid_i) berr_q <= ws_dma_pkg::resp_err(bresp_i);
  end

  ws_dma_fifo #(
    .Width($bits(begun_ptr)),
    .Depth(MaxDescs)
  ) u_begun (
    .clk_i,
    .rst_ni,
    .clear_i(halted_i),
    .push_i (take),
    .data_i (desc_i.ptr),
    .pop_i  (complete),
    .valid_o(begun_valid),
    .data_o (begun_ptr),
    .count_o()
  );

  always_ff @(posedge clk_i) begin
    update_push_q <= 1'b0;
    if (complete) begin
      update_push_q <= 1'b1;
      update_q      <= {begun_ptr, outcome.eof,
                        ws_dma_pkg::StatusCmplt | 32'({outcome.sof, outcome.eof, outcome.bytes})};
    end else if (tell_fail) begin
      update_push_q <= 1'b1;
      update_q      <= {fail_ptr_q, 1'b0, ws_dma_pkg::StatusCmplt | {1'b0, fail_q, 28'd0}};
    end
  end

  ws_dma_fifo #(
    .Width($bits(update_q)),
    .Depth(MaxDescs)
  ) u_updates (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (update_push_q),
    .data_i (update_q),
    .pop_i  (update_ready_i),
    .valid_o(update_valid_o),
    .data_o (update_o),
    .count_o()
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      updates_q <= '0;
      pend_q    <= '0;
    end else begin
      if (complete || tell_fail || retire_i) begin
        updates_q <= updates_q + 5'(complete || tell_fail) - 5'(retire_i);
      end
      if (halted_i) pend_q <= '0;
      else if (take || take_bad || retire_i) pend_q <= pend_q + 5'(take || take_bad) - 5'(retire_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || halted_i) begin
      fail_q      <= '0;
      fail_told_q <= 1'b0;
    end else if (fail_q == '0) begin
      if (bvalid_q && (berr_q != '0)) begin
        fail_q     <= berr_q;
        fail_ptr_q <= begun_ptr;
      end else if (take_bad) begin
        fail_q.int_err <= 1'b1;
        fail_ptr_q     <= desc_i.ptr;
      end else if (over_q && drained) begin
        fail_q.int_err <= 1'b1;
        fail_ptr_q     <= cur_ptr_q;
      end
    end else if (tell_fail) begin
      fail_told_q <= 1'b1;
    end
  end

  // Halting with the error is the last thing, once the failed descriptor's status is in memory.
  assign dma_err_o = (fail_told_q && (updates_q == '0)) ? fail_q : '0;
  assign quiet_o   = !writes_out && (updates_q == '0) && ((fail_q == '0) || fail_told_q);
  assign idle_o    = pend_q == '0;

`ifndef SYNTHESIS
  a_write_asked : assert property (@(posedge clk_i) disable iff (!rst_ni)
      bvalid_q |-> writes_out && (begun_valid || (fail_q != '0)))
      else $error("a response that nothing asked for");
`endif

endmodule
