// A stand-in for the streaming kernel, to test the DMA engine through the whole top level: what
// comes in goes out again, beat for beat. One register at any address of its window:
//   0 hold the input, 1 hold the output, 2 forget all beats (while set),
//   15:8 and 23:16 how often of 256 cycles input and output stall, 31 fail an assertion.
module ws_kernel #(
  parameter int unsigned BusWidth = 128,
  /* verilator lint_off UNUSEDPARAM */
  parameter int unsigned BlocksPerCycle = 1,
  parameter int unsigned MaxCols = 4,
  parameter int unsigned MaxK = 16384,
  /* verilator lint_on UNUSEDPARAM */
  localparam int unsigned BusBytes = BusWidth / 8
) (
  input  logic                aclk,
  input  logic                aresetn,
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic [11:0]         s_axi_ctrl_awaddr,
  input  logic [2:0]          s_axi_ctrl_awprot,
  input  logic [11:0]         s_axi_ctrl_araddr,
  input  logic [2:0]          s_axi_ctrl_arprot,
  input  logic [3:0]          s_axi_ctrl_wstrb,
  /* verilator lint_on UNUSEDSIGNAL */
  input  logic                s_axi_ctrl_awvalid,
  output logic                s_axi_ctrl_awready,
  input  logic [31:0]         s_axi_ctrl_wdata,
  input  logic                s_axi_ctrl_wvalid,
  output logic                s_axi_ctrl_wready,
  output logic [1:0]          s_axi_ctrl_bresp,
  output logic                s_axi_ctrl_bvalid,
  input  logic                s_axi_ctrl_bready,
  input  logic                s_axi_ctrl_arvalid,
  output logic                s_axi_ctrl_arready,
  output logic [31:0]         s_axi_ctrl_rdata,
  output logic [1:0]          s_axi_ctrl_rresp,
  output logic                s_axi_ctrl_rvalid,
  input  logic                s_axi_ctrl_rready,
  input  logic [BusWidth-1:0] s_axis_tdata,
  input  logic [BusBytes-1:0] s_axis_tkeep,
  input  logic                s_axis_tlast,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  output logic [BusWidth-1:0] m_axis_tdata,
  output logic [BusBytes-1:0] m_axis_tkeep,
  output logic                m_axis_tlast,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready
);
  // ---------------------------------------------------------------------------------------------
  // The register
  // ---------------------------------------------------------------------------------------------
  logic        aw_q, w_q;
  logic [31:0] ctrl_q;

  assign s_axi_ctrl_awready = !aw_q && !s_axi_ctrl_bvalid;
  assign s_axi_ctrl_wready  = !w_q && !s_axi_ctrl_bvalid;
  assign s_axi_ctrl_bresp   = 2'b00;
  assign s_axi_ctrl_arready = !s_axi_ctrl_rvalid;
  assign s_axi_ctrl_rdata   = ctrl_q;
  assign s_axi_ctrl_rresp   = 2'b00;

  always_ff @(posedge aclk) begin
    if (!aresetn) begin
      aw_q              <= 1'b0;
      w_q               <= 1'b0;
      s_axi_ctrl_bvalid <= 1'b0;
      s_axi_ctrl_rvalid <= 1'b0;
      ctrl_q            <= '0;
    end else begin
      aw_q <= (aw_q || (s_axi_ctrl_awvalid && s_axi_ctrl_awready)) && !(aw_q && w_q);
      w_q  <= (w_q || (s_axi_ctrl_wvalid && s_axi_ctrl_wready)) && !(aw_q && w_q);
      if (s_axi_ctrl_wvalid && s_axi_ctrl_wready) ctrl_q <= s_axi_ctrl_wdata;
      assert (!ctrl_q[31]) else $error("asked to fail");
      if (aw_q && w_q) s_axi_ctrl_bvalid <= 1'b1;
      else if (s_axi_ctrl_bready) s_axi_ctrl_bvalid <= 1'b0;
      if (!s_axi_ctrl_rvalid) s_axi_ctrl_rvalid <= s_axi_ctrl_arvalid;
      else if (s_axi_ctrl_rready) s_axi_ctrl_rvalid <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Stalls
  // ---------------------------------------------------------------------------------------------
  logic [31:0] lfsr_q;
  logic        stall_in_q, stall_out;

  assign stall_out = ctrl_q[1] || (lfsr_q[15:8] < ctrl_q[23:16]);

  always_ff @(posedge aclk) begin
    if (!aresetn) begin
      lfsr_q     <= 32'h1;
      stall_in_q <= 1'b1;
    end else begin
      lfsr_q     <= {lfsr_q[30:0], lfsr_q[31] ^ lfsr_q[21] ^ lfsr_q[1] ^ lfsr_q[0]};
      stall_in_q <= ctrl_q[0] || (lfsr_q[7:0] < ctrl_q[15:8]);
    end
  end

  // ---------------------------------------------------------------------------------------------
  // The loop
  // ---------------------------------------------------------------------------------------------
  localparam int unsigned Depth = 32;

  logic                     fifo_valid, load;
  logic [$clog2(Depth+1)-1:0] count;
  logic [BusWidth+BusBytes:0] fifo_data;

  assign s_axis_tready = !stall_in_q && (count != $bits(count)'(Depth));
  assign load          = fifo_valid && !stall_out && (!m_axis_tvalid || m_axis_tready);

  ws_dma_fifo #(
    .Width(BusWidth + BusBytes + 1),
    .Depth(Depth)
  ) u_fifo (
    .clk_i  (aclk),
    .rst_ni (aresetn),
    .clear_i(ctrl_q[2]),
    .push_i (s_axis_tvalid && s_axis_tready && !ctrl_q[2]),
    .data_i ({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
    .pop_i  (load),
    .valid_o(fifo_valid),
    .data_o (fifo_data),
    .count_o(count)
  );

  always_ff @(posedge aclk) begin
    if (load) {m_axis_tlast, m_axis_tkeep, m_axis_tdata} <= fifo_data;
    if (!aresetn || ctrl_q[2]) m_axis_tvalid <= 1'b0;
    else if (load) m_axis_tvalid <= 1'b1;
    else if (m_axis_tready) m_axis_tvalid <= 1'b0;
  end

endmodule
