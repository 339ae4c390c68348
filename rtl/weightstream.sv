// The accelerator: AXI DMA engine, streaming kernel, and the AXI4-Lite windows of both.
//
// Ports are named as AXI users name them. The data ports are as wide as the stream; descriptors
// travel on a port of 32 bits, as in PG021. All bursts are INCR of full-width beats, in order,
// with ID 0.
//
// Throughput: a bus word a cycle from memory into the kernel, as long as the memory and the blocks
// a cycle suffice. Latency of a job: that of the memory, of the engine and of the kernel, added up.

// The module of the kernel, so that another one with the same ports can stand in its place.
`ifndef WS_KERNEL
`define WS_KERNEL ws_kernel
`endif

module weightstream #(
  parameter int unsigned BusWidth       = 128,    // 64, 128, 256 or 512
  parameter int unsigned BlocksPerCycle = 1,
  parameter int unsigned MaxCols        = 4,
  parameter int unsigned MaxK           = 16384,
  parameter int unsigned LengthWidth    = 26,     // of a descriptor's length field, 8 to 26
  localparam int unsigned BusBytes      = BusWidth / 8
) (
  input  logic                aclk,
  input  logic                aresetn,
  // Registers: window 0x0000 the DMA engine, window 0x1000 the kernel
  input  logic [15:0]         s_axi_ctrl_awaddr,
  input  logic [2:0]          s_axi_ctrl_awprot,
  input  logic                s_axi_ctrl_awvalid,
  output logic                s_axi_ctrl_awready,
  input  logic [31:0]         s_axi_ctrl_wdata,
  input  logic [3:0]          s_axi_ctrl_wstrb,
  input  logic                s_axi_ctrl_wvalid,
  output logic                s_axi_ctrl_wready,
  output logic [1:0]          s_axi_ctrl_bresp,
  output logic                s_axi_ctrl_bvalid,
  input  logic                s_axi_ctrl_bready,
  input  logic [15:0]         s_axi_ctrl_araddr,
  input  logic [2:0]          s_axi_ctrl_arprot,
  input  logic                s_axi_ctrl_arvalid,
  output logic                s_axi_ctrl_arready,
  output logic [31:0]         s_axi_ctrl_rdata,
  output logic [1:0]          s_axi_ctrl_rresp,
  output logic                s_axi_ctrl_rvalid,
  input  logic                s_axi_ctrl_rready,
  // Descriptors; all is in order, so the IDs that come back are not looked at
  output logic [0:0]          m_axi_sg_awid,
  output logic [63:0]         m_axi_sg_awaddr,
  output logic [7:0]          m_axi_sg_awlen,
  output logic [2:0]          m_axi_sg_awsize,
  output logic [1:0]          m_axi_sg_awburst,
  output logic                m_axi_sg_awlock,
  output logic [3:0]          m_axi_sg_awcache,
  output logic [2:0]          m_axi_sg_awprot,
  output logic [3:0]          m_axi_sg_awqos,
  output logic                m_axi_sg_awvalid,
  input  logic                m_axi_sg_awready,
  output logic [31:0]         m_axi_sg_wdata,
  output logic [3:0]          m_axi_sg_wstrb,
  output logic                m_axi_sg_wlast,
  output logic                m_axi_sg_wvalid,
  input  logic                m_axi_sg_wready,
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic [0:0]          m_axi_sg_bid,
  /* verilator lint_on UNUSEDSIGNAL */
  input  logic [1:0]          m_axi_sg_bresp,
  input  logic                m_axi_sg_bvalid,
  output logic                m_axi_sg_bready,
  output logic [0:0]          m_axi_sg_arid,
  output logic [63:0]         m_axi_sg_araddr,
  output logic [7:0]          m_axi_sg_arlen,
  output logic [2:0]          m_axi_sg_arsize,
  output logic [1:0]          m_axi_sg_arburst,
  output logic                m_axi_sg_arlock,
  output logic [3:0]          m_axi_sg_arcache,
  output logic [2:0]          m_axi_sg_arprot,
  output logic [3:0]          m_axi_sg_arqos,
  output logic                m_axi_sg_arvalid,
  input  logic                m_axi_sg_arready,
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic [0:0]          m_axi_sg_rid,
  /* verilator lint_on UNUSEDSIGNAL */
  input  logic [31:0]         m_axi_sg_rdata,
  input  logic [1:0]          m_axi_sg_rresp,
  input  logic                m_axi_sg_rlast,
  input  logic                m_axi_sg_rvalid,
  output logic                m_axi_sg_rready,
  // Memory to stream
  output logic [0:0]          m_axi_mm2s_arid,
  output logic [63:0]         m_axi_mm2s_araddr,
  output logic [7:0]          m_axi_mm2s_arlen,
  output logic [2:0]          m_axi_mm2s_arsize,
  output logic [1:0]          m_axi_mm2s_arburst,
  output logic                m_axi_mm2s_arlock,
  output logic [3:0]          m_axi_mm2s_arcache,
  output logic [2:0]          m_axi_mm2s_arprot,
  output logic [3:0]          m_axi_mm2s_arqos,
  output logic                m_axi_mm2s_arvalid,
  input  logic                m_axi_mm2s_arready,
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic [0:0]          m_axi_mm2s_rid,
  /* verilator lint_on UNUSEDSIGNAL */
  input  logic [BusWidth-1:0] m_axi_mm2s_rdata,
  input  logic [1:0]          m_axi_mm2s_rresp,
  input  logic                m_axi_mm2s_rlast,
  input  logic                m_axi_mm2s_rvalid,
  output logic                m_axi_mm2s_rready,
  // Stream to memory
  output logic [0:0]          m_axi_s2mm_awid,
  output logic [63:0]         m_axi_s2mm_awaddr,
  output logic [7:0]          m_axi_s2mm_awlen,
  output logic [2:0]          m_axi_s2mm_awsize,
  output logic [1:0]          m_axi_s2mm_awburst,
  output logic                m_axi_s2mm_awlock,
  output logic [3:0]          m_axi_s2mm_awcache,
  output logic [2:0]          m_axi_s2mm_awprot,
  output logic [3:0]          m_axi_s2mm_awqos,
  output logic                m_axi_s2mm_awvalid,
  input  logic                m_axi_s2mm_awready,
  output logic [BusWidth-1:0] m_axi_s2mm_wdata,
  output logic [BusBytes-1:0] m_axi_s2mm_wstrb,
  output logic                m_axi_s2mm_wlast,
  output logic                m_axi_s2mm_wvalid,
  input  logic                m_axi_s2mm_wready,
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic [0:0]          m_axi_s2mm_bid,
  /* verilator lint_on UNUSEDSIGNAL */
  input  logic [1:0]          m_axi_s2mm_bresp,
  input  logic                m_axi_s2mm_bvalid,
  output logic                m_axi_s2mm_bready,
  // Interrupts, level
  output logic                mm2s_introut,
  output logic                s2mm_introut
);
  // ---------------------------------------------------------------------------------------------
  // What never changes on AXI: INCR, full width, normal memory (modifiable, bufferable), data,
  // secure, unprivileged
  // ---------------------------------------------------------------------------------------------
  localparam logic [2:0] SizeSg   = 3'd2;
  localparam logic [2:0] SizeData = 3'($clog2(BusBytes));
  localparam logic [1:0] Incr     = 2'b01;
  localparam logic [3:0] Cache    = 4'b0011;

  assign m_axi_sg_awid      = 1'b0;
  assign m_axi_sg_awsize    = SizeSg;
  assign m_axi_sg_awburst   = Incr;
  assign m_axi_sg_awlock    = 1'b0;
  assign m_axi_sg_awcache   = Cache;
  assign m_axi_sg_awprot    = 3'b000;
  assign m_axi_sg_awqos     = 4'd0;
  assign m_axi_sg_arid      = 1'b0;
  assign m_axi_sg_arsize    = SizeSg;
  assign m_axi_sg_arburst   = Incr;
  assign m_axi_sg_arlock    = 1'b0;
  assign m_axi_sg_arcache   = Cache;
  assign m_axi_sg_arprot    = 3'b000;
  assign m_axi_sg_arqos     = 4'd0;
  assign m_axi_mm2s_arid    = 1'b0;
  assign m_axi_mm2s_arsize  = SizeData;
  assign m_axi_mm2s_arburst = Incr;
  assign m_axi_mm2s_arlock  = 1'b0;
  assign m_axi_mm2s_arcache = Cache;
  assign m_axi_mm2s_arprot  = 3'b000;
  assign m_axi_mm2s_arqos   = 4'd0;
  assign m_axi_s2mm_awid    = 1'b0;
  assign m_axi_s2mm_awsize  = SizeData;
  assign m_axi_s2mm_awburst = Incr;
  assign m_axi_s2mm_awlock  = 1'b0;
  assign m_axi_s2mm_awcache = Cache;
  assign m_axi_s2mm_awprot  = 3'b000;
  assign m_axi_s2mm_awqos   = 4'd0;

  // Descriptors are read whole, eight words from their first, and only STATUS is written.
  assign m_axi_sg_arlen     = 8'd7;
  assign m_axi_sg_awlen     = 8'd0;
  assign m_axi_sg_wstrb     = 4'hF;
  assign m_axi_sg_wlast     = 1'b1;

  // ---------------------------------------------------------------------------------------------
  // Registers
  // ---------------------------------------------------------------------------------------------
  logic [11:0]      awaddr, araddr;
  logic [31:0]      wdata;
  logic [3:0]       wstrb;
  logic [1:0]       awvalid, awready, wvalid, wready, bvalid, bready;
  logic [1:0]       arvalid, arready, rvalid, rready;
  logic [1:0][1:0]  bresp, rresp;
  logic [1:0][31:0] rdata;

  ws_axil_demux u_demux (
    .aclk,
    .aresetn,
    .s_axi_awaddr  (s_axi_ctrl_awaddr),
    .s_axi_awvalid (s_axi_ctrl_awvalid),
    .s_axi_awready (s_axi_ctrl_awready),
    .s_axi_wdata   (s_axi_ctrl_wdata),
    .s_axi_wstrb   (s_axi_ctrl_wstrb),
    .s_axi_wvalid  (s_axi_ctrl_wvalid),
    .s_axi_wready  (s_axi_ctrl_wready),
    .s_axi_bresp   (s_axi_ctrl_bresp),
    .s_axi_bvalid  (s_axi_ctrl_bvalid),
    .s_axi_bready  (s_axi_ctrl_bready),
    .s_axi_araddr  (s_axi_ctrl_araddr),
    .s_axi_arvalid (s_axi_ctrl_arvalid),
    .s_axi_arready (s_axi_ctrl_arready),
    .s_axi_rdata   (s_axi_ctrl_rdata),
    .s_axi_rresp   (s_axi_ctrl_rresp),
    .s_axi_rvalid  (s_axi_ctrl_rvalid),
    .s_axi_rready  (s_axi_ctrl_rready),
    .m_axi_awaddr  (awaddr),
    .m_axi_awvalid (awvalid),
    .m_axi_awready (awready),
    .m_axi_wdata   (wdata),
    .m_axi_wstrb   (wstrb),
    .m_axi_wvalid  (wvalid),
    .m_axi_wready  (wready),
    .m_axi_bresp   (bresp),
    .m_axi_bvalid  (bvalid),
    .m_axi_bready  (bready),
    .m_axi_araddr  (araddr),
    .m_axi_arvalid (arvalid),
    .m_axi_arready (arready),
    .m_axi_rdata   (rdata),
    .m_axi_rresp   (rresp),
    .m_axi_rvalid  (rvalid),
    .m_axi_rready  (rready)
  );

  // ---------------------------------------------------------------------------------------------
  // DMA engine
  // ---------------------------------------------------------------------------------------------
  // The stream handshakes can be read by a simulation, to tell which side of a stuck stream waits.
  logic                mm2s_tvalid /* verilator public_flat_rd */;
  logic                mm2s_tready /* verilator public_flat_rd */;
  logic                s2mm_tvalid /* verilator public_flat_rd */;
  logic                s2mm_tready /* verilator public_flat_rd */;
  logic [BusWidth-1:0] mm2s_tdata, s2mm_tdata;
  logic [BusBytes-1:0] mm2s_tkeep, s2mm_tkeep;
  logic                mm2s_tlast, s2mm_tlast;

  ws_dma #(
    .BusWidth   (BusWidth),
    .LengthWidth(LengthWidth)
  ) u_dma (
    .aclk,
    .aresetn,
    .s_axi_ctrl_awaddr  (awaddr),
    .s_axi_ctrl_awvalid (awvalid[0]),
    .s_axi_ctrl_awready (awready[0]),
    .s_axi_ctrl_wdata   (wdata),
    .s_axi_ctrl_wstrb   (wstrb),
    .s_axi_ctrl_wvalid  (wvalid[0]),
    .s_axi_ctrl_wready  (wready[0]),
    .s_axi_ctrl_bresp   (bresp[0]),
    .s_axi_ctrl_bvalid  (bvalid[0]),
    .s_axi_ctrl_bready  (bready[0]),
    .s_axi_ctrl_araddr  (araddr),
    .s_axi_ctrl_arvalid (arvalid[0]),
    .s_axi_ctrl_arready (arready[0]),
    .s_axi_ctrl_rdata   (rdata[0]),
    .s_axi_ctrl_rresp   (rresp[0]),
    .s_axi_ctrl_rvalid  (rvalid[0]),
    .s_axi_ctrl_rready  (rready[0]),
    .m_axi_sg_awaddr,
    .m_axi_sg_awvalid,
    .m_axi_sg_awready,
    .m_axi_sg_wdata,
    .m_axi_sg_wvalid,
    .m_axi_sg_wready,
    .m_axi_sg_bresp,
    .m_axi_sg_bvalid,
    .m_axi_sg_bready,
    .m_axi_sg_araddr,
    .m_axi_sg_arvalid,
    .m_axi_sg_arready,
    .m_axi_sg_rdata,
    .m_axi_sg_rresp,
    .m_axi_sg_rlast,
    .m_axi_sg_rvalid,
    .m_axi_sg_rready,
    .m_axi_mm2s_araddr,
    .m_axi_mm2s_arlen,
    .m_axi_mm2s_arvalid,
    .m_axi_mm2s_arready,
    .m_axi_mm2s_rdata,
    .m_axi_mm2s_rresp,
    .m_axi_mm2s_rlast,
    .m_axi_mm2s_rvalid,
    .m_axi_mm2s_rready,
    .m_axis_mm2s_tdata  (mm2s_tdata),
    .m_axis_mm2s_tkeep  (mm2s_tkeep),
    .m_axis_mm2s_tlast  (mm2s_tlast),
    .m_axis_mm2s_tvalid (mm2s_tvalid),
    .m_axis_mm2s_tready (mm2s_tready),
    .m_axi_s2mm_awaddr,
    .m_axi_s2mm_awlen,
    .m_axi_s2mm_awvalid,
    .m_axi_s2mm_awready,
    .m_axi_s2mm_wdata,
    .m_axi_s2mm_wstrb,
    .m_axi_s2mm_wlast,
    .m_axi_s2mm_wvalid,
    .m_axi_s2mm_wready,
    .m_axi_s2mm_bresp,
    .m_axi_s2mm_bvalid,
    .m_axi_s2mm_bready,
    .s_axis_s2mm_tdata  (s2mm_tdata),
    .s_axis_s2mm_tkeep  (s2mm_tkeep),
    .s_axis_s2mm_tlast  (s2mm_tlast),
    .s_axis_s2mm_tvalid (s2mm_tvalid),
    .s_axis_s2mm_tready (s2mm_tready),
    .mm2s_introut,
    .s2mm_introut
  );

  // ---------------------------------------------------------------------------------------------
  // Kernel
  // ---------------------------------------------------------------------------------------------
  `WS_KERNEL #(
    .BusWidth      (BusWidth),
    .BlocksPerCycle(BlocksPerCycle),
    .MaxCols       (MaxCols),
    .MaxK          (MaxK)
  ) u_kernel (
    .aclk,
    .aresetn,
    .s_axi_ctrl_awprot  (s_axi_ctrl_awprot),
    .s_axi_ctrl_arprot  (s_axi_ctrl_arprot),
    .s_axi_ctrl_awaddr  (awaddr),
    .s_axi_ctrl_awvalid (awvalid[1]),
    .s_axi_ctrl_awready (awready[1]),
    .s_axi_ctrl_wdata   (wdata),
    .s_axi_ctrl_wstrb   (wstrb),
    .s_axi_ctrl_wvalid  (wvalid[1]),
    .s_axi_ctrl_wready  (wready[1]),
    .s_axi_ctrl_bresp   (bresp[1]),
    .s_axi_ctrl_bvalid  (bvalid[1]),
    .s_axi_ctrl_bready  (bready[1]),
    .s_axi_ctrl_araddr  (araddr),
    .s_axi_ctrl_arvalid (arvalid[1]),
    .s_axi_ctrl_arready (arready[1]),
    .s_axi_ctrl_rdata   (rdata[1]),
    .s_axi_ctrl_rresp   (rresp[1]),
    .s_axi_ctrl_rvalid  (rvalid[1]),
    .s_axi_ctrl_rready  (rready[1]),
    .s_axis_tdata       (mm2s_tdata),
    .s_axis_tkeep       (mm2s_tkeep),
    .s_axis_tlast       (mm2s_tlast),
    .s_axis_tvalid      (mm2s_tvalid),
    .s_axis_tready      (mm2s_tready),
    .m_axis_tdata       (s2mm_tdata),
    .m_axis_tkeep       (s2mm_tkeep),
    .m_axis_tlast       (s2mm_tlast),
    .m_axis_tvalid      (s2mm_tvalid),
    .m_axis_tready      (s2mm_tready)
  );

endmodule
