// The stream-to-memory writer. It cuts the stream into bursts as it comes: a burst closes when
// it is full, at a 4 KiB boundary, at the end of a packet or of a buffer. Only closed bursts are
// put on AXI, so a write once begun never waits for the stream. A descriptor is complete when the
// responses to all its bursts have come.
module ws_dma_s2mm
  import ws_dma_pkg::*;
#(
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
  output err_t                dma_err_o,
  output err_t                sg_err_o,
  output logic                mark_o,       // an error that no write-back tells of, at `mark_ptr_o`
  output desc_ptr_t           mark_ptr_o,
  // Descriptors
  input  logic                desc_valid_i,
  /* verilator lint_off UNUSEDSIGNAL */
  input  desc_t               desc_i,       // `eof` is the host's to say for MM2S alone
  /* verilator lint_on UNUSEDSIGNAL */
  output logic                desc_ready_o,
  // Status write-backs
  output logic                update_valid_o,
  output update_t             update_o,
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
    logic [63:ByteBits]   addr;
    logic [BurstBits-1:0] len;      // beats less one
    outcome_t             outcome;
  } seg_t;

  // ---------------------------------------------------------------------------------------------
  // Taking descriptors
  // ---------------------------------------------------------------------------------------------
  logic               cur_valid_q;
  logic [63:ByteBits] cur_addr_q;
  logic [25:0]        cur_length_q, cur_left_q;
  desc_ptr_t          cur_ptr_q;
  logic               cur_sof_q;
  err_t               fail_q;         // what the channel will halt with
  logic               fail_told_q;    // the failed descriptor's status is on its way
  logic               over_q;         // the packet does not fit the current descriptor's last word
  logic [4:0]         pend_q;         // descriptors taken and not yet written back
  logic               in_packet_q;    // the next beat is not a packet's first
  logic               drained;        // no burst is closed or on AXI
  logic               beat, fits, close, finish;
  logic               ready, bad, take, take_bad, take_mark;
  logic [25:0]        need, left_after;

  assign bad   = (desc_i.length == '0) || (desc_i.addr[ByteBits-1:0] != '0);
  assign ready = desc_valid_i && run_i && !cur_valid_q && (fail_q == '0);

  // A descriptor that cannot be carried out waits at the head until all before it have ended.
  assign take      = ready && (desc_i.err == '0) && !bad && (pend_q != 5'(MaxDescs));
  assign take_bad  = ready && (desc_i.err == '0) && bad && drained;
  assign take_mark = ready && (desc_i.err != '0) && drained && (pend_q == '0);

  assign desc_ready_o = take || take_bad || take_mark;
  assign mark_o       = take_mark;
  assign mark_ptr_o   = desc_i.ptr;
  assign sg_err_o     = take_mark ? desc_i.err : '0;

  always_ff @(posedge clk_i) begin
    if (take) begin
      cur_addr_q   <= desc_i.addr[63:ByteBits];
      cur_length_q <= desc_i.length;
      cur_left_q   <= desc_i.length;
      cur_ptr_q    <= desc_i.ptr;
    end else if (beat) begin
      cur_addr_q   <= cur_addr_q + 1'b1;
      cur_left_q   <= left_after;
    end
    if (take) cur_sof_q <= 1'b0;
    else if (beat && !in_packet_q) cur_sof_q <= 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || halted_i) cur_valid_q <= 1'b0;
    else if (take) cur_valid_q <= 1'b1;
    else if (finish) cur_valid_q <= 1'b0;
  end

  // ---------------------------------------------------------------------------------------------
  // Beats to bursts
  // ---------------------------------------------------------------------------------------------
  logic [63:ByteBits]   seg_addr_q;
  logic [BurstBits-1:0] seg_len_q;    // beats in the open burst
  logic [RoomBits-1:0]  room_q;
  logic                 page_end, wpop;
  logic [$clog2(MaxSegs+1)-1:0] segs;
  logic [ByteBits:0]    kept;
  seg_t                 seg_new, seg_head;
  logic                 seg_valid;

  always_comb begin
    kept = '0;
    for (int unsigned i = 0; i < BusBytes; i++) kept = kept + (ByteBits+1)'(s_axis_tkeep_i[i]);
  end

  assign s_axis_tready_o = cur_valid_q && run_i && (fail_q == '0) && !over_q &&
                           (room_q != '0) && (segs != 4'(MaxSegs));
  assign beat       = s_axis_tvalid_i && s_axis_tready_o;
  assign need       = s_axis_tlast_i ? 26'(kept) : 26'(BusBytes);
  assign fits       = cur_left_q >= need;
  assign left_after = cur_left_q - need;
  assign finish     = beat && fits && (s_axis_tlast_i || (left_after == '0));
  assign page_end   = &cur_addr_q[11:ByteBits];
  assign close      = finish || (beat && fits && (page_end || (&seg_len_q)));

  always_comb begin
    seg_new               = '0;
    seg_new.addr          = (seg_len_q == '0) ? cur_addr_q : seg_addr_q;
    seg_new.len           = seg_len_q;
    seg_new.outcome.last  = finish;
    seg_new.outcome.sof   = cur_sof_q || !in_packet_q;
    seg_new.outcome.eof   = s_axis_tlast_i;
    seg_new.outcome.bytes = cur_length_q - left_after;
  end

  always_ff @(posedge clk_i) begin
    if (beat && (seg_len_q == '0)) seg_addr_q <= cur_addr_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) in_packet_q <= 1'b0;
    else if (beat) in_packet_q <= !s_axis_tlast_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || halted_i) begin
      seg_len_q <= '0;
      over_q    <= 1'b0;
      room_q    <= RoomBits'(FifoDepth);
    end else begin
      if (close) seg_len_q <= '0;
      else if (beat) seg_len_q <= seg_len_q + 1'b1;
      if (beat && !fits) over_q <= 1'b1;
      room_q <= room_q - RoomBits'(beat && fits) + RoomBits'(wpop);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Write address
  // ---------------------------------------------------------------------------------------------
  logic [$clog2(MaxWrites+1)-1:0] writes;
  logic                           writes_out, issue;
  outcome_t                       outcome;  // of the oldest burst in flight

  assign issue   = seg_valid && run_i && (fail_q == '0) && !awvalid_o &&
                   (writes != 5'(MaxWrites));
  assign drained = !seg_valid && !writes_out;

  ws_dma_fifo #(
    .Width($bits(seg_t)),
    .Depth(MaxSegs)
  ) u_segs (
    .clk_i,
    .rst_ni,
    .clear_i(halted_i),
    .push_i (close),
    .data_i (seg_new),
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
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) awvalid_o <= 1'b0;
    else if (issue) awvalid_o <= 1'b1;
    else if (awready_i) awvalid_o <= 1'b0;
  end

  ws_dma_fifo #(
    .Width($bits(outcome_t)),
    .Depth(MaxWrites)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (issue),
    .data_i (seg_head.outcome),
    .pop_i  (bvalid_i),
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
    else bursts_q <= bursts_q + 5'(awvalid_o && awready_i) - 5'(wpop && wlast_o);
  end

  ws_dma_ram_fifo #(
    .Width(BusWidth + BusBytes + 1),
    .Depth(FifoDepth)
  ) u_data (
    .clk_i,
    .rst_ni,
    .clear_i(halted_i),
    .push_i (beat && fits),
    .data_i ({close, s_axis_tkeep_i, s_axis_tdata_i}),
    .pop_i  (wpop),
    .valid_o(data_valid),
    .data_o ({wlast_o, wstrb_o, wdata_o})
  );

  // ---------------------------------------------------------------------------------------------
  // Completion and failure
  // ---------------------------------------------------------------------------------------------
  desc_ptr_t begun_ptr, fail_ptr_q;
  logic      begun_valid, complete, tell_fail;
  err_t      resp;
  update_t   update;

  assign bready_o  = 1'b1;
  assign resp      = bvalid_i ? resp_err(bresp_i) : '0;
  assign complete  = bvalid_i && outcome.last && (fail_q == '0) && (resp == '0);
  assign tell_fail = (fail_q != '0) && !fail_told_q && !writes_out;

  ws_dma_fifo #(
    .Width($bits(desc_ptr_t)),
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

  always_comb begin
    update        = '0;
    update.ptr    = tell_fail ? fail_ptr_q : begun_ptr;
    update.eof    = !tell_fail && outcome.eof;
    update.status = StatusCmplt;
    if (tell_fail) update.status[30:28] = fail_q;
    else update.status[27:0] = {outcome.sof, outcome.eof, outcome.bytes};
  end

  ws_dma_fifo #(
    .Width($bits(update_t)),
    .Depth(MaxDescs)
  ) u_updates (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (complete || tell_fail),
    .data_i (update),
    .pop_i  (update_valid_o && update_ready_i),
    .valid_o(update_valid_o),
    .data_o (update_o),
    .count_o()
  );

  logic [4:0] updates_q;  // status words not yet in memory

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      updates_q <= '0;
      pend_q    <= '0;
    end else begin
      updates_q <= updates_q + 5'(complete || tell_fail) - 5'(retire_i);
      if (halted_i) pend_q <= '0;
      else pend_q <= pend_q + 5'(take || take_bad) - 5'(retire_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || halted_i) begin
      fail_q      <= '0;
      fail_told_q <= 1'b0;
    end else begin
      if (fail_q == '0) begin
        if (resp != '0) begin
          fail_q     <= resp;
          fail_ptr_q <= begun_ptr;
        end else if (take_bad) begin
          fail_q.int_err <= 1'b1;
          fail_ptr_q     <= desc_i.ptr;
        end else if (over_q && drained) begin
          fail_q.int_err <= 1'b1;
          fail_ptr_q     <= cur_ptr_q;
        end
      end
      if (tell_fail) fail_told_q <= 1'b1;
    end
  end

  // Halting with the error is the last thing, once the failed descriptor's status is in memory.
  assign dma_err_o = (fail_told_q && (updates_q == '0)) ? fail_q : '0;
  assign quiet_o   = !writes_out && (updates_q == '0) && ((fail_q == '0) || fail_told_q);
  assign idle_o    = quiet_o && !cur_valid_q;

  assert property (@(posedge clk_i) disable iff (!rst_ni)
    bvalid_i |-> writes_out && (begun_valid || (fail_q != '0)))
    else $error("a write response without a write");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    awvalid_o && !awready_i |=> awvalid_o && $stable({awaddr_o, awlen_o}))
    else $error("AW changed before AWREADY");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    wvalid_o && !wready_i |=> wvalid_o && $stable({wdata_o, wstrb_o, wlast_o}))
    else $error("W changed before WREADY");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    room_q <= RoomBits'(FifoDepth)) else $error("room in the data FIFO lost count");

endmodule
