// The registers of one channel, and whether it runs: DMACR, DMASR, CURDESC, TAILDESC.
//
// A channel is halted, running or stopping. RS = 0 and every error stop it: it begins nothing
// new, what is out on AXI ends, and only then it is halted.
//
// Latency: 1 cycle from a write to its effect, 1 to read, 1 from an event to the interrupt line
// after its status bit. One access a cycle.
module ws_dma_chan_regs (
  input  logic        clk_i,
  input  logic        rst_ni,       // also low for a cycle at the end of a soft reset
  // Register access, offsets within the channel
  input  logic        we_i,
  input  logic [4:0]  waddr_i,
  input  logic [31:0] wdata_i,
  input  logic        re_i,
  input  logic [4:0]  raddr_i,
  output logic [31:0] rdata_o,      // a cycle after `re_i`
  input  logic        resetting_i,  // a soft reset is going on
  // To the channel's engines
  output logic        run_o,
  output logic        halted_o,
  output logic        start_o,      // CURDESC is the next descriptor
  output logic        tail_o,       // TAILDESC is new
  output ws_dma_pkg::desc_ptr_t curdesc_o,
  output ws_dma_pkg::desc_ptr_t taildesc_o,
  // From them
  input  logic        quiet_i,      // nothing of this channel is out on AXI
  input  logic        idle_i,       // all up to the tail is done
  input  logic        retire_i,     // a descriptor is done, `retire_ptr_i`
  input  ws_dma_pkg::desc_ptr_t retire_ptr_i,
  input  logic        packet_i,     // and it was the last of a packet
  input  ws_dma_pkg::err_t dma_err_i,
  input  ws_dma_pkg::err_t sg_err_i,
  output logic        introut_o
);
  typedef enum logic [1:0] {StHalted, StRunning, StStopping} state_e;

  state_e     state_q;
  logic       rs_d, rs_q, run_q, ioc_en_q, dly_en_q, err_en_q;
  logic [7:0] threshold_q, delay_q;
  logic       load_q;               // the threshold has changed
  ws_dma_pkg::err_t dma_err_q, sg_err_q;
  logic       ioc_q, dly_q, err_q;
  ws_dma_pkg::desc_ptr_t curdesc_q, taildesc_q;
  logic       tail_q, tail_seen_q;

  // ---------------------------------------------------------------------------------------------
  // Interrupt coalescing
  // ---------------------------------------------------------------------------------------------
  logic       ioc, dly;
  logic [7:0] threshold_sts, delay_sts;

  ws_dma_irq u_irq (
    .clk_i,
    .rst_ni,
    .packet_i       (packet_i),
    .load_i         (load_q),
    .threshold_i    (threshold_q),
    .delay_i        (delay_q),
    .ioc_o          (ioc),
    .dly_o          (dly),
    .threshold_sts_o(threshold_sts),
    .delay_sts_o    (delay_sts)
  );

  // ---------------------------------------------------------------------------------------------
  // Registers. After an error only a reset lets the channel run again.
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    rs_d = rs_q;
    if (we_i && (waddr_i == ws_dma_pkg::Mm2sDmacr[4:0])) rs_d = wdata_i[0];
    if (resetting_i || (|{dma_err_q, sg_err_q, dma_err_i, sg_err_i})) rs_d = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    load_q <= 1'b0;
    tail_q <= 1'b0;
    if (!rst_ni) begin
      rs_q        <= ws_dma_pkg::DmacrResetValue[0];
      ioc_en_q    <= 1'b0;
      dly_en_q    <= 1'b0;
      err_en_q    <= 1'b0;
      threshold_q <= ws_dma_pkg::DmacrResetValue[23:16];
      delay_q     <= '0;
      curdesc_q   <= '0;
      taildesc_q  <= '0;
    end else begin
      if (we_i) begin
        unique case (waddr_i)
          ws_dma_pkg::Mm2sDmacr[4:0]: begin
            ioc_en_q <= wdata_i[12];
            dly_en_q <= wdata_i[13];
            err_en_q <= wdata_i[14];
            delay_q  <= wdata_i[31:24];
            if ((wdata_i[23:16] != '0) && (wdata_i[23:16] != threshold_q)) begin
              threshold_q <= wdata_i[23:16];
              load_q      <= 1'b1;
            end
          end
          ws_dma_pkg::Mm2sCurdesc[4:0]: begin
            if (state_q == StHalted) curdesc_q[25:0] <= wdata_i[31:6];
          end
          ws_dma_pkg::Mm2sCurdescMsb[4:0]: begin
            if (state_q == StHalted) curdesc_q[57:26] <= wdata_i;
          end
          ws_dma_pkg::Mm2sTaildescMsb[4:0]: taildesc_q[57:26] <= wdata_i;
          ws_dma_pkg::Mm2sTaildesc[4:0]: begin
            taildesc_q[25:0] <= wdata_i[31:6];
            tail_q           <= rs_q && (state_q == StRunning);
          end
          default: ;
        endcase
      end
      if (retire_i) curdesc_q <= retire_ptr_i;
      rs_q <= rs_d;
    end
  end

  assign tail_o     = tail_q;
  assign curdesc_o  = curdesc_q;
  assign taildesc_o = taildesc_q;

  // An event in the cycle that clears its bit is not lost.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dma_err_q <= '0;
      sg_err_q  <= '0;
      ioc_q     <= 1'b0;
      dly_q     <= 1'b0;
      err_q     <= 1'b0;
      introut_o <= 1'b0;
    end else begin
      if (we_i && (waddr_i == ws_dma_pkg::Mm2sDmasr[4:0])) begin
        if (|(wdata_i & ws_dma_pkg::DmasrIocIrq)) ioc_q <= 1'b0;
        if (|(wdata_i & ws_dma_pkg::DmasrDlyIrq)) dly_q <= 1'b0;
        if (|(wdata_i & ws_dma_pkg::DmasrErrIrq)) err_q <= 1'b0;
      end
      if (ioc) ioc_q <= 1'b1;
      if (dly) dly_q <= 1'b1;
      if (|{dma_err_i, sg_err_i}) begin
        dma_err_q <= dma_err_q | dma_err_i;
        sg_err_q  <= sg_err_q | sg_err_i;
        err_q     <= 1'b1;
      end
      introut_o <= (ioc_q && ioc_en_q) || (dly_q && dly_en_q) || (err_q && err_en_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (re_i) begin
      unique case (raddr_i)
        ws_dma_pkg::Mm2sDmacr[4:0]: begin
          rdata_o <= {delay_q, threshold_q, 1'b0, err_en_q, dly_en_q, ioc_en_q, 9'd0, resetting_i,
                      ws_dma_pkg::DmacrResetValue[1], rs_q};
        end
        ws_dma_pkg::Mm2sDmasr[4:0]: begin
          rdata_o <= {delay_sts, threshold_sts, 1'b0, err_q, dly_q, ioc_q, 1'b0, sg_err_q.dec,
                      sg_err_q.slv, sg_err_q.int_err, 1'b0, dma_err_q.dec, dma_err_q.slv,
                      dma_err_q.int_err, ws_dma_pkg::DmasrResetValue[3:2],
                      idle_i && tail_seen_q && (state_q != StHalted), state_q == StHalted};
        end
        ws_dma_pkg::Mm2sCurdesc[4:0]:     rdata_o <= {curdesc_q[25:0], 6'd0};
        ws_dma_pkg::Mm2sCurdescMsb[4:0]:  rdata_o <= curdesc_q[57:26];
        ws_dma_pkg::Mm2sTaildesc[4:0]:    rdata_o <= {taildesc_q[25:0], 6'd0};
        ws_dma_pkg::Mm2sTaildescMsb[4:0]: rdata_o <= taildesc_q[57:26];
        default:              rdata_o <= '0;
      endcase
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Running and halting. Idle tells of a tail reached, so it is only seen after the first one.
  // ---------------------------------------------------------------------------------------------
  assign run_o    = run_q;  // (state_q == StRunning) && rs_q
  assign halted_o = state_q == StHalted;
  assign start_o  = (state_q == StHalted) && rs_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StHalted;
      run_q       <= 1'b0;
      tail_seen_q <= 1'b0;
    end else begin
      run_q <= (state_q != StStopping) && rs_q && rs_d;
      unique case (state_q)
        StHalted:  if (rs_q) state_q <= StRunning;
        StRunning: if (!rs_q) state_q <= StStopping;
        default:   if (quiet_i) state_q <= StHalted;
      endcase
      if (state_q == StHalted) tail_seen_q <= 1'b0;
      else if (tail_q) tail_seen_q <= 1'b1;
    end
  end

endmodule
