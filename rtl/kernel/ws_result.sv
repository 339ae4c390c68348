// Result words into bus words: a buffer that takes a word in any cycle, and a packer.
//
// The writer never waits: it counts the words it has sent less those that `pop_o` reports. Latency
// 2 from a word to the beat it completes. Throughput: a 32-bit word a cycle.
module ws_result #(
  parameter int unsigned BusBytes = 16,
  parameter int unsigned Depth = 64       // a power of two
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  valid_i,
  input  logic [31:0]           word_i,
  input  logic                  last_i,   // of the packet
  output logic                  pop_o,    // a word left the buffer, a cycle ago

  output logic [8*BusBytes-1:0] m_axis_tdata,
  output logic [BusBytes-1:0]   m_axis_tkeep,
  output logic                  m_axis_tlast,
  output logic                  m_axis_tvalid,
  input  logic                  m_axis_tready
);

  // ------------------------------------------------ buffer
  localparam int unsigned IndexW = $clog2(Depth);

  logic [32:0]       mem [Depth];
  logic [IndexW:0]   wr_q, rd_q;
  logic              some, pop;
  logic              head_last;
  logic [31:0]       head_word;

  assign some = wr_q != rd_q;
  assign {head_last, head_word} = mem[rd_q[IndexW-1:0]];

  always_ff @(posedge clk_i) begin
    if (valid_i) mem[wr_q[IndexW-1:0]] <= {last_i, word_i};
    if (!rst_ni) begin
      wr_q  <= '0;
      rd_q  <= '0;
      pop_o <= 1'b0;
    end else begin
      if (valid_i) wr_q <= wr_q + 1'b1;
      pop_o <= pop;
      if (pop) rd_q <= rd_q + 1'b1;
    end
  end

  // ------------------------------------------------ packer
  localparam int unsigned BusWords = BusBytes / 4;
  localparam int unsigned SlotW = $clog2(BusWords);

  logic [SlotW-1:0]          slot_q;
  logic [BusWords-2:0][31:0] part_q;     // words of a beat not complete yet
  logic                      out_valid_q, out_last_q, complete;
  logic [BusWords-1:0][31:0] beat, out_data_q;
  logic [BusWords-1:0]       keep, out_keep_q;

  assign complete = slot_q == SlotW'(BusWords - 1) || head_last;
  assign pop      = some && (!complete || !out_valid_q || m_axis_tready);

  // The beat that the head of the buffer completes. Words past the last one are whatever was there.
  always_comb begin
    for (int unsigned i = 0; i < BusWords; i++) begin
      keep[i] = SlotW'(i) <= slot_q;
      beat[i] = head_word;
      if (i < BusWords - 1 && SlotW'(i) != slot_q) beat[i] = part_q[i % (BusWords - 1)];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      slot_q      <= '0;
      out_valid_q <= 1'b0;
    end else begin
      if (pop) slot_q <= complete ? '0 : slot_q + 1'b1;
      if (pop && complete) out_valid_q <= 1'b1;
      else if (m_axis_tready) out_valid_q <= 1'b0;
    end
    if (pop && !complete) begin
      for (int unsigned i = 0; i < BusWords - 1; i++) begin
        if (SlotW'(i) == slot_q) part_q[i] <= head_word;
      end
    end
    if (pop && complete) begin
      out_data_q <= beat;
      out_keep_q <= keep;
      out_last_q <= head_last;
    end
  end

  assign m_axis_tvalid = out_valid_q;
  assign m_axis_tdata  = out_data_q;
  assign m_axis_tlast  = out_last_q;
  for (genvar i = 0; i < int'(BusWords); i++) begin : gen_keep
    assign m_axis_tkeep[4*i +: 4] = {4{out_keep_q[i]}};
  end

`ifndef SYNTHESIS
  logic [IndexW:0] held;
  assign held = wr_q - rd_q;
  a_room : assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_i |-> held != (IndexW + 1)'(Depth));
  a_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable(m_axis_tdata)
      && $stable(m_axis_tkeep) && $stable(m_axis_tlast));
`endif

endmodule
