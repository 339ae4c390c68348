// Descriptor prefetch of one channel. It follows the chain up to TAILDESC, ahead of the data:
// a descriptor's successor is asked for as soon as the two words of its address have come.
// What goes wrong is kept in order as a marker descriptor, so that the descriptors before it
// still complete; nothing is fetched past it.
//
// Latency: 2 cycles from a descriptor's last word to the descriptor. Throughput: one every memory
// latency and 5 cycles, since each names the next; 8 are held ahead of the data.
module ws_dma_fetch #(
  parameter int unsigned BusWidth    = 128,
  parameter int unsigned LengthWidth = 26,  // of the length field in CONTROL, 8 to 26
  parameter int unsigned Depth       = 8    // descriptors held
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  // Control
  input  logic        run_i,
  input  logic        halted_i,
  input  logic        start_i,
  input  logic        tail_i,
  input  ws_dma_pkg::desc_ptr_t curdesc_i,
  input  ws_dma_pkg::desc_ptr_t taildesc_i,
  output logic        quiet_o,     // no fetch is out
  output logic        idle_o,      // and all up to the tail is fetched and taken
  // Fetch requests
  output logic        req_valid_o,
  output ws_dma_pkg::desc_ptr_t req_ptr_o,
  input  logic        req_ready_i,
  // The words that come back, eight to a descriptor
  input  logic        word_valid_i,
  input  logic [31:0] word_i,
  input  ws_dma_pkg::err_t word_err_i,
  input  ws_dma_pkg::desc_ptr_t word_ptr_i,
  // Descriptors
  output logic        desc_valid_o,
  output ws_dma_pkg::desc_t desc_o,
  input  logic        desc_ready_i
);
  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam int unsigned ByteBits   = $clog2(BusWidth / 8);

  // ---------------------------------------------------------------------------------------------
  // Words to descriptors
  // ---------------------------------------------------------------------------------------------
  logic [2:0]  word_q;       // the next to come
  logic [25:0] next_lo_q;
  ws_dma_pkg::err_t err_q;        // in the words so far
  ws_dma_pkg::desc_t desc_q;
  logic        push_q;       // `desc_q` is whole
  logic        dead_q;       // an error has come: the rest is dropped
  ws_dma_pkg::desc_ptr_t next_q;       // the next descriptor to ask for
  logic        next_valid_q;
  logic        req;
  logic [1:0]  inflight_q;   // fetches that are out

  always_ff @(posedge clk_i) begin
    push_q <= 1'b0;
    if (!rst_ni) begin
      word_q       <= '0;
      err_q        <= '0;
      dead_q       <= 1'b0;
      next_valid_q <= 1'b0;
    end else begin
      if (word_valid_i) begin
        word_q <= word_q + 3'd1;
        err_q  <= err_q | word_err_i;
        unique case (word_q)
          3'd0: next_lo_q <= word_i[31:6];
          3'd1: begin
            if (!dead_q && ((err_q | word_err_i) == '0)) begin
              next_q       <= {word_i, next_lo_q};
              next_valid_q <= 1'b1;
            end
          end
          3'd2: desc_q.addr[31:0] <= word_i;
          3'd3: desc_q.addr[63:32] <= word_i;
          3'd6: begin
            desc_q.length <= 26'(word_i[LengthWidth-1:0]);
            desc_q.eof    <= word_i[26];
            desc_q.bad    <= (word_i[LengthWidth-1:0] == '0) ||
                             (desc_q.addr[ByteBits-1:0] != '0);
          end
          3'd7: begin
            // Cmplt in STATUS: the host has not renewed this descriptor.
            desc_q.err <= err_q | word_err_i;
            if ((err_q | word_err_i) == '0) desc_q.err.int_err <= word_i[31];
            desc_q.ptr <= word_ptr_i;
            push_q     <= !dead_q;
            dead_q     <= dead_q || ((err_q | word_err_i) != '0) || word_i[31];
            err_q      <= '0;
          end
          default: ;
        endcase
      end
      if (req) next_valid_q <= 1'b0;
      if (halted_i) begin
        dead_q       <= 1'b0;
        next_valid_q <= start_i;
        next_q       <= curdesc_i;
      end
    end
  end

  ws_dma_fifo #(
    .Width($bits(desc_q)),
    .Depth(Depth)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .clear_i(halted_i),
    .push_i (push_q),
    .data_i (desc_q),
    .pop_i  (desc_ready_i),
    .valid_o(desc_valid_o),
    .data_o (desc_o),
    .count_o()
  );

  // ---------------------------------------------------------------------------------------------
  // Requests
  // ---------------------------------------------------------------------------------------------
  logic                  active_q;    // the tail is not yet asked for
  logic [CountWidth-1:0] room_q;      // entries of the FIFO neither filled nor promised

  assign req_valid_o = active_q && next_valid_q && run_i && !dead_q && (room_q != '0) &&
                       (inflight_q != 2'd3);
  assign req_ptr_o   = next_q;
  assign req         = req_valid_o && req_ready_i;
  assign quiet_o     = (inflight_q == '0) && !push_q;
  assign idle_o      = quiet_o && !active_q && !desc_valid_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q   <= 1'b0;
      room_q     <= CountWidth'(Depth);
      inflight_q <= '0;
    end else begin
      if (tail_i) active_q <= 1'b1;
      else if (halted_i || (req && (next_q == taildesc_i))) active_q <= 1'b0;

      if (halted_i) room_q <= CountWidth'(Depth);
      else if (req != desc_ready_i) room_q <= req ? room_q - 1'b1 : room_q + 1'b1;

      if (req || word_valid_i) begin
        inflight_q <= inflight_q + 2'(req) - 2'(word_valid_i && (word_q == 3'd7));
      end
    end
  end

`ifndef SYNTHESIS
  a_asked : assert property (@(posedge clk_i) disable iff (!rst_ni)
      word_valid_i |-> !halted_i && (inflight_q != '0))
      else $error("a descriptor that nothing asked for");
`endif

endmodule
