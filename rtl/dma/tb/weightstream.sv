// A stand-in for the accelerator that breaks rules of AXI, to show that the harness's checkers are
// at every port and bite. A write to any register says which rule on which channel: 7:0 the
// channel's number (sim/cpp/fault.h), 15:8 the rule.
module weightstream #(
  parameter int unsigned BusWidth       = 128,
  /* verilator lint_off UNUSEDPARAM */
  parameter int unsigned BlocksPerCycle = 1,
  /* verilator lint_on UNUSEDPARAM */
  localparam int unsigned BusBytes      = BusWidth / 8
) (
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic                aclk,
  input  logic                aresetn,
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
  input  logic [0:0]          m_axi_sg_bid,
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
  input  logic [0:0]          m_axi_sg_rid,
  input  logic [31:0]         m_axi_sg_rdata,
  input  logic [1:0]          m_axi_sg_rresp,
  input  logic                m_axi_sg_rlast,
  input  logic                m_axi_sg_rvalid,
  output logic                m_axi_sg_rready,
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
  input  logic [0:0]          m_axi_mm2s_rid,
  input  logic [BusWidth-1:0] m_axi_mm2s_rdata,
  input  logic [1:0]          m_axi_mm2s_rresp,
  input  logic                m_axi_mm2s_rlast,
  input  logic                m_axi_mm2s_rvalid,
  output logic                m_axi_mm2s_rready,
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
  input  logic [0:0]          m_axi_s2mm_bid,
  input  logic [1:0]          m_axi_s2mm_bresp,
  input  logic                m_axi_s2mm_bvalid,
  output logic                m_axi_s2mm_bready,
  output logic                mm2s_introut,
  output logic                s2mm_introut
  /* verilator lint_on UNUSEDSIGNAL */
);
  typedef enum logic [7:0] {
    RuleFall    = 8'd1,   // VALID falls before READY
    RuleChange  = 8'd2,   // the payload changes before READY
    RuleCross   = 8'd3,   // a burst crosses 4 KiB
    RuleSize    = 8'd4,   // not the full width
    RuleBurst   = 8'd5,   // not INCR
    RuleReset   = 8'd6,   // VALID in reset
    RuleEarly   = 8'd7,   // WLAST before the last beat
    RuleLate    = 8'd8,   // no WLAST in the last beat
    RuleStrobe  = 8'd9,   // a strobe below the first byte of a burst
    RuleUnasked = 8'd10,  // a response that nothing asked for
    RuleError   = 8'd11   // a register access that fails
  } rule_e;

  localparam logic [7:0] CtrlB = 8'd2, CtrlR = 8'd4, SgAw = 8'd5, SgW = 8'd6, SgAr = 8'd8,
                         Mm2sAr = 8'd10, S2mmAw = 8'd12, S2mmW = 8'd13;

  // ---------------------------------------------------------------------------------------------
  // The register. It outlives a reset, as the rule about resets wants it.
  // ---------------------------------------------------------------------------------------------
  logic [15:0] what_q = '0;
  logic [7:0]  channel, rule, time_q;  // cycles since the write
  logic        write, b_q, r_q, old_q;

  assign {rule, channel}    = what_q;
  assign write              = s_axi_ctrl_awvalid && s_axi_ctrl_wvalid && !b_q;
  assign s_axi_ctrl_awready = write;
  assign s_axi_ctrl_wready  = write;
  assign s_axi_ctrl_arready = s_axi_ctrl_arvalid && !r_q;

  always_ff @(posedge aclk) begin
    if (write) what_q <= s_axi_ctrl_wdata[15:0];
    if (write) time_q <= '0;
    else if (time_q != '1) time_q <= time_q + 1'b1;
    old_q <= b_q || r_q;
    if (!aresetn) begin
      b_q <= 1'b0;
      r_q <= 1'b0;
    end else begin
      b_q <= write || (b_q && !s_axi_ctrl_bready);
      r_q <= s_axi_ctrl_arready || (r_q && !s_axi_ctrl_rready);
    end
  end

  // A response: whether it is there where it should be, and what a broken rule makes of it.
  function automatic logic reply_valid(logic breaks, logic due);
    reply_valid = due;
    if (breaks && rule == RuleFall) reply_valid = due && !old_q;
    if (breaks && rule == RuleUnasked) reply_valid = 1'b1;
    if (breaks && rule == RuleReset) reply_valid = due || !aresetn;
  endfunction

  function automatic logic [1:0] reply_resp(logic breaks);
    reply_resp = 2'b00;
    if (breaks && rule == RuleChange) reply_resp = {2{old_q}};
    if (breaks && rule == RuleError) reply_resp = 2'b10;
  endfunction

  assign s_axi_ctrl_bvalid = reply_valid(channel == CtrlB, b_q);
  assign s_axi_ctrl_bresp  = reply_resp(channel == CtrlB);
  assign s_axi_ctrl_rvalid = reply_valid(channel == CtrlR, r_q);
  assign s_axi_ctrl_rresp  = reply_resp(channel == CtrlR);
  assign s_axi_ctrl_rdata  = 32'd0;

  // ---------------------------------------------------------------------------------------------
  // Requests to the memory: one burst after the write
  // ---------------------------------------------------------------------------------------------
  logic [63:0] addr;
  logic [7:0]  len;
  logic [2:0]  size_off;
  logic [1:0]  burst;
  logic        rule_w, sent_q;  // a rule of write data: its address has gone out

  assign rule_w   = channel == SgW || channel == S2mmW;
  assign addr     = 64'h12_4000_0F00 + (rule == RuleChange && time_q[0] && !rule_w ? 64'd64 : 64'd0)
                  + (rule == RuleStrobe ? 64'd2 : 64'd0);
  assign len      = rule == RuleCross ? 8'd255 : rule_w ? 8'd1 : 8'd0;
  assign size_off = rule == RuleSize ? 3'd1 : 3'd0;
  assign burst    = rule == RuleBurst ? 2'b00 : 2'b01;

  function automatic logic valid(logic breaks);
    valid = breaks && aresetn && time_q != '1 && rule != RuleReset;
    if (rule == RuleFall) valid = breaks && time_q == 8'd2;
    if (rule == RuleReset) valid = breaks && !aresetn;
  endfunction

  function automatic logic address_valid(logic [7:0] address, logic [7:0] data);
    address_valid = valid(channel == address)
                  || (channel == data && aresetn && !sent_q && rule != RuleReset);
  endfunction

  always_ff @(posedge aclk) begin
    if (write || !aresetn) begin
      sent_q <= 1'b0;
    end else if ((m_axi_sg_awvalid && m_axi_sg_awready)
                 || (m_axi_s2mm_awvalid && m_axi_s2mm_awready)) begin
      sent_q <= 1'b1;
    end
  end

  assign m_axi_sg_awvalid   = address_valid(SgAw, SgW);
  assign m_axi_s2mm_awvalid = address_valid(S2mmAw, S2mmW);
  assign m_axi_sg_arvalid   = valid(channel == SgAr);
  assign m_axi_mm2s_arvalid = valid(channel == Mm2sAr);
  assign m_axi_sg_wvalid    = valid(channel == SgW);
  assign m_axi_s2mm_wvalid  = valid(channel == S2mmW);

  // The second of two beats, as far as the memory takes them.
  logic second_q, taken, last;
  assign taken = (m_axi_sg_wvalid && m_axi_sg_wready) || (m_axi_s2mm_wvalid && m_axi_s2mm_wready);
  assign last  = rule == RuleEarly || (second_q && rule != RuleLate);
  always_ff @(posedge aclk) begin
    if (write || !aresetn) second_q <= 1'b0;
    else if (taken) second_q <= 1'b1;
  end

  assign m_axi_sg_wdata   = rule == RuleChange ? {32{time_q[0]}} : '0;
  assign m_axi_s2mm_wdata = rule == RuleChange ? {BusWidth{time_q[0]}} : '0;
  assign m_axi_sg_wstrb   = '1;
  assign m_axi_s2mm_wstrb = '1;
  assign m_axi_sg_wlast   = last;
  assign m_axi_s2mm_wlast = last;

  assign m_axi_sg_awid    = '0;
  assign m_axi_sg_awaddr  = addr;
  assign m_axi_sg_awlen   = len;
  assign m_axi_sg_awsize  = 3'd2 ^ size_off;
  assign m_axi_sg_awburst = burst;
  assign m_axi_sg_awlock  = '0;
  assign m_axi_sg_awcache = '0;
  assign m_axi_sg_awprot  = '0;
  assign m_axi_sg_awqos   = '0;

  assign m_axi_sg_arid    = '0;
  assign m_axi_sg_araddr  = addr;
  assign m_axi_sg_arlen   = len;
  assign m_axi_sg_arsize  = 3'd2 ^ size_off;
  assign m_axi_sg_arburst = burst;
  assign m_axi_sg_arlock  = '0;
  assign m_axi_sg_arcache = '0;
  assign m_axi_sg_arprot  = '0;
  assign m_axi_sg_arqos   = '0;

  assign m_axi_mm2s_arid    = '0;
  assign m_axi_mm2s_araddr  = addr;
  assign m_axi_mm2s_arlen   = len;
  assign m_axi_mm2s_arsize  = 3'($clog2(BusBytes)) ^ size_off;
  assign m_axi_mm2s_arburst = burst;
  assign m_axi_mm2s_arlock  = '0;
  assign m_axi_mm2s_arcache = '0;
  assign m_axi_mm2s_arprot  = '0;
  assign m_axi_mm2s_arqos   = '0;

  assign m_axi_s2mm_awid    = '0;
  assign m_axi_s2mm_awaddr  = addr;
  assign m_axi_s2mm_awlen   = len;
  assign m_axi_s2mm_awsize  = 3'($clog2(BusBytes)) ^ size_off;
  assign m_axi_s2mm_awburst = burst;
  assign m_axi_s2mm_awlock  = '0;
  assign m_axi_s2mm_awcache = '0;
  assign m_axi_s2mm_awprot  = '0;
  assign m_axi_s2mm_awqos   = '0;

  assign m_axi_sg_bready   = 1'b1;
  assign m_axi_sg_rready   = 1'b1;
  assign m_axi_mm2s_rready = 1'b1;
  assign m_axi_s2mm_bready = 1'b1;
  assign mm2s_introut      = 1'b0;
  assign s2mm_introut      = 1'b0;

  // The harness's watchdog looks at the streams inside.
  logic mm2s_tvalid  /* verilator public_flat_rd */;
  logic mm2s_tready  /* verilator public_flat_rd */;
  logic s2mm_tvalid  /* verilator public_flat_rd */;
  logic s2mm_tready  /* verilator public_flat_rd */;
  assign {mm2s_tvalid, mm2s_tready, s2mm_tvalid, s2mm_tready} = '0;

endmodule
