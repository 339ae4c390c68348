// Interrupt coalescing of one channel: an event after so many packets, or after so long without
// another packet while some are unreported. Latency 1 cycle, a packet a cycle.
module ws_dma_irq (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       packet_i,     // a packet's last descriptor is written back
  input  logic       load_i,       // the threshold has changed
  input  logic [7:0] threshold_i,  // packets, at least 1
  input  logic [7:0] delay_i,      // in units of 125 cycles, 0 is off
  output logic       ioc_o,        // pulses, a cycle later
  output logic       dly_o,
  output logic [7:0] threshold_sts_o,  // packets still missing
  output logic [7:0] delay_sts_o       // units waited
);
  logic [7:0] count_q, units_q;
  logic [6:0] prescale_q;
  logic       pending_q;  // packets are done that no event has reported

  assign threshold_sts_o = count_q;
  assign delay_sts_o     = units_q;

  always_ff @(posedge clk_i) begin
    ioc_o <= 1'b0;
    dly_o <= 1'b0;
    if (!rst_ni) begin
      count_q    <= 8'd1;
      pending_q  <= 1'b0;
      prescale_q <= '0;
      units_q    <= '0;
    end else if (packet_i) begin
      ioc_o      <= count_q == 8'd1;
      pending_q  <= count_q != 8'd1;
      prescale_q <= '0;
      units_q    <= '0;
      if (load_i || (count_q == 8'd1)) count_q <= threshold_i;
      else count_q <= count_q - 8'd1;
    end else if (load_i) begin
      count_q <= threshold_i;
    end else if (pending_q && (delay_i != '0)) begin
      if (prescale_q != 7'(ws_dma_pkg::DmacrDelayUnit - 1)) begin
        prescale_q <= prescale_q + 7'd1;
      end else if (units_q < delay_i - 8'd1) begin
        prescale_q <= '0;
        units_q    <= units_q + 8'd1;
      end else begin
        dly_o      <= 1'b1;
        pending_q  <= 1'b0;
        count_q    <= threshold_i;
        prescale_q <= '0;
        units_q    <= '0;
      end
    end
  end

`ifndef SYNTHESIS
  a_count : assert property (@(posedge clk_i) disable iff (!rst_ni)
      packet_i |-> count_q != '0)
      else $error("the packet count ran out without an event");
`endif

endmodule
