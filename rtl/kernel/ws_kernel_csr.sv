// The kernel's registers (docs/registers.md, "Streaming kernel") behind AXI4-Lite.
//
// A write is answered 2 cycles after both its address and its data are there, a read 2 cycles after
// its address; one of each at a time.
module ws_kernel_csr #(
  parameter int unsigned BusWidth = 128,
  parameter int unsigned BlocksPerCycle = 1,
  parameter int unsigned MaxCols = 4,
  parameter int unsigned MaxK = 16384,
  parameter logic [15:0] Types = 16'h7DCC
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic [11:0] s_axi_ctrl_awaddr,
  input  logic [2:0]  s_axi_ctrl_awprot,
  input  logic        s_axi_ctrl_awvalid,
  output logic        s_axi_ctrl_awready,
  input  logic [31:0] s_axi_ctrl_wdata,
  input  logic [3:0]  s_axi_ctrl_wstrb,
  input  logic        s_axi_ctrl_wvalid,
  output logic        s_axi_ctrl_wready,
  output logic [1:0]  s_axi_ctrl_bresp,
  output logic        s_axi_ctrl_bvalid,
  input  logic        s_axi_ctrl_bready,
  input  logic [11:0] s_axi_ctrl_araddr,
  input  logic [2:0]  s_axi_ctrl_arprot,
  input  logic        s_axi_ctrl_arvalid,
  output logic        s_axi_ctrl_arready,
  output logic [31:0] s_axi_ctrl_rdata,
  output logic [1:0]  s_axi_ctrl_rresp,
  output logic        s_axi_ctrl_rvalid,
  input  logic        s_axi_ctrl_rready,

  output logic        soft_reset_o,   // one cycle
  input  logic        in_reset_i,     // the stream side is held in reset

  // What is counted.
  input  logic        in_valid_i,     // the input stream's handshake
  input  logic        in_ready_i,
  input  logic        in_last_i,
  input  logic        out_valid_i,    // the output stream's
  input  logic        out_ready_i,
  input  logic        out_last_i,
  input  logic        footer_i,       // a job's footer is formed
  input  logic [31:0] status_i        // with this status
);

  // ------------------------------------------------ write channel
  logic        aw_held_q, w_held_q, b_valid_q, write;
  logic [11:0] aw_addr_q;
  logic [31:0] w_data_q, w_mask;
  logic [3:0]  w_strb_q;

  assign s_axi_ctrl_awready = rst_ni && !aw_held_q;
  assign s_axi_ctrl_wready  = rst_ni && !w_held_q;
  assign s_axi_ctrl_bvalid  = b_valid_q;
  assign s_axi_ctrl_bresp   = 2'b00;
  assign write              = aw_held_q && w_held_q && (!b_valid_q || s_axi_ctrl_bready);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_held_q <= 1'b0;
      w_held_q  <= 1'b0;
      b_valid_q <= 1'b0;
    end else begin
      if (write) aw_held_q <= 1'b0;
      else if (s_axi_ctrl_awvalid) aw_held_q <= 1'b1;
      if (write) w_held_q <= 1'b0;
      else if (s_axi_ctrl_wvalid) w_held_q <= 1'b1;
      if (write) b_valid_q <= 1'b1;
      else if (s_axi_ctrl_bready) b_valid_q <= 1'b0;
    end
    if (s_axi_ctrl_awvalid && !aw_held_q) aw_addr_q <= s_axi_ctrl_awaddr;
    if (s_axi_ctrl_wvalid && !w_held_q) begin
      w_data_q <= s_axi_ctrl_wdata;
      w_strb_q <= s_axi_ctrl_wstrb;
    end
  end

  for (genvar i = 0; i < 4; i++) begin : gen_mask
    assign w_mask[8*i +: 8] = w_strb_q[i] ? w_data_q[8*i +: 8] : '0;
  end

  // ------------------------------------------------ control, error
  logic        soft_reset_q, clear_q;
  logic [31:0] error_q;
  logic        write_ctrl, write_error;

  assign write_ctrl  = write && {aw_addr_q[11:2], 2'b00} == ws_pkg::KernelRegCtrl[11:0];
  assign write_error = write && {aw_addr_q[11:2], 2'b00} == ws_pkg::KernelRegError[11:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      soft_reset_q <= 1'b0;
      clear_q      <= 1'b0;
      error_q      <= '0;
    end else begin
      soft_reset_q <= write_ctrl && (w_mask & ws_pkg::KernelCtrlSoftReset) != '0;
      clear_q      <= write_ctrl && (w_mask & ws_pkg::KernelCtrlClear) != '0;
      // Until the reset has reached every stage: a footer on its last stage is forgotten too.
      if (soft_reset_q || in_reset_i) error_q <= '0;
      else error_q <= (error_q & ~(write_error ? w_mask : '0)) | (footer_i ? status_i : '0);
    end
  end

  assign soft_reset_o = soft_reset_q;

  // ------------------------------------------------ jobs under way
  logic [7:0] jobs_q;        // more than fit between the two streams
  logic       begin_q, busy, in_take, out_take, job_in, job_out;

  assign in_take  = in_valid_i && in_ready_i;
  assign out_take = out_valid_i && out_ready_i;
  assign job_in   = in_take && begin_q;
  assign job_out  = out_take && out_last_i;
  assign busy     = jobs_q != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || in_reset_i) begin
      jobs_q  <= '0;
      begin_q <= 1'b1;
    end else begin
      jobs_q <= jobs_q + 8'(job_in) - 8'(job_out);
      if (in_take) begin_q <= in_last_i;
    end
  end

  // ------------------------------------------------ read channel
  // The address is decoded as it is taken, so that the data is an or of what is selected.
  localparam int unsigned Counters = 7;
  localparam int unsigned Sources = 9 + 2 * Counters;

  logic               ar_held_q, r_valid_q, read;
  logic [Sources-1:0] ar_sel_d, ar_sel_q;
  logic [31:0]        r_data_q, r_data_d;

  assign s_axi_ctrl_arready = rst_ni && !ar_held_q;
  assign s_axi_ctrl_rvalid  = r_valid_q;
  assign s_axi_ctrl_rdata   = r_data_q;
  assign s_axi_ctrl_rresp   = 2'b00;
  assign read               = ar_held_q && (!r_valid_q || s_axi_ctrl_rready);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_held_q <= 1'b0;
      r_valid_q <= 1'b0;
    end else begin
      if (read) ar_held_q <= 1'b0;
      else if (s_axi_ctrl_arvalid) ar_held_q <= 1'b1;
      if (read) r_valid_q <= 1'b1;
      else if (s_axi_ctrl_rready) r_valid_q <= 1'b0;
    end
    if (s_axi_ctrl_arvalid && !ar_held_q) ar_sel_q <= ar_sel_d;
    if (read) r_data_q <= r_data_d;
  end

  // ------------------------------------------------ counters
  logic [Counters-1:0]       event_now;
  logic [Counters-1:0][31:0] low, high;

  // In the order of their registers from CYCLES on.
  assign event_now = {job_out, out_take, in_take, out_valid_i && !out_ready_i,
                      busy && in_ready_i && !in_valid_i, busy, 1'b1};

  for (genvar i = 0; i < int'(Counters); i++) begin : gen_counter
    ws_counter64 u_counter (
      .clk_i,
      .rst_ni,
      .clear_i    (clear_q),
      .count_i    (event_now[i]),
      .read_low_i (read && ar_sel_q[9+2*i]),
      .read_high_i(read && ar_sel_q[10+2*i]),
      .low_o      (low[i]),
      .high_o     (high[i])
    );
  end

  // ------------------------------------------------ read data
  logic [31:0] ctrl;
  assign ctrl = (soft_reset_q || in_reset_i ? ws_pkg::KernelCtrlSoftReset : '0)
              | (clear_q ? ws_pkg::KernelCtrlClear : '0);

  always_comb begin
    ar_sel_d = '0;
    unique case ({s_axi_ctrl_araddr[11:2], 2'b00})
      ws_pkg::KernelRegId[11:0]:         ar_sel_d[0] = 1'b1;
      ws_pkg::KernelRegVersion[11:0]:    ar_sel_d[1] = 1'b1;
      ws_pkg::KernelRegCapBus[11:0]:     ar_sel_d[2] = 1'b1;
      ws_pkg::KernelRegCapMaxK[11:0]:    ar_sel_d[3] = 1'b1;
      ws_pkg::KernelRegCapMaxCols[11:0]: ar_sel_d[4] = 1'b1;
      ws_pkg::KernelRegCapTypes[11:0]:   ar_sel_d[5] = 1'b1;
      ws_pkg::KernelRegCtrl[11:0]:       ar_sel_d[6] = 1'b1;
      ws_pkg::KernelRegStatus[11:0]:     ar_sel_d[7] = 1'b1;
      ws_pkg::KernelRegError[11:0]:      ar_sel_d[8] = 1'b1;
      default: begin
        for (int unsigned i = 0; i < 2 * Counters; i++) begin
          ar_sel_d[9+i] = s_axi_ctrl_araddr[11:2] == 10'((ws_pkg::KernelRegCycles >> 2) + i);
        end
      end
    endcase
  end

  logic [Sources-1:0][31:0] source;

  always_comb begin
    source[0] = ws_pkg::KernelId;
    source[1] = ws_pkg::KernelVersion;
    source[2] = {8'd0, 8'(BlocksPerCycle), 16'(BusWidth)};
    source[3] = MaxK;
    source[4] = MaxCols;
    source[5] = {16'd0, Types};
    source[6] = ctrl;
    source[7] = busy ? ws_pkg::KernelStatusBusy : '0;
    source[8] = error_q;
    for (int unsigned i = 0; i < Counters; i++) begin
      source[9+2*i]  = low[i];
      source[10+2*i] = high[i];
    end
    r_data_d = '0;
    if (read) begin
      for (int unsigned i = 0; i < Sources; i++) begin
        if (ar_sel_q[i]) r_data_d = r_data_d | source[i];
      end
    end
  end

  logic unused_axi;
  assign unused_axi = ^{s_axi_ctrl_awprot, s_axi_ctrl_arprot, s_axi_ctrl_araddr[1:0],
                        aw_addr_q[1:0]};

`ifndef SYNTHESIS
  a_b_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      s_axi_ctrl_bvalid && !s_axi_ctrl_bready |=> s_axi_ctrl_bvalid);
  a_r_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      s_axi_ctrl_rvalid && !s_axi_ctrl_rready |=> s_axi_ctrl_rvalid && $stable(s_axi_ctrl_rdata));
  a_jobs : assert property (@(posedge clk_i) disable iff (!rst_ni || in_reset_i)
      !(job_out && jobs_q == '0) && jobs_q != '1);
`endif

endmodule
