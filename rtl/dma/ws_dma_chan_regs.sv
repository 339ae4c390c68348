// The registers of one channel, and whether it runs: DMACR, DMASR, CURDESC, TAILDESC.
//
// A channel is halted, running or stopping. RS = 0 and every error stop it: it begins nothing
// new, what is out on AXI ends, and only then it is halted.
module ws_dma_chan_regs
  import ws_dma_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,       // also low for a cycle at the end of a soft reset
  // Register access: the offset within the channel, data, and which bits are written
  input  logic        we_i,
  input  logic [4:0]  addr_i,
  input  logic [31:0] wdata_i,
  input  logic [31:0] wmask_i,
  input  logic [4:0]  raddr_i,
  output logic [31:0] rdata_o,
  // Soft reset of both channels
  output logic        reset_req_o,
  input  logic        resetting_i,
  // To the channel's engines
  output logic        run_o,
  output logic        halted_o,
  output logic        start_o,      // CURDESC is the next descriptor
  output logic        tail_we_o,
  output desc_ptr_t   curdesc_o,
  output desc_ptr_t   taildesc_o,
  // From them
  input  logic        quiet_i,      // nothing of this channel is out on AXI
  input  logic        idle_i,       // all up to the tail is done
  input  logic        retire_i,     // a descriptor is done, `retire_ptr_i`
  input  desc_ptr_t   retire_ptr_i,
  input  logic        packet_i,     // and it was the last of a packet
  input  err_t        dma_err_i,    // pulses
  input  err_t        sg_err_i,
  output logic        introut_o
);
  typedef enum logic [1:0] {StHalted, StRunning, StStopping} state_e;

  state_e      state_q;
  logic        rs_q, ioc_en_q, dly_en_q, err_en_q;
  logic [7:0]  threshold_q, delay_q;
  err_t        dma_err_q, sg_err_q;
  logic        ioc_q, dly_q, err_q;
  desc_ptr_t   curdesc_q, taildesc_q;
  logic        tail_seen_q;

  // ---------------------------------------------------------------------------------------------
  // Writes
  // ---------------------------------------------------------------------------------------------
  logic we_cr, we_sr, we_tail, load_threshold, any_err, new_err;
  logic [7:0] threshold_new;
  logic [31:0] w1c;

  assign we_cr   = we_i && (addr_i == Mm2sDmacr[4:0]);
  assign we_sr   = we_i && (addr_i == Mm2sDmasr[4:0]);
  assign we_tail = we_i && (addr_i == Mm2sTaildesc[4:0]);
  assign w1c     = we_sr ? (wdata_i & wmask_i) : '0;

  assign reset_req_o    = we_cr && |(wdata_i & wmask_i & DmacrReset);
  assign threshold_new  = (wdata_i[23:16] & wmask_i[23:16]) | (threshold_q & ~wmask_i[23:16]);
  assign load_threshold = we_cr && (threshold_new != threshold_q) && (threshold_new != '0);
  assign any_err        = |{dma_err_q, sg_err_q};
  assign new_err        = |{dma_err_i, sg_err_i};

  // Inside the engines, TAILDESC counts from the cycle after its low word is written.
  assign tail_we_o  = we_tail && rs_q && (state_q == StRunning);
  assign curdesc_o  = curdesc_q;
  assign taildesc_o = {taildesc_q[57:26], (wdata_i[31:6] & wmask_i[31:6]) |
                                          (taildesc_q[25:0] & ~wmask_i[31:6])};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rs_q        <= DmacrResetValue[0];
      ioc_en_q    <= 1'b0;
      dly_en_q    <= 1'b0;
      err_en_q    <= 1'b0;
      threshold_q <= DmacrResetValue[23:16];
      delay_q     <= '0;
    end else begin
      if (we_cr) begin
        if (wmask_i[0]) rs_q <= wdata_i[0];
        if (wmask_i[12]) ioc_en_q <= wdata_i[12];
        if (wmask_i[13]) dly_en_q <= wdata_i[13];
        if (wmask_i[14]) err_en_q <= wdata_i[14];
        if (load_threshold) threshold_q <= threshold_new;
        delay_q <= (wdata_i[31:24] & wmask_i[31:24]) | (delay_q & ~wmask_i[31:24]);
      end
      // After an error only a reset lets the channel run again.
      if (any_err || new_err || resetting_i) rs_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      curdesc_q  <= '0;
      taildesc_q <= '0;
    end else begin
      if (retire_i) begin
        curdesc_q <= retire_ptr_i;
      end else if (we_i && (state_q == StHalted)) begin
        if (addr_i == Mm2sCurdesc[4:0]) begin
          curdesc_q[25:0] <= (wdata_i[31:6] & wmask_i[31:6]) | (curdesc_q[25:0] & ~wmask_i[31:6]);
        end
        if (addr_i == Mm2sCurdescMsb[4:0]) begin
          curdesc_q[57:26] <= (wdata_i & wmask_i) | (curdesc_q[57:26] & ~wmask_i);
        end
      end
      if (we_tail) taildesc_q <= taildesc_o;
      if (we_i && (addr_i == Mm2sTaildescMsb[4:0])) begin
        taildesc_q[57:26] <= (wdata_i & wmask_i) | (taildesc_q[57:26] & ~wmask_i);
      end
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Running and halting
  // ---------------------------------------------------------------------------------------------
  assign run_o    = (state_q == StRunning) && rs_q;
  assign halted_o = state_q == StHalted;
  assign start_o  = (state_q == StHalted) && rs_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StHalted;
      tail_seen_q <= 1'b0;
    end else begin
      unique case (state_q)
        StHalted:  if (rs_q) state_q <= StRunning;
        StRunning: if (!rs_q) state_q <= StStopping;
        default:   if (quiet_i) state_q <= StHalted;
      endcase
      if (state_q == StHalted) tail_seen_q <= 1'b0;
      else if (tail_we_o) tail_seen_q <= 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Errors and interrupts
  // ---------------------------------------------------------------------------------------------
  logic       ioc, dly;
  logic [7:0] threshold_sts, delay_sts;

  ws_dma_irq u_irq (
    .clk_i,
    .rst_ni,
    .packet_i       (packet_i),
    .load_i         (load_threshold),
    .threshold_i    (load_threshold ? threshold_new : threshold_q),
    .delay_i        (delay_q),
    .ioc_o          (ioc),
    .dly_o          (dly),
    .threshold_sts_o(threshold_sts),
    .delay_sts_o    (delay_sts)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dma_err_q <= '0;
      sg_err_q  <= '0;
      ioc_q     <= 1'b0;
      dly_q     <= 1'b0;
      err_q     <= 1'b0;
    end else begin
      dma_err_q <= dma_err_q | dma_err_i;
      sg_err_q  <= sg_err_q | sg_err_i;
      // An event in the cycle that clears its bit is not lost.
      ioc_q     <= (ioc_q && !(|(w1c & DmasrIocIrq))) || ioc;
      dly_q     <= (dly_q && !(|(w1c & DmasrDlyIrq))) || dly;
      err_q     <= (err_q && !(|(w1c & DmasrErrIrq))) || new_err;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) introut_o <= 1'b0;
    else introut_o <= (ioc_q && ioc_en_q) || (dly_q && dly_en_q) || (err_q && err_en_q);
  end

  // ---------------------------------------------------------------------------------------------
  // Reads
  // ---------------------------------------------------------------------------------------------
  always_comb begin
    rdata_o = '0;
    case (raddr_i)
      Mm2sDmacr[4:0]: begin
        rdata_o = {delay_q, threshold_q, 1'b0, err_en_q, dly_en_q, ioc_en_q, 9'd0, resetting_i,
                   DmacrResetValue[1], rs_q};
      end
      Mm2sDmasr[4:0]: begin
        rdata_o = {delay_sts, threshold_sts, 1'b0, err_q, dly_q, ioc_q, 1'b0, sg_err_q.dec,
                   sg_err_q.slv, sg_err_q.int_err, 1'b0, dma_err_q.dec, dma_err_q.slv,
                   dma_err_q.int_err, DmasrResetValue[3:2], idle_i && tail_seen_q && !halted_o,
                   halted_o};
      end
      Mm2sCurdesc[4:0]:     rdata_o = {curdesc_q[25:0], 6'd0};
      Mm2sCurdescMsb[4:0]:  rdata_o = curdesc_q[57:26];
      Mm2sTaildesc[4:0]:    rdata_o = {taildesc_q[25:0], 6'd0};
      Mm2sTaildescMsb[4:0]: rdata_o = taildesc_q[57:26];
      default: ;
    endcase
  end

endmodule
