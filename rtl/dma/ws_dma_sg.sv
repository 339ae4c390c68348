// The scatter-gather port: descriptor reads and status write-backs of both channels on one AXI4
// master with 32-bit data. Several of each are in flight; answers come in order (one ID).
//
// Latency: 1 cycle to AXI, 1 from it. Throughput: a descriptor's read and a write-back every 2
// cycles, a word read a cycle.
module ws_dma_sg (
  input  logic        clk_i,
  input  logic        rst_ni,
  // Descriptor fetches
  input  logic        mm2s_req_valid_i,
  input  ws_dma_pkg::desc_ptr_t mm2s_req_ptr_i,
  output logic        mm2s_req_ready_o,
  input  logic        s2mm_req_valid_i,
  input  ws_dma_pkg::desc_ptr_t s2mm_req_ptr_i,
  output logic        s2mm_req_ready_o,
  output logic        mm2s_word_valid_o,
  output logic        s2mm_word_valid_o,
  output logic [31:0] word_o,
  output ws_dma_pkg::err_t word_err_o,
  output ws_dma_pkg::desc_ptr_t word_ptr_o,
  // Status write-backs, and a pulse when one is in memory
  input  logic        mm2s_update_valid_i,
  input  ws_dma_pkg::update_t mm2s_update_i,
  output logic        mm2s_update_ready_o,
  input  logic        s2mm_update_valid_i,
  input  ws_dma_pkg::update_t s2mm_update_i,
  output logic        s2mm_update_ready_o,
  output logic        mm2s_retire_o,
  output logic        s2mm_retire_o,
  output ws_dma_pkg::desc_ptr_t retire_ptr_o,
  output logic        retire_eof_o,
  output ws_dma_pkg::err_t retire_err_o,       // of the write itself
  // AXI4
  output logic [63:0] awaddr_o,
  output logic        awvalid_o,
  input  logic        awready_i,
  output logic [31:0] wdata_o,
  output logic        wvalid_o,
  input  logic        wready_i,
  input  logic [1:0]  bresp_i,
  input  logic        bvalid_i,
  output logic        bready_o,
  output logic [63:0] araddr_o,
  output logic        arvalid_o,
  input  logic        arready_i,
  input  logic [31:0] rdata_i,
  input  logic [1:0]  rresp_i,
  input  logic        rlast_i,
  input  logic        rvalid_i,
  output logic        rready_o
);
  localparam int unsigned MaxReads  = 4;
  localparam int unsigned MaxWrites = 8;

  typedef struct packed {
    logic      s2mm;
    ws_dma_pkg::desc_ptr_t ptr;
  } read_t;

  typedef struct packed {
    logic      s2mm;
    logic      eof;
    ws_dma_pkg::desc_ptr_t ptr;
  } write_t;

  // ---------------------------------------------------------------------------------------------
  // Reads: the channels take turns
  // ---------------------------------------------------------------------------------------------
  logic                          read_turn_q;  // S2MM goes first
  logic                          read_push_q, read_pop, read_busy;
  logic [$clog2(MaxReads+1)-1:0] reads;
  read_t                         read_new_q, read_head;
  logic                          read_valid;

  // A pushed read is counted a cycle later; until then none follows.
  assign read_busy        = arvalid_o || read_push_q || (reads == 3'(MaxReads));
  assign mm2s_req_ready_o = !read_busy && !(s2mm_req_valid_i && read_turn_q);
  assign s2mm_req_ready_o = !read_busy && !(mm2s_req_valid_i && !read_turn_q);

  always_ff @(posedge clk_i) begin
    read_push_q <= 1'b0;
    if (!rst_ni) begin
      arvalid_o   <= 1'b0;
      read_turn_q <= 1'b0;
    end else if (mm2s_req_valid_i && mm2s_req_ready_o) begin
      arvalid_o   <= 1'b1;
      araddr_o    <= {mm2s_req_ptr_i, 6'd0};
      read_turn_q <= 1'b1;
      read_push_q <= 1'b1;
      read_new_q  <= {1'b0, mm2s_req_ptr_i};
    end else if (s2mm_req_valid_i && s2mm_req_ready_o) begin
      arvalid_o   <= 1'b1;
      araddr_o    <= {s2mm_req_ptr_i, 6'd0};
      read_turn_q <= 1'b0;
      read_push_q <= 1'b1;
      read_new_q  <= {1'b1, s2mm_req_ptr_i};
    end else if (arready_i) begin
      arvalid_o <= 1'b0;
    end
  end

  // The channels reserve room for what they ask, so words are always taken.
  assign rready_o   = 1'b1;
  assign word_ptr_o = read_head.ptr;

  logic rvalid_q, rlast_q;

  assign mm2s_word_valid_o = rvalid_q && !read_head.s2mm;
  assign s2mm_word_valid_o = rvalid_q && read_head.s2mm;
  assign read_pop          = rvalid_q && rlast_q;

  always_ff @(posedge clk_i) begin
    rvalid_q <= rvalid_i && rst_ni;
    if (rvalid_i) begin
      rlast_q    <= rlast_i;
      word_o     <= rdata_i;
      word_err_o <= ws_dma_pkg::resp_err(rresp_i);
    end
  end

  ws_dma_fifo #(
    .Width($bits(read_new_q)),
    .Depth(MaxReads)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (read_push_q),
    .data_i (read_new_q),
    .pop_i  (read_pop),
    .valid_o(read_valid),
    .data_o (read_head),
    .count_o(reads)
  );

  // ---------------------------------------------------------------------------------------------
  // Write-backs of the STATUS word
  // ---------------------------------------------------------------------------------------------
  logic                           write_turn_q;  // S2MM goes first
  logic                           write_push_q, write_busy;
  logic [$clog2(MaxWrites+1)-1:0] writes;
  write_t                         write_new_q, write_head;
  logic                           write_valid;

  assign write_busy          = awvalid_o || wvalid_o || write_push_q || (writes == 4'(MaxWrites));
  assign mm2s_update_ready_o = !write_busy && mm2s_update_valid_i &&
                               !(s2mm_update_valid_i && write_turn_q);
  assign s2mm_update_ready_o = !write_busy && s2mm_update_valid_i &&
                               !(mm2s_update_valid_i && !write_turn_q);

  always_ff @(posedge clk_i) begin
    write_push_q <= 1'b0;
    if (!rst_ni) begin
      awvalid_o    <= 1'b0;
      wvalid_o     <= 1'b0;
      write_turn_q <= 1'b0;
    end else if (mm2s_update_ready_o) begin
      awvalid_o    <= 1'b1;
      wvalid_o     <= 1'b1;
      awaddr_o     <= {mm2s_update_i.ptr, ws_dma_pkg::DescStatus[5:0]};
      wdata_o      <= mm2s_update_i.status;
      write_turn_q <= 1'b1;
      write_push_q <= 1'b1;
      write_new_q  <= {1'b0, mm2s_update_i.eof, mm2s_update_i.ptr};
    end else if (s2mm_update_ready_o) begin
      awvalid_o    <= 1'b1;
      wvalid_o     <= 1'b1;
      awaddr_o     <= {s2mm_update_i.ptr, ws_dma_pkg::DescStatus[5:0]};
      wdata_o      <= s2mm_update_i.status;
      write_turn_q <= 1'b0;
      write_push_q <= 1'b1;
      write_new_q  <= {1'b1, s2mm_update_i.eof, s2mm_update_i.ptr};
    end else begin
      if (awready_i) awvalid_o <= 1'b0;
      if (wready_i) wvalid_o <= 1'b0;
    end
  end

  logic bvalid_q;

  assign bready_o      = 1'b1;
  assign mm2s_retire_o = bvalid_q && !write_head.s2mm;
  assign s2mm_retire_o = bvalid_q && write_head.s2mm;
  assign retire_ptr_o  = write_head.ptr;
  assign retire_eof_o  = write_head.eof;

  always_ff @(posedge clk_i) begin
    bvalid_q <= bvalid_i && rst_ni;
    if (bvalid_i) retire_err_o <= ws_dma_pkg::resp_err(bresp_i);
  end

  ws_dma_fifo #(
    .Width($bits(write_new_q)),
    .Depth(MaxWrites)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (write_push_q),
    .data_i (write_new_q),
    .pop_i  (bvalid_q),
    .valid_o(write_valid),
    .data_o (write_head),
    .count_o(writes)
  );

`ifndef SYNTHESIS
  a_read_asked : assert property (@(posedge clk_i) disable iff (!rst_ni)
      rvalid_q |-> read_valid)
      else $error("read data that nothing asked for");
  a_write_asked : assert property (@(posedge clk_i) disable iff (!rst_ni)
      bvalid_q |-> write_valid)
      else $error("a response that nothing asked for");
`endif

endmodule
