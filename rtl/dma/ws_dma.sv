// AXI DMA engine: scatter-gather, 64-bit addresses, MM2S and S2MM, with the registers and
// descriptors of docs/registers.md.
module ws_dma
  import ws_dma_pkg::*;
#(
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
  // Channel 0 is MM2S, channel 1 S2MM.
  logic            soft_rst, rst_n;
  logic      [1:0] run, halted, start, tail_we;
  desc_ptr_t [1:0] curdesc, taildesc;
  logic      [1:0] quiet, idle, retire, packet, introut;
  desc_ptr_t [1:0] retire_ptr;
  err_t      [1:0] dma_err, sg_err;

  assign rst_n        = aresetn && !soft_rst;
  assign mm2s_introut = introut[0];
  assign s2mm_introut = introut[1];

  ws_dma_regs u_regs (
    .clk_i       (aclk),
    .rst_ni      (aresetn),
    .soft_rst_o  (soft_rst),
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
    .run_o       (run),
    .halted_o    (halted),
    .start_o     (start),
    .tail_we_o   (tail_we),
    .curdesc_o   (curdesc),
    .taildesc_o  (taildesc),
    .quiet_i     (quiet),
    .idle_i      (idle),
    .retire_i    (retire),
    .retire_ptr_i(retire_ptr),
    .packet_i    (packet),
    .dma_err_i   (dma_err),
    .sg_err_i    (sg_err),
    .introut_o   (introut)
  );

  // ---------------------------------------------------------------------------------------------
  // Descriptors
  // ---------------------------------------------------------------------------------------------
  logic      [1:0] req_valid, req_ready, word_valid;
  desc_ptr_t [1:0] req_ptr;
  logic     [31:0] word;
  err_t            word_err, sg_retire_err;
  desc_ptr_t       word_ptr, sg_retire_ptr;
  logic            sg_retire_eof;
  logic      [1:0] update_valid, update_ready, sg_retire;
  update_t   [1:0] update;
  logic      [1:0] desc_valid, desc_ready, mark;
  desc_t     [1:0] desc;
  desc_ptr_t [1:0] mark_ptr;
  logic      [1:0] fetch_quiet, fetch_idle, move_quiet, move_idle;
  err_t      [1:0] move_sg_err;

  ws_dma_sg u_sg (
    .clk_i         (aclk),
    .rst_ni        (rst_n),
    .req_valid_i   (req_valid),
    .req_ptr_i     (req_ptr),
    .req_ready_o   (req_ready),
    .word_valid_o  (word_valid),
    .word_o        (word),
    .word_err_o    (word_err),
    .word_ptr_o    (word_ptr),
    .update_valid_i(update_valid),
    .update_i      (update),
    .update_ready_o(update_ready),
    .retire_o      (sg_retire),
    .retire_ptr_o  (sg_retire_ptr),
    .retire_eof_o  (sg_retire_eof),
    .retire_err_o  (sg_retire_err),
    .awaddr_o      (m_axi_sg_awaddr),
    .awvalid_o     (m_axi_sg_awvalid),
    .awready_i     (m_axi_sg_awready),
    .wdata_o       (m_axi_sg_wdata),
    .wvalid_o      (m_axi_sg_wvalid),
    .wready_i      (m_axi_sg_wready),
    .bresp_i       (m_axi_sg_bresp),
    .bvalid_i      (m_axi_sg_bvalid),
    .bready_o      (m_axi_sg_bready),
    .araddr_o      (m_axi_sg_araddr),
    .arvalid_o     (m_axi_sg_arvalid),
    .arready_i     (m_axi_sg_arready),
    .rdata_i       (m_axi_sg_rdata),
    .rresp_i       (m_axi_sg_rresp),
    .rlast_i       (m_axi_sg_rlast),
    .rvalid_i      (m_axi_sg_rvalid),
    .rready_o      (m_axi_sg_rready)
  );

  for (genvar c = 0; c < 2; c++) begin : gen_fetch
    ws_dma_fetch #(
      .LengthWidth(LengthWidth)
    ) u_fetch (
      .clk_i       (aclk),
      .rst_ni      (rst_n),
      .run_i       (run[c]),
      .halted_i    (halted[c]),
      .start_i     (start[c]),
      .tail_we_i   (tail_we[c]),
      .curdesc_i   (curdesc[c]),
      .taildesc_i  (taildesc[c]),
      .quiet_o     (fetch_quiet[c]),
      .idle_o      (fetch_idle[c]),
      .req_valid_o (req_valid[c]),
      .req_ptr_o   (req_ptr[c]),
      .req_ready_i (req_ready[c]),
      .word_valid_i(word_valid[c]),
      .word_i      (word),
      .word_err_i  (word_err),
      .word_ptr_i  (word_ptr),
      .desc_valid_o(desc_valid[c]),
      .desc_o      (desc[c]),
      .desc_ready_i(desc_ready[c])
    );

    // A status that could not be written ends nothing, so its packet is not reported.
    assign retire[c]     = sg_retire[c] || mark[c];
    assign retire_ptr[c] = mark[c] ? mark_ptr[c] : sg_retire_ptr;
    assign packet[c]     = sg_retire[c] && sg_retire_eof && (sg_retire_err == '0);
    assign sg_err[c]     = move_sg_err[c] | (sg_retire[c] ? sg_retire_err : '0);
    assign quiet[c]      = fetch_quiet[c] && move_quiet[c];
    assign idle[c]       = fetch_idle[c] && move_idle[c];
  end

  // ---------------------------------------------------------------------------------------------
  // Data
  // ---------------------------------------------------------------------------------------------
  ws_dma_mm2s #(
    .BusWidth(BusWidth)
  ) u_mm2s (
    .clk_i          (aclk),
    .rst_ni         (rst_n),
    .run_i          (run[0]),
    .halted_i       (halted[0]),
    .quiet_o        (move_quiet[0]),
    .idle_o         (move_idle[0]),
    .dma_err_o      (dma_err[0]),
    .sg_err_o       (move_sg_err[0]),
    .mark_o         (mark[0]),
    .mark_ptr_o     (mark_ptr[0]),
    .desc_valid_i   (desc_valid[0]),
    .desc_i         (desc[0]),
    .desc_ready_o   (desc_ready[0]),
    .update_valid_o (update_valid[0]),
    .update_o       (update[0]),
    .update_ready_i (update_ready[0]),
    .retire_i       (sg_retire[0]),
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
    .run_i          (run[1]),
    .halted_i       (halted[1]),
    .quiet_o        (move_quiet[1]),
    .idle_o         (move_idle[1]),
    .dma_err_o      (dma_err[1]),
    .sg_err_o       (move_sg_err[1]),
    .mark_o         (mark[1]),
    .mark_ptr_o     (mark_ptr[1]),
    .desc_valid_i   (desc_valid[1]),
    .desc_i         (desc[1]),
    .desc_ready_o   (desc_ready[1]),
    .update_valid_o (update_valid[1]),
    .update_o       (update[1]),
    .update_ready_i (update_ready[1]),
    .retire_i       (sg_retire[1]),
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

endmodule
