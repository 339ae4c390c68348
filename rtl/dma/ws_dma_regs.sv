// The DMA engine's AXI4-Lite port, and the soft reset: `Reset` in either DMACR stops both
// channels, waits until nothing is out on AXI, and then resets all of the engine for a cycle.
// The channels' registers are their own (ws_dma_chan_regs). Only whole words are written.
//
// Latency: 2 cycles from address and data to a register and to the response, 3 from an address to
// read data. One write and one read at a time.
module ws_dma_regs (
  input  logic        clk_i,
  input  logic        rst_ni,
  output logic        soft_rst_o,   // one cycle: everything but this port starts anew
  output logic        resetting_o,  // from the write of Reset until then
  input  logic        settled_i,    // both channels are halted and quiet
  // AXI4-Lite
  input  logic [11:0] awaddr_i,
  input  logic        awvalid_i,
  output logic        awready_o,
  input  logic [31:0] wdata_i,
  input  logic [3:0]  wstrb_i,
  input  logic        wvalid_i,
  output logic        wready_o,
  output logic [1:0]  bresp_o,
  output logic        bvalid_o,
  input  logic        bready_i,
  input  logic [11:0] araddr_i,
  input  logic        arvalid_i,
  output logic        arready_o,
  output logic [31:0] rdata_o,
  output logic [1:0]  rresp_o,
  output logic        rvalid_o,
  input  logic        rready_i,
  // The channels' registers: offsets within the channel
  output logic        mm2s_we_o,
  output logic        s2mm_we_o,
  output logic [4:0]  waddr_o,
  output logic [31:0] wdata_o,
  output logic        mm2s_re_o,
  output logic        s2mm_re_o,
  output logic [4:0]  raddr_o,
  input  logic [31:0] mm2s_rdata_i,
  input  logic [31:0] s2mm_rdata_i
);
  localparam logic [11:0] ChanSize = 12'h018;
  localparam logic [11:0] S2mmBase = ws_dma_pkg::S2mmDmacr[11:0];

  function automatic logic in_mm2s(input logic [11:0] addr);
    in_mm2s = addr < ChanSize;
  endfunction

  function automatic logic in_s2mm(input logic [11:0] addr);
    in_s2mm = (addr >= S2mmBase) && (addr < S2mmBase + ChanSize);
  endfunction

  // The offset within its channel, whose registers begin at 0x00 or 0x30.
  function automatic logic [4:0] offset(input logic [4:0] word);
    offset = {word[4] || (word[2] && !word[3]), word[1:0], 2'b00};
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Writes: address and data come in either order
  // ---------------------------------------------------------------------------------------------
  logic        aw_q, w_q, whole_q, bvalid_q;
  logic [11:0] awaddr_q;

  assign awready_o = !aw_q && !bvalid_q;
  assign wready_o  = !w_q && !bvalid_q;
  assign bvalid_o  = bvalid_q;
  assign bresp_o   = 2'b00;

  always_ff @(posedge clk_i) begin
    mm2s_we_o <= 1'b0;
    s2mm_we_o <= 1'b0;
    if (!rst_ni) begin
      aw_q     <= 1'b0;
      w_q      <= 1'b0;
      bvalid_q <= 1'b0;
    end else if (aw_q && w_q) begin
      aw_q      <= 1'b0;
      w_q       <= 1'b0;
      bvalid_q  <= 1'b1;
      mm2s_we_o <= whole_q && in_mm2s(awaddr_q);
      s2mm_we_o <= whole_q && in_s2mm(awaddr_q);
      waddr_o   <= offset(awaddr_q[6:2]);
    end else begin
      if (awvalid_i && awready_o) begin
        aw_q     <= 1'b1;
        awaddr_q <= awaddr_i;
      end
      if (wvalid_i && wready_o) begin
        w_q     <= 1'b1;
        wdata_o <= wdata_i;
        whole_q <= &wstrb_i;
      end
      if (bready_i) bvalid_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Reads: the channel's answer comes a cycle after it is asked
  // ---------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {StIdle, StAsk, StTake, StRespond} state_e;

  state_e      rstate_q;
  logic [11:0] araddr_q;

  assign arready_o = rstate_q == StIdle;
  assign rvalid_o  = rstate_q == StRespond;
  assign rresp_o   = 2'b00;
  assign mm2s_re_o = (rstate_q == StAsk) && in_mm2s(araddr_q);
  assign s2mm_re_o = (rstate_q == StAsk) && in_s2mm(araddr_q);
  assign raddr_o   = offset(araddr_q[6:2]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rstate_q <= StIdle;
    end else begin
      unique case (rstate_q)
        StIdle: if (arvalid_i) begin
          rstate_q <= StAsk;
          araddr_q <= araddr_i;
        end
        StAsk: rstate_q <= StTake;
        StTake: begin
          rstate_q <= StRespond;
          rdata_o  <= in_mm2s(araddr_q) ? mm2s_rdata_i : in_s2mm(araddr_q) ? s2mm_rdata_i : '0;
        end
        default: if (rready_i) rstate_q <= StIdle;
      endcase
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Soft reset
  // ---------------------------------------------------------------------------------------------
  logic soft_rst_q, resetting_q;

  assign soft_rst_o  = soft_rst_q;
  assign resetting_o = resetting_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || soft_rst_q) begin
      resetting_q <= 1'b0;
      soft_rst_q  <= 1'b0;
    end else if (resetting_q) begin
      soft_rst_q  <= settled_i;
    end else if (mm2s_we_o || s2mm_we_o) begin
      resetting_q <= (waddr_o == ws_dma_pkg::Mm2sDmacr[4:0]) &&
                     (|(wdata_o & ws_dma_pkg::DmacrReset));
    end
  end

endmodule
