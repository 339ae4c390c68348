// AXI DMA engine: scatter-gather, 64-bit addresses, MM2S and S2MM, with the registers and
// descriptors of docs/registers.md. Per channel: registers, descriptors fetched ahead, a mover of
// data; the descriptor port is shared.
//
// Latency: the memory's and 4 cycles from read data to the stream; 5 from a packet's last beat to
// its write address. Throughput: a beat a cycle each way.
module ws_dma #(
  parameter int unsigned BusWidth    = 128,  // 64, 128, 256 or 512
  parameter int unsigned LengthWidth = 26,   // of a descriptor's length field, 8 to 26
  localparam int unsigned BusBytes = BusWidth / 8
) (
  input  logic                aclk,
  input  logic                aresetn,
  // AXI4-Lite slave
  input  logic [11:0]         s_axi_ctrl_awaddr,
  input  logic                s_axi_ctrl_awvalid,
  output logic                s_axi_ctrl_awready,
  input  logic [31:0]         s_axi_ctrl_wdata,
  input  logic [3:0]          s_axi_ctrl_wstrb,
  input  logic                s_axi_ctrl_wvalid,
  output logic                s_axi_ctrl_wready,
  output logic [1:0]          s_axi_ctrl_bresp,
  output logic                s_axi_ctrl_bvalid,
  input  logic                s_axi_ctrl_bready,
  input  logic [11:0]         s_axi_ctrl_araddr,
  input  logic                s_axi_ctrl_arvalid,
  output logic                s_axi_ctrl_arready,
  output logic [31:0]         s_axi_ctrl_rdata,
  output logic [1:0]          s_axi_ctrl_rresp,
  output logic                s_axi_ctrl_rvalid,
  input  logic                s_axi_ctrl_rready,
  // Descriptors: single-beat writes, eight-beat reads
  output logic [63:0]         m_axi_sg_awaddr,
  output logic                m_axi_sg_awvalid,
  input  logic                m_axi_sg_awready,
  output logic [31:0]         m_axi_sg_wdata,
  output logic                m_axi_sg_wvalid,
  input  logic                m_axi_sg_wready,
  input  logic [1:0]          m_axi_sg_bresp,
  input  logic                m_axi_sg_bvalid,
  output logic                m_axi_sg_bready,
  output logic [63:0]         m_axi_sg_araddr,
  output logic                m_axi_sg_arvalid,
  input  logic                m_axi_sg_arready,
  input  logic [31:0]         m_axi_sg_rdata,
  input  logic [1:0]          m_axi_sg_rresp,
  input  logic                m_axi_sg_rlast,
  input  logic                m_axi_sg_rvalid,
  output logic                m_axi_sg_rready,
  // Memory to stream
  output logic [63:0]         m_axi_mm2s_araddr,
  output logic [7:0]          m_axi_mm2s_arlen,
  output logic                m_axi_mm2s_arvalid,
  input  logic                m_axi_mm2s_arready,
  input  logic [BusWidth-1:0] m_axi_mm2s_rdata,
  input  logic [1:0]          m_axi_mm2s_rresp,
  input  logic                m_axi_mm2s_rlast,
  input  logic                m_axi_mm2s_rvalid,
  output logic                m_axi_mm2s_rready,
  output logic [BusWidth-1:0] m_axis_mm2s_tdata,
  output logic [BusBytes-1:0] m_axis_mm2s_tkeep,
  output logic                m_axis_mm2s_tlast,
  output logic                m_axis_mm2s_tvalid,
  input  logic                m_axis_mm2s_tready,
  // Stream to memory
  output logic [63:0]         m_axi_s2mm_awaddr,
  output logic [7:0]          m_axi_s2mm_awlen,
  output logic                m_axi_s2mm_awvalid,
  input  logic                m_axi_s2mm_awready,
  output logic [BusWidth-1:0] m_axi_s2mm_wdata,
  output logic [BusBytes-1:0] m_axi_s2mm_wstrb,
  output logic                m_axi_s2mm_wlast,
  output logic                m_axi_s2mm_wvalid,
  input  logic                m_axi_s2mm_wready,
  input  logic [1:0]          m_axi_s2mm_bresp,
  input  logic                m_axi_s2mm_bvalid,
  output logic                m_axi_s2mm_bready,
  input  logic [BusWidth-1:0] s_axis_s2mm_tdata,
  input  logic [BusBytes-1:0] s_axis_s2mm_tkeep,
  input  logic                s_axis_s2mm_tlast,
  input  logic                s_axis_s2mm_tvalid,
  output logic                s_axis_s2mm_tready,
  // Interrupts
  output logic                mm2s_introut,
  output logic                s2mm_introut
);
  logic        soft_rst, resetting, rst_n;
  logic [4:0]  waddr, raddr;
  logic [31:0] wdata, word;
  ws_dma_pkg::err_t word_err, retire_err;
  ws_dma_pkg::desc_ptr_t word_ptr, retire_ptr;
  logic        retire_eof;

  logic        mm2s_we, mm2s_re, mm2s_run, mm2s_halted, mm2s_start, mm2s_tail;
  logic [31:0] mm2s_rdata;
  ws_dma_pkg::desc_ptr_t mm2s_curdesc, mm2s_taildesc, mm2s_req_ptr, mm2s_mark_ptr;
  logic        mm2s_req_valid, mm2s_req_ready, mm2s_word_valid;
  logic        mm2s_desc_valid, mm2s_desc_ready, mm2s_update_valid, mm2s_update_ready;
  ws_dma_pkg::desc_t mm2s_desc;
  ws_dma_pkg::update_t mm2s_update;
  logic        mm2s_retire, mm2s_mark, mm2s_quiet;
  logic        mm2s_fetch_quiet, mm2s_fetch_idle, mm2s_move_quiet, mm2s_move_idle;
  ws_dma_pkg::err_t mm2s_dma_err, mm2s_sg_err;

  logic        s2mm_we, s2mm_re, s2mm_run, s2mm_halted, s2mm_start, s2mm_tail;
  logic [31:0] s2mm_rdata;
  ws_dma_pkg::desc_ptr_t s2mm_curdesc, s2mm_taildesc, s2mm_req_ptr, s2mm_mark_ptr;
  logic        s2mm_req_valid, s2mm_req_ready, s2mm_word_valid;
  logic        s2mm_desc_valid, s2mm_desc_ready, s2mm_update_valid, s2mm_update_ready;
  ws_dma_pkg::desc_t s2mm_desc;
  ws_dma_pkg::update_t s2mm_update;
  logic        s2mm_retire, s2mm_mark, s2mm_quiet;
  logic        s2mm_fetch_quiet, s2mm_fetch_idle, s2mm_move_quiet, s2mm_move_idle;
  ws_dma_pkg::err_t s2mm_dma_err, s2mm_sg_err;

  assign rst_n      = aresetn && !soft_rst;
  assign mm2s_quiet = mm2s_fetch_quiet && mm2s_move_quiet;
  assign s2mm_quiet = s2mm_fetch_quiet && s2mm_move_quiet;

  // ---------------------------------------------------------------------------------------------
  // Registers and descriptors. A status that could not be written ends nothing, so its packet is
  // not reported.
  // ---------------------------------------------------------------------------------------------
  ws_dma_regs u_regs (
    .clk_i       (aclk),
    .rst_ni      (aresetn),
    .soft_rst_o  (soft_rst),
    .resetting_o (resetting),
    .settled_i   (mm2s_halted && mm2s_quiet && s2mm_halted && s2mm_quiet),
    .awaddr_i    (s_axi_ctrl_awaddr),
    .awvalid_i   (s_axi_ctrl_awvalid),
    .awready_o   (s_axi_ctrl_awready),
    .wdata_i     (s_axi_ctrl_wdata),
    .wstrb_i     (s_axi_ctrl_wstrb),
    .wvalid_i    (s_axi_ctrl_wvalid),
    .wready_o    (s_axi_ctrl_wready),
    .bresp_o     (s_axi_ctrl_bresp),
    .bvalid_o    (s_axi_ctrl_bvalid),
    .bready_i    (s_axi_ctrl_bready),
    .araddr_i    (s_axi_ctrl_araddr),
    .arvalid_i   (s_axi_ctrl_arvalid),
    .arready_o   (s_axi_ctrl_arready),
    .rdata_o     (s_axi_ctrl_rdata),
    .rresp_o     (s_axi_ctrl_rresp),
    .rvalid_o    (s_axi_ctrl_rvalid),
    .rready_i    (s_axi_ctrl_rready),
    .mm2s_we_o   (mm2s_we),
    .s2mm_we_o   (s2mm_we),
    .waddr_o     (waddr),
    .wdata_o     (wdata),
    .mm2s_re_o   (mm2s_re),
    .s2mm_re_o   (s2mm_re),
    .raddr_o     (raddr),
    .mm2s_rdata_i(mm2s_rdata),
    .s2mm_rdata_i(s2mm_rdata)
  );

  ws_dma_chan_regs u_mm2s_regs (
    .clk_i       (aclk),
    .rst_ni      (rst_n),
    .we_i        (mm2s_we),
    .waddr_i     (waddr),
    .wdata_i     (wdata),
    .re_i        (mm2s_re),
    .raddr_i     (raddr),
    .rdata_o     (mm2s_rdata),
    .resetting_i (resetting),
    .run_o       (mm2s_run),
    .halted_o    (mm2s_halted),
    .start_o     (mm2s_start),
    .tail_o      (mm2s_tail),
    .curdesc_o   (mm2s_curdesc),
    .taildesc_o  (mm2s_taildesc),
    .quiet_i     (mm2s_quiet),
    .idle_i      (mm2s_fetch_idle && mm2s_move_idle),
    .retire_i    (mm2s_retire || mm2s_mark),
    .retire_ptr_i(mm2s_mark ? mm2s_mark_ptr : retire_ptr),
    .packet_i    (mm2s_retire && retire_eof && (retire_err == '0)),
    .dma_err_i   (mm2s_dma_err),
    .sg_err_i    (mm2s_sg_err | (mm2s_retire ? retire_err : '0)),
    .introut_o   (mm2s_introut)
  );

  ws_dma_fetch #(
    .BusWidth   (BusWidth),
    .LengthWidth(LengthWidth)
  ) u_mm2s_fetch (
    .clk_i       (aclk),
    .rst_ni      (rst_n),
    .run_i       (mm2s_run),
    .halted_i    (mm2s_halted),
    .start_i     (mm2s_start),
    .tail_i      (mm2s_tail),
    .curdesc_i   (mm2s_curdesc),
    .taildesc_i  (mm2s_taildesc),
    .quiet_o     (mm2s_fetch_quiet),
    .idle_o      (mm2s_fetch_idle),
    .req_valid_o (mm2s_req_valid),
    .req_ptr_o   (mm2s_req_ptr),
    .req_ready_i (mm2s_req_ready),
    .word_valid_i(mm2s_word_valid),
    .word_i      (word),
    .word_err_i  (word_err),
    .word_ptr_i  (word_ptr),
    .desc_valid_o(mm2s_desc_valid),
    .desc_o      (mm2s_desc),
    .desc_ready_i(mm2s_desc_ready)
  );

  ws_dma_chan_regs u_s2mm_regs (
    .clk_i       (aclk),
    .rst_ni      (rst_n),
    .we_i        (s2mm_we),
    .waddr_i     (waddr),
    .wdata_i     (wdata),
    .re_i        (s2mm_re),
    .raddr_i     (raddr),
    .rdata_o     (s2mm_rdata),
    .resetting_i (resetting),
    .run_o       (s2mm_run),
    .halted_o    (s2mm_halted),
    .start_o     (s2mm_start),
    .tail_o      (s2mm_tail),
    .curdesc_o   (s2mm_curdesc),
    .taildesc_o  (s2mm_taildesc),
    .quiet_i     (s2mm_quiet),
    .idle_i      (s2mm_fetch_idle && s2mm_move_idle),
    .retire_i    (s2mm_retire || s2mm_mark),
    .retire_ptr_i(s2mm_mark ? s2mm_mark_ptr : retire_ptr),
    .packet_i    (s2mm_retire && retire_eof && (retire_err == '0)),
    .dma_err_i   (s2mm_dma_err),
    .sg_err_i    (s2mm_sg_err | (s2mm_retire ? retire_err : '0)),
    .introut_o   (s2mm_introut)
  );

  ws_dma_fetch #(
    .BusWidth   (BusWidth),
    .LengthWidth(LengthWidth)
  ) u_s2mm_fetch (
    .clk_i       (aclk),
    .rst_ni      (rst_n),
    .run_i       (s2mm_run),
    .halted_i    (s2mm_halted),
    .start_i     (s2mm_start),
    .tail_i      (s2mm_tail),
    .curdesc_i   (s2mm_curdesc),
    .taildesc_i  (s2mm_taildesc),
    .quiet_o     (s2mm_fetch_quiet),
    .idle_o      (s2mm_fetch_idle),
    .req_valid_o (s2mm_req_valid),
    .req_ptr_o   (s2mm_req_ptr),
    .req_ready_i (s2mm_req_ready),
    .word_valid_i(s2mm_word_valid),
    .word_i      (word),
    .word_err_i  (word_err),
    .word_ptr_i  (word_ptr),
    .desc_valid_o(s2mm_desc_valid),
    .desc_o      (s2mm_desc),
    .desc_ready_i(s2mm_desc_ready)
  );

  ws_dma_sg u_sg (
    .clk_i              (aclk),
    .rst_ni             (rst_n),
    .mm2s_req_valid_i    (mm2s_req_valid),
    .mm2s_req_ptr_i      (mm2s_req_ptr),
    .mm2s_req_ready_o    (mm2s_req_ready),
    .mm2s_word_valid_o   (mm2s_word_valid),
    .s2mm_req_valid_i    (s2mm_req_valid),
    .s2mm_req_ptr_i      (s2mm_req_ptr),
    .s2mm_req_ready_o    (s2mm_req_ready),
    .s2mm_word_valid_o   (s2mm_word_valid),
    .word_o             (word),
    .word_err_o         (word_err),
    .word_ptr_o         (word_ptr),
    .mm2s_update_valid_i (mm2s_update_valid),
    .mm2s_update_i       (mm2s_update),
    .mm2s_update_ready_o (mm2s_update_ready),
    .mm2s_retire_o       (mm2s_retire),
    .s2mm_update_valid_i (s2mm_update_valid),
    .s2mm_update_i       (s2mm_update),
    .s2mm_update_ready_o (s2mm_update_ready),
    .s2mm_retire_o       (s2mm_retire),
    .retire_ptr_o       (retire_ptr),
    .retire_eof_o       (retire_eof),
    .retire_err_o       (retire_err),
    .awaddr_o           (m_axi_sg_awaddr),
    .awvalid_o          (m_axi_sg_awvalid),
    .awready_i          (m_axi_sg_awready),
    .wdata_o            (m_axi_sg_wdata),
    .wvalid_o           (m_axi_sg_wvalid),
    .wready_i           (m_axi_sg_wready),
    .bresp_i            (m_axi_sg_bresp),
    .bvalid_i           (m_axi_sg_bvalid),
    .bready_o           (m_axi_sg_bready),
    .araddr_o           (m_axi_sg_araddr),
    .arvalid_o          (m_axi_sg_arvalid),
    .arready_i          (m_axi_sg_arready),
    .rdata_i            (m_axi_sg_rdata),
    .rresp_i            (m_axi_sg_rresp),
    .rlast_i            (m_axi_sg_rlast),
    .rvalid_i           (m_axi_sg_rvalid),
    .rready_o           (m_axi_sg_rready)
  );

  // ---------------------------------------------------------------------------------------------
  // Data
  // ---------------------------------------------------------------------------------------------
  ws_dma_mm2s #(
    .BusWidth(BusWidth)
  ) u_mm2s (
    .clk_i          (aclk),
    .rst_ni         (rst_n),
    .run_i          (mm2s_run),
    .halted_i       (mm2s_halted),
    .quiet_o        (mm2s_move_quiet),
    .idle_o         (mm2s_move_idle),
    .dma_err_o      (mm2s_dma_err),
    .sg_err_o       (mm2s_sg_err),
    .mark_o         (mm2s_mark),
    .mark_ptr_o     (mm2s_mark_ptr),
    .desc_valid_i   (mm2s_desc_valid),
    .desc_i         (mm2s_desc),
    .desc_ready_o   (mm2s_desc_ready),
    .update_valid_o (mm2s_update_valid),
    .update_o       (mm2s_update),
    .update_ready_i (mm2s_update_ready),
    .retire_i       (mm2s_retire),
    .araddr_o       (m_axi_mm2s_araddr),
    .arlen_o        (m_axi_mm2s_arlen),
    .arvalid_o      (m_axi_mm2s_arvalid),
    .arready_i      (m_axi_mm2s_arready),
    .rdata_i        (m_axi_mm2s_rdata),
    .rresp_i        (m_axi_mm2s_rresp),
    .rlast_i        (m_axi_mm2s_rlast),
    .rvalid_i       (m_axi_mm2s_rvalid),
    .rready_o       (m_axi_mm2s_rready),
    .m_axis_tdata_o (m_axis_mm2s_tdata),
    .m_axis_tkeep_o (m_axis_mm2s_tkeep),
    .m_axis_tlast_o (m_axis_mm2s_tlast),
    .m_axis_tvalid_o(m_axis_mm2s_tvalid),
    .m_axis_tready_i(m_axis_mm2s_tready)
  );

  ws_dma_s2mm #(
    .BusWidth(BusWidth)
  ) u_s2mm (
    .clk_i          (aclk),
    .rst_ni         (rst_n),
    .run_i          (s2mm_run),
    .halted_i       (s2mm_halted),
    .quiet_o        (s2mm_move_quiet),
    .idle_o         (s2mm_move_idle),
    .dma_err_o      (s2mm_dma_err),
    .sg_err_o       (s2mm_sg_err),
    .mark_o         (s2mm_mark),
    .mark_ptr_o     (s2mm_mark_ptr),
    .desc_valid_i   (s2mm_desc_valid),
    .desc_i         (s2mm_desc),
    .desc_ready_o   (s2mm_desc_ready),
    .update_valid_o (s2mm_update_valid),
    .update_o       (s2mm_update),
    .update_ready_i (s2mm_update_ready),
    .retire_i       (s2mm_retire),
    .awaddr_o       (m_axi_s2mm_awaddr),
    .awlen_o        (m_axi_s2mm_awlen),
    .awvalid_o      (m_axi_s2mm_awvalid),
    .awready_i      (m_axi_s2mm_awready),
    .wdata_o        (m_axi_s2mm_wdata),
    .wstrb_o        (m_axi_s2mm_wstrb),
    .wlast_o        (m_axi_s2mm_wlast),
    .wvalid_o       (m_axi_s2mm_wvalid),
    .wready_i       (m_axi_s2mm_wready),
    .bresp_i        (m_axi_s2mm_bresp),
    .bvalid_i       (m_axi_s2mm_bvalid),
    .bready_o       (m_axi_s2mm_bready),
    .s_axis_tdata_i (s_axis_s2mm_tdata),
    .s_axis_tkeep_i (s_axis_s2mm_tkeep),
    .s_axis_tlast_i (s_axis_s2mm_tlast),
    .s_axis_tvalid_i(s_axis_s2mm_tvalid),
    .s_axis_tready_o(s_axis_s2mm_tready)
  );

`ifndef SYNTHESIS
  // What is offered stays as it is until it is taken (AXI4 A3.2.1, AXI4-Stream 2.2.1). A soft reset
  // withdraws a stream beat that waits; on AXI nothing waits by then.
  a_sg_ar : assert property (@(posedge aclk) disable iff (!rst_n)
      rst_n && m_axi_sg_arvalid && !m_axi_sg_arready |=> m_axi_sg_arvalid &&
      $stable(m_axi_sg_araddr));
  a_sg_aw : assert property (@(posedge aclk) disable iff (!rst_n)
      rst_n && m_axi_sg_awvalid && !m_axi_sg_awready |=> m_axi_sg_awvalid &&
      $stable(m_axi_sg_awaddr));
  a_sg_w : assert property (@(posedge aclk) disable iff (!rst_n)
      rst_n && m_axi_sg_wvalid && !m_axi_sg_wready |=> m_axi_sg_wvalid &&
      $stable(m_axi_sg_wdata));
  a_mm2s_ar : assert property (@(posedge aclk) disable iff (!rst_n)
      rst_n && m_axi_mm2s_arvalid && !m_axi_mm2s_arready |=> m_axi_mm2s_arvalid &&
      $stable({m_axi_mm2s_araddr, m_axi_mm2s_arlen}));
  a_s2mm_aw : assert property (@(posedge aclk) disable iff (!rst_n)
      rst_n && m_axi_s2mm_awvalid && !m_axi_s2mm_awready |=> m_axi_s2mm_awvalid &&
      $stable({m_axi_s2mm_awaddr, m_axi_s2mm_awlen}));
  a_s2mm_w : assert property (@(posedge aclk) disable iff (!rst_n)
      rst_n && m_axi_s2mm_wvalid && !m_axi_s2mm_wready |=> m_axi_s2mm_wvalid &&
      $stable({m_axi_s2mm_wdata, m_axi_s2mm_wstrb, m_axi_s2mm_wlast}));
  a_stream : assert property (@(posedge aclk) disable iff (!rst_n)
      rst_n && m_axis_mm2s_tvalid && !m_axis_mm2s_tready |=> m_axis_mm2s_tvalid &&
      $stable({m_axis_mm2s_tdata, m_axis_mm2s_tkeep, m_axis_mm2s_tlast}));
  a_ctrl_b : assert property (@(posedge aclk) disable iff (!aresetn)
      s_axi_ctrl_bvalid && !s_axi_ctrl_bready |=> s_axi_ctrl_bvalid &&
      $stable(s_axi_ctrl_bresp));
  a_ctrl_r : assert property (@(posedge aclk) disable iff (!aresetn)
      s_axi_ctrl_rvalid && !s_axi_ctrl_rready |=> s_axi_ctrl_rvalid &&
      $stable({s_axi_ctrl_rdata, s_axi_ctrl_rresp}));
`endif

endmodule
