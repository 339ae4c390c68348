// The memory-to-stream reader. It turns descriptors into bursts that end where MaxBurst beats begin
// in memory, so never cross 4 KiB, as many in flight as the data FIFO has room for, so that memory
// latency is hidden and every beat that comes is taken at once. A descriptor is complete when its
// last beat is read.
//
// Latency: 3 cycles from a descriptor to its first read on AXI, 4 from data to the stream.
// Throughput: a beat a cycle, a read every 2 cycles.
module ws_dma_mm2s #(
  parameter int unsigned BusWidth  = 128,
  parameter int unsigned MaxBurst  = 64,   // beats, a power of two; MaxBurst bus words <= 4 KiB
  parameter int unsigned FifoDepth = 256,  // beats, a power of two, at least 2 * MaxBurst
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
  input  ws_dma_pkg::desc_t desc_i,
  output logic                desc_ready_o,
  // Status write-backs
  output logic                update_valid_o,
  output ws_dma_pkg::update_t update_o,
  input  logic                update_ready_i,
  input  logic                retire_i,
  // AXI4 read channels
  output logic [63:0]         araddr_o,
  output logic [7:0]          arlen_o,
  output logic                arvalid_o,
  input  logic                arready_i,
  input  logic [BusWidth-1:0] rdata_i,
  input  logic [1:0]          rresp_i,
  input  logic                rlast_i,
  input  logic                rvalid_i,
  output logic                rready_o,
  // AXI4-Stream
  output logic [BusWidth-1:0] m_axis_tdata_o,
  output logic [BusBytes-1:0] m_axis_tkeep_o,
  output logic                m_axis_tlast_o,
  output logic                m_axis_tvalid_o,
  input  logic                m_axis_tready_i
);
  localparam int unsigned ByteBits  = $clog2(BusBytes);
  localparam int unsigned BeatBits  = 26 - ByteBits + 1;  // beats of the longest descriptor
  localparam int unsigned BurstBits = $clog2(MaxBurst) + 1;
  localparam int unsigned RoomBits  = $clog2(FifoDepth) + 1;
  localparam int unsigned MaxReads  = 16;
  localparam int unsigned MaxDescs  = 16;

  typedef struct packed {
    ws_dma_pkg::desc_ptr_t ptr;
    logic [25:0]         length;
    logic                eof;
    logic [BusBytes-1:0] keep;         // of its last beat
  } begun_t;

  // ---------------------------------------------------------------------------------------------
  // Taking descriptors
  // ---------------------------------------------------------------------------------------------
  logic                 cur_valid_q;
  logic [63:ByteBits]   cur_addr_q;
  logic [BeatBits-1:0]  cur_left_q;
  ws_dma_pkg::err_t fail_q;        // what the channel will halt with
  logic                 fail_told_q;   // the failed descriptor's status is on its way
  logic [4:0]           pend_q;        // descriptors taken and not yet written back
  logic                 reads_out, issue;
  logic [BurstBits-1:0] burst_q;       // beats of the next read
  logic                 issue_last;    // it is its descriptor's last
  logic                 free_q;        // the next may be taken
  logic                 ready, take, take_bad, take_mark;
  begun_t               begun_q;
  logic                 begun_push_q;

  // A descriptor that cannot be carried out waits at the head until all before it have ended.
  assign ready     = desc_valid_i && free_q && (fail_q == '0);
  assign take      = ready && (desc_i.err == '0) && !desc_i.bad && (pend_q != 5'(MaxDescs));
  assign take_bad  = ready && (desc_i.err == '0) && desc_i.bad && !reads_out;
  assign take_mark = ready && (desc_i.err != '0) && !reads_out && (pend_q == '0);

  assign desc_ready_o = take || take_bad || take_mark;
  assign mark_o       = take_mark;
  assign mark_ptr_o   = desc_i.ptr;
  assign sg_err_o     = take_mark ? desc_i.err : '0;

  always_ff @(posedge clk_i) begin
    begun_push_q <= take;
    if (take) begin
      cur_addr_q     <= desc_i.addr[63:ByteBits];
      cur_left_q     <= BeatBits'((27'(desc_i.length) + 27'(BusBytes - 1)) >> ByteBits);
      begun_q.ptr    <= desc_i.ptr;
      begun_q.length <= desc_i.length;
      begun_q.eof    <= desc_i.eof;
      begun_q.keep   <= {BusBytes{1'b1}} >> (ByteBits'(0) - desc_i.length[ByteBits-1:0]);
    end else if (issue) begin
      cur_addr_q <= cur_addr_q + (64-ByteBits)'(burst_q);
      cur_left_q <= cur_left_q - BeatBits'(burst_q);
    end
    if (!rst_ni || halted_i) cur_valid_q <= 1'b0;
    else if (take) cur_valid_q <= 1'b1;
    else if (issue && issue_last) cur_valid_q <= 1'b0;
    free_q <= run_i && rst_ni && !cur_valid_q && !desc_ready_o;
  end

  // ---------------------------------------------------------------------------------------------
  // Bursts
  // ---------------------------------------------------------------------------------------------
  logic [RoomBits-1:0] room_q;         // beats of the data FIFO neither filled nor promised
  logic [BurstBits-1:0] to_end;        // beats to the next multiple of MaxBurst
  logic                burst_last;
  logic                burst_valid_q;  // `burst_q` is that of `cur_addr_q` and `cur_left_q`
  logic [$clog2(MaxReads+1)-1:0] reads;

  assign to_end     = BurstBits'(MaxBurst)
                    - BurstBits'(cur_addr_q[ByteBits+BurstBits-2:ByteBits]);
  assign burst_last = cur_left_q <= BeatBits'(to_end);

  // Worked out in the cycle in which the read before goes out, so it costs none.
  always_ff @(posedge clk_i) begin
    burst_q    <= burst_last ? BurstBits'(cur_left_q) : to_end;
    issue_last <= burst_last;
    if (!rst_ni || halted_i) burst_valid_q <= 1'b0;
    else burst_valid_q <= cur_valid_q && !issue;
  end

  assign issue = burst_valid_q && run_i && (fail_q == '0) && !arvalid_o &&
                 (room_q >= RoomBits'(burst_q)) && (reads != 5'(MaxReads));

  always_ff @(posedge clk_i) begin
    if (issue) begin
      araddr_o <= {cur_addr_q, {ByteBits{1'b0}}};
      arlen_o  <= 8'(burst_q) - 8'd1;
    end
    if (!rst_ni) arvalid_o <= 1'b0;
    else if (issue) arvalid_o <= 1'b1;
    else if (arready_i) arvalid_o <= 1'b0;
  end

  logic read_last;  // the oldest burst in flight is its descriptor's last
  logic rvalid_q, rlast_q;

  ws_dma_fifo #(
    .Width(1),
    .Depth(MaxReads)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (issue),
    .data_i (issue_last),
    .pop_i  (rvalid_q && rlast_q),
    .valid_o(reads_out),
    .data_o (read_last),
    .count_o(reads)
  );

  // ---------------------------------------------------------------------------------------------
  // Data to the stream. Room was reserved with the burst, so data is always taken.
  // ---------------------------------------------------------------------------------------------
  logic [BusWidth-1:0] rdata_q;
  ws_dma_pkg::err_t rerr_q;
  begun_t              head;           // the descriptor that data is coming for
  logic                head_valid, desc_last, complete, push, pop, drop;

  assign rready_o  = 1'b1;
  assign drop      = rvalid_q && ((fail_q != '0) || (rerr_q != '0));
  assign push      = rvalid_q && !drop;
  assign desc_last = rlast_q && read_last;
  assign complete  = push && desc_last;
  assign pop       = m_axis_tvalid_o && m_axis_tready_i;

  always_ff @(posedge clk_i) begin
    rvalid_q <= rvalid_i && rst_ni;
    if (rvalid_i) begin
      rlast_q <= rlast_i;
      rdata_q <= rdata_i;
      rerr_q  <= ws_dma_pkg::resp_err(rresp_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      room_q <= RoomBits'(FifoDepth);
    end else if (issue || pop || drop) begin
      room_q <= room_q - (issue ? RoomBits'(burst_q) : '0) + RoomBits'(pop) + RoomBits'(drop);
    end
  end

  ws_dma_fifo #(
    .Width($bits(begun_q)),
    .Depth(MaxDescs)
  ) u_begun (
    .clk_i,
    .rst_ni,
    .clear_i(halted_i),
    .push_i (begun_push_q),
    .data_i (begun_q),
    .pop_i  (complete),
    .valid_o(head_valid),
    .data_o (head),
    .count_o()
  );

  ws_dma_stream_fifo #(
    .BusWidth(BusWidth),
    .Depth   (FifoDepth)
  ) u_data (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (push),
    .data_i (rdata_q),
    .keep_i (desc_last ? head.keep : {BusBytes{1'b1}}),
    .last_i (desc_last && head.eof),
    .pop_i  (pop),
    .valid_o(m_axis_tvalid_o),
    .data_o (m_axis_tdata_o),
    .keep_o (m_axis_tkeep_o),
    .last_o (m_axis_tlast_o)
  );

  // ---------------------------------------------------------------------------------------------
  // Completion and failure
  // ---------------------------------------------------------------------------------------------
  ws_dma_pkg::desc_ptr_t fail_ptr_q;
  logic       tell_fail;               // all reads have ended: write the failed one's status
  ws_dma_pkg::update_t update_q;
  logic       update_push_q;
  logic [4:0] updates_q;               // status words not yet in memory

  assign tell_fail = (fail_q != '0) && !fail_told_q && !reads_out;

  always_ff @(posedge clk_i) begin
    update_push_q <= 1'b0;
    if (complete) begin
      update_push_q <= 1'b1;
      update_q      <= {head.ptr, head.eof, ws_dma_pkg::StatusCmplt | 32'(head.length)};
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
      if (take_bad) begin
        fail_q.int_err <= 1'b1;
        fail_ptr_q     <= desc_i.ptr;
      end else if (drop) begin
        fail_q     <= rerr_q;
        fail_ptr_q <= head.ptr;
      end
    end else if (tell_fail) begin
      fail_told_q <= 1'b1;
    end
  end

  // Halting with the error is the last thing, once the failed descriptor's status is in memory.
  assign dma_err_o = (fail_told_q && (updates_q == '0)) ? fail_q : '0;
  assign quiet_o   = !reads_out && (updates_q == '0) && ((fail_q == '0) || fail_told_q);
  assign idle_o    = pend_q == '0;

`ifndef SYNTHESIS
  a_read_asked : assert property (@(posedge clk_i) disable iff (!rst_ni)
      rvalid_q |-> reads_out && (head_valid || drop))
      else $error("read data that nothing asked for");
  a_burst : assert property (@(posedge clk_i) disable iff (!rst_ni)
      issue |-> (burst_q != '0) && (room_q >= RoomBits'(burst_q)))
      else $error("a burst of no beats, or without room");
`endif

endmodule
