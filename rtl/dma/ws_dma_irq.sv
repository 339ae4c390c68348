// Interrupt coalescing of one channel: an event after so many packets, or after so long without
// another packet while some are unreported.
module ws_dma_irq
  import ws_dma_pkg::*;
(
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       packet_i,     // a packet's last descriptor is written back
  input  logic       load_i,       // the threshold changes to `threshold_i`
  input  logic [7:0] threshold_i,  // packets, at least 1
  input  logic [7:0] delay_i,      // in units of 125 cycles, 0 is off
  output logic       ioc_o,
  output logic       dly_o,
  output logic [7:0] threshold_sts_o,  // packets still missing
  output logic [7:0] delay_sts_o       // units waited
);
  logic [7:0] count_q, units_q;
  logic [6:0] prescale_q;
  logic       pending_q;  // packets are done that no event has reported
  logic       unit_end;

  assign unit_end = prescale_q == 7'(DmacrDelayUnit - 1);
  assign ioc_o    = packet_i && (count_q == 8'd1);
  assign dly_o    = !packet_i && pending_q && (delay_i != '0) && unit_end &&
                    (units_q >= delay_i - 8'd1);

  assign threshold_sts_o = count_q;
  assign delay_sts_o     = units_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q   <= 8'd1;
      pending_q <= 1'b0;
    end else begin
      if (load_i || ioc_o || dly_o) count_q <= threshold_i;
      else if (packet_i) count_q <= count_q - 8'd1;

      if (ioc_o || dly_o) pending_q <= 1'b0;
      else if (packet_i) pending_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || packet_i || dly_o || !pending_q || (delay_i == '0)) begin
      prescale_q <= '0;
      units_q    <= '0;
    end else if (unit_end) begin
      prescale_q <= '0;
      units_q    <= units_q + 8'd1;
    end else begin
      prescale_q <= prescale_q + 7'd1;
    end
  end

  assert property (@(posedge clk_i) disable iff (!rst_ni)
    count_q != '0) else $error("packet count ran out without an event");

endmodule
