// AXI4-Lite: one port of 16 address bits to 4 KiB windows, window 0 the DMA engine and window 1
// the streaming kernel. An address in no window reads 0 and swallows writes, with OKAY.
// One read and one write are in flight at a time; all outputs are registers or constants.
// Latency: 2 cycles to the window, 1 back.
module ws_axil_demux #(
  localparam int unsigned Windows = 2
) (
  input  logic                     aclk,
  input  logic                     aresetn,
  // From the host
  input  logic [15:0]              s_axi_awaddr,
  input  logic                     s_axi_awvalid,
  output logic                     s_axi_awready,
  input  logic [31:0]              s_axi_wdata,
  input  logic [3:0]               s_axi_wstrb,
  input  logic                     s_axi_wvalid,
  output logic                     s_axi_wready,
  output logic [1:0]               s_axi_bresp,
  output logic                     s_axi_bvalid,
  input  logic                     s_axi_bready,
  input  logic [15:0]              s_axi_araddr,
  input  logic                     s_axi_arvalid,
  output logic                     s_axi_arready,
  output logic [31:0]              s_axi_rdata,
  output logic [1:0]               s_axi_rresp,
  output logic                     s_axi_rvalid,
  input  logic                     s_axi_rready,
  // To the windows: address and data are shared, the handshakes are each window's own
  output logic [11:0]              m_axi_awaddr,
  output logic [Windows-1:0]       m_axi_awvalid,
  input  logic [Windows-1:0]       m_axi_awready,
  output logic [31:0]              m_axi_wdata,
  output logic [3:0]               m_axi_wstrb,
  output logic [Windows-1:0]       m_axi_wvalid,
  input  logic [Windows-1:0]       m_axi_wready,
  input  logic [Windows-1:0][1:0]  m_axi_bresp,
  input  logic [Windows-1:0]       m_axi_bvalid,
  output logic [Windows-1:0]       m_axi_bready,
  output logic [11:0]              m_axi_araddr,
  output logic [Windows-1:0]       m_axi_arvalid,
  input  logic [Windows-1:0]       m_axi_arready,
  input  logic [Windows-1:0][31:0] m_axi_rdata,
  input  logic [Windows-1:0][1:0]  m_axi_rresp,
  input  logic [Windows-1:0]       m_axi_rvalid,
  output logic [Windows-1:0]       m_axi_rready
);
  typedef enum logic [1:0] {StIdle, StRequest, StWait, StRespond} state_e;

  // The windows that an address selects: one or none.
  function automatic logic [Windows-1:0] select(input logic [3:0] window);
    for (int unsigned i = 0; i < Windows; i++) select[i] = window == 4'(i);
  endfunction

  // ---------------------------------------------------------------------------------------------
  // Writes
  // ---------------------------------------------------------------------------------------------
  state_e             wstate_q;
  logic               aw_q, w_q;        // address and data are here
  logic [15:0]        awaddr_q;
  logic [Windows-1:0] wsel;

  assign wsel          = select(awaddr_q[15:12]);
  assign s_axi_awready = (wstate_q == StIdle) && !aw_q;
  assign s_axi_wready  = (wstate_q == StIdle) && !w_q;
  assign s_axi_bvalid  = wstate_q == StRespond;
  assign m_axi_awaddr  = awaddr_q[11:0];
  // While a request is out, `aw_q` and `w_q` tell that it is not yet taken.
  assign m_axi_awvalid = (wstate_q == StRequest && aw_q) ? wsel : '0;
  assign m_axi_wvalid  = (wstate_q == StRequest && w_q) ? wsel : '0;
  assign m_axi_bready  = (wstate_q == StWait) ? wsel : '0;

  always_ff @(posedge aclk) begin
    if (s_axi_awvalid && s_axi_awready) awaddr_q <= s_axi_awaddr;
    if (s_axi_wvalid && s_axi_wready) begin
      m_axi_wdata <= s_axi_wdata;
      m_axi_wstrb <= s_axi_wstrb;
    end
    if (wstate_q == StRequest) s_axi_bresp <= 2'b00;
    for (int unsigned i = 0; i < Windows; i++) begin
      if (m_axi_bvalid[i] && m_axi_bready[i]) s_axi_bresp <= m_axi_bresp[i];
    end
  end

  always_ff @(posedge aclk) begin
    if (!aresetn) begin
      wstate_q <= StIdle;
      aw_q     <= 1'b0;
      w_q      <= 1'b0;
    end else begin
      unique case (wstate_q)
        StIdle: begin
          if (s_axi_awvalid) aw_q <= 1'b1;
          if (s_axi_wvalid) w_q <= 1'b1;
          if (aw_q && w_q) wstate_q <= StRequest;
        end
        StRequest: begin
          if ((wsel == '0) || (|(wsel & m_axi_awready))) aw_q <= 1'b0;
          if ((wsel == '0) || (|(wsel & m_axi_wready))) w_q <= 1'b0;
          if (!aw_q && !w_q) wstate_q <= (wsel == '0) ? StRespond : StWait;
        end
        StWait: if (|(wsel & m_axi_bvalid)) wstate_q <= StRespond;
        default: if (s_axi_bready) wstate_q <= StIdle;
      endcase
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Reads
  // ---------------------------------------------------------------------------------------------
  state_e             rstate_q;
  logic [15:0]        araddr_q;
  logic [Windows-1:0] rsel;

  assign rsel          = select(araddr_q[15:12]);
  assign s_axi_arready = rstate_q == StIdle;
  assign s_axi_rvalid  = rstate_q == StRespond;
  assign m_axi_araddr  = araddr_q[11:0];
  assign m_axi_arvalid = (rstate_q == StRequest) ? rsel : '0;
  assign m_axi_rready  = (rstate_q == StWait) ? rsel : '0;

  always_ff @(posedge aclk) begin
    if (s_axi_arvalid && s_axi_arready) araddr_q <= s_axi_araddr;
    if (rstate_q == StRequest) begin
      s_axi_rdata <= '0;
      s_axi_rresp <= 2'b00;
    end
    for (int unsigned i = 0; i < Windows; i++) begin
      if (m_axi_rvalid[i] && m_axi_rready[i]) begin
        s_axi_rdata <= m_axi_rdata[i];
        s_axi_rresp <= m_axi_rresp[i];
      end
    end
  end

  always_ff @(posedge aclk) begin
    if (!aresetn) begin
      rstate_q <= StIdle;
    end else begin
      unique case (rstate_q)
        StIdle:    if (s_axi_arvalid) rstate_q <= StRequest;
        StRequest: begin
          if (rsel == '0) rstate_q <= StRespond;
          else if (|(rsel & m_axi_arready)) rstate_q <= StWait;
        end
        StWait:    if (|(rsel & m_axi_rvalid)) rstate_q <= StRespond;
        default:   if (s_axi_rready) rstate_q <= StIdle;
      endcase
    end
  end

endmodule
