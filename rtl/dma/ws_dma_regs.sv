// The DMA engine's AXI4-Lite port, the registers of both channels, and the soft reset: `Reset`
// in either DMACR stops both channels, waits until nothing is out on AXI, and then resets all of
// the engine for a cycle.
module ws_dma_regs
  import ws_dma_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,
  output logic             soft_rst_o,   // one cycle: everything but this port starts anew
  // AXI4-Lite
  input  logic [11:0]      awaddr_i,
  input  logic             awvalid_i,
  output logic             awready_o,
  input  logic [31:0]      wdata_i,
  input  logic [3:0]       wstrb_i,
  input  logic             wvalid_i,
  output logic             wready_o,
  output logic [1:0]       bresp_o,
  output logic             bvalid_o,
  input  logic             bready_i,
  input  logic [11:0]      araddr_i,
  input  logic             arvalid_i,
  output logic             arready_o,
  output logic [31:0]      rdata_o,
  output logic [1:0]       rresp_o,
  output logic             rvalid_o,
  input  logic             rready_i,
  // Channels: 0 is MM2S, 1 is S2MM
  output logic      [1:0]  run_o,
  output logic      [1:0]  halted_o,
  output logic      [1:0]  start_o,
  output logic      [1:0]  tail_we_o,
  output desc_ptr_t [1:0]  curdesc_o,
  output desc_ptr_t [1:0]  taildesc_o,
  input  logic      [1:0]  quiet_i,
  input  logic      [1:0]  idle_i,
  input  logic      [1:0]  retire_i,
  input  desc_ptr_t [1:0]  retire_ptr_i,
  input  logic      [1:0]  packet_i,
  input  err_t      [1:0]  dma_err_i,
  input  err_t      [1:0]  sg_err_i,
  output logic      [1:0]  introut_o
);
  // ---------------------------------------------------------------------------------------------
  // AXI4-Lite: address and data of a write come in either order; all outputs are registers
  // ---------------------------------------------------------------------------------------------
  logic        aw_q, w_q, bvalid_q, rvalid_q;
  logic [11:0] awaddr_q;
  logic [31:0] wdata_q, wmask_q, rdata_q;
  logic        we;

  assign awready_o = !aw_q && !bvalid_q;
  assign wready_o  = !w_q && !bvalid_q;
  assign bvalid_o  = bvalid_q;
  assign bresp_o   = 2'b00;
  assign arready_o = !rvalid_q;
  assign rvalid_o  = rvalid_q;
  assign rdata_o   = rdata_q;
  assign rresp_o   = 2'b00;
  assign we        = aw_q && w_q;

  always_ff @(posedge clk_i) begin
    if (awvalid_i && awready_o) awaddr_q <= awaddr_i;
    if (wvalid_i && wready_o) begin
      wdata_q <= wdata_i;
      wmask_q <= {{8{wstrb_i[3]}}, {8{wstrb_i[2]}}, {8{wstrb_i[1]}}, {8{wstrb_i[0]}}};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_q     <= 1'b0;
      w_q      <= 1'b0;
      bvalid_q <= 1'b0;
      rvalid_q <= 1'b0;
    end else begin
      if (we) aw_q <= 1'b0;
      else if (awvalid_i && awready_o) aw_q <= 1'b1;
      if (we) w_q <= 1'b0;
      else if (wvalid_i && wready_o) w_q <= 1'b1;
      if (we) bvalid_q <= 1'b1;
      else if (bready_i) bvalid_q <= 1'b0;
      if (!rvalid_q) rvalid_q <= arvalid_i;
      else if (rready_i) rvalid_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Channels: MM2S at 0x00, S2MM at 0x30
  // ---------------------------------------------------------------------------------------------
  localparam logic [11:0] ChanSize = 12'h018;

  logic [1:0]       we_chan, reset_req;
  logic [1:0][31:0] rdata_chan;
  logic [1:0][11:0] waddr_chan, raddr_chan;
  logic             chan_rst_n, resetting_q;

  assign waddr_chan[0] = awaddr_q;
  assign raddr_chan[0] = araddr_i;
  assign waddr_chan[1] = awaddr_q - S2mmDmacr[11:0];
  assign raddr_chan[1] = araddr_i - S2mmDmacr[11:0];

  for (genvar c = 0; c < 2; c++) begin : gen_chan
    assign we_chan[c] = we && (waddr_chan[c] < ChanSize);

    ws_dma_chan_regs u_regs (
      .clk_i,
      .rst_ni      (chan_rst_n),
      .we_i        (we_chan[c]),
      .addr_i      ({waddr_chan[c][4:2], 2'b00}),
      .wdata_i     (wdata_q),
      .wmask_i     (wmask_q),
      .raddr_i     ({raddr_chan[c][4:2], 2'b00}),
      .rdata_o     (rdata_chan[c]),
      .reset_req_o (reset_req[c]),
      .resetting_i (resetting_q),
      .run_o       (run_o[c]),
      .halted_o    (halted_o[c]),
      .start_o     (start_o[c]),
      .tail_we_o   (tail_we_o[c]),
      .curdesc_o   (curdesc_o[c]),
      .taildesc_o  (taildesc_o[c]),
      .quiet_i     (quiet_i[c]),
      .idle_i      (idle_i[c]),
      .retire_i    (retire_i[c]),
      .retire_ptr_i(retire_ptr_i[c]),
      .packet_i    (packet_i[c]),
      .dma_err_i   (dma_err_i[c]),
      .sg_err_i    (sg_err_i[c]),
      .introut_o   (introut_o[c])
    );
  end

  always_ff @(posedge clk_i) begin
    if (arvalid_i && arready_o) begin
      rdata_q <= (raddr_chan[0] < ChanSize) ? rdata_chan[0] :
                 (raddr_chan[1] < ChanSize) ? rdata_chan[1] : '0;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Soft reset
  // ---------------------------------------------------------------------------------------------
  logic soft_rst_q;

  assign chan_rst_n = rst_ni && !soft_rst_q;
  assign soft_rst_o = soft_rst_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      resetting_q <= 1'b0;
      soft_rst_q  <= 1'b0;
    end else begin
      soft_rst_q <= resetting_q && !soft_rst_q && (&halted_o) && (&quiet_i) && !(|start_o);
      if (soft_rst_q) resetting_q <= 1'b0;
      else if (|reset_req) resetting_q <= 1'b1;
    end
  end

  assert property (@(posedge clk_i) disable iff (!rst_ni)
    bvalid_q && !bready_i |=> bvalid_q) else $error("BVALID fell before BREADY");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    rvalid_q && !rready_i |=> rvalid_q && $stable(rdata_q)) else $error("R changed before RREADY");

endmodule
