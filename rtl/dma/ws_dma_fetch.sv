// Descriptor prefetch of one channel. It follows the chain up to TAILDESC, ahead of the data:
// a descriptor's successor is asked for as soon as the two words of its address have come.
// What goes wrong is kept in order as a marker descriptor, so that the descriptors before it
// still complete; nothing is fetched past it.
module ws_dma_fetch
  import ws_dma_pkg::*;
#(
  parameter int unsigned LengthWidth = 26,  // of the length field in CONTROL, 8 to 26
  parameter int unsigned Depth       = 8    // descriptors held
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  // Control
  input  logic        run_i,
  input  logic        halted_i,
  input  logic        start_i,
  input  logic        tail_we_i,
  input  desc_ptr_t   curdesc_i,
  input  desc_ptr_t   taildesc_i,
  output logic        quiet_o,     // no fetch is out
  output logic        idle_o,      // and all up to the tail is fetched and taken
  // Fetch requests
  output logic        req_valid_o,
  output desc_ptr_t   req_ptr_o,
  input  logic        req_ready_i,
  // The words that come back, eight to a descriptor
  input  logic        word_valid_i,
  input  logic [31:0] word_i,
  input  err_t        word_err_i,
  input  desc_ptr_t   word_ptr_i,
  // Descriptors
  output logic        desc_valid_o,
  output desc_t       desc_o,
  input  logic        desc_ready_i
);
  localparam int unsigned CountWidth = $clog2(Depth + 1);

  // ---------------------------------------------------------------------------------------------
  // Requests
  // ---------------------------------------------------------------------------------------------
  desc_ptr_t             next_q, tail_q;
  logic                  next_valid_q, active_q, dead_q;
  logic [CountWidth-1:0] room_q;      // entries of the FIFO neither filled nor promised
  logic [1:0]            inflight_q;
  logic                  req, push, done, next_known;
  logic [25:0]           next_lo_q;   // NXTDESC, while NXTDESC_MSB is still to come

  assign req_valid_o = run_i && active_q && next_valid_q && !dead_q && (room_q != '0) &&
                       (inflight_q != 2'd3);
  assign req_ptr_o   = next_q;
  assign req         = req_valid_o && req_ready_i;
  assign quiet_o     = inflight_q == '0;
  assign idle_o      = quiet_o && !active_q && !desc_valid_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_q       <= '0;
      tail_q       <= '0;
      next_valid_q <= 1'b0;
      active_q     <= 1'b0;
      room_q       <= CountWidth'(Depth);
      inflight_q   <= '0;
    end else begin
      if (start_i) begin
        next_q       <= curdesc_i;
        next_valid_q <= 1'b1;
      end else if (halted_i || req) begin
        next_valid_q <= 1'b0;
      end else if (next_known) begin
        next_q       <= {word_i, next_lo_q};
        next_valid_q <= 1'b1;
      end

      if (tail_we_i) begin
        tail_q   <= taildesc_i;
        active_q <= 1'b1;
      end else if (halted_i || (req && (next_q == tail_q))) begin
        active_q <= 1'b0;
      end

      if (halted_i) room_q <= CountWidth'(Depth);
      else if (req != (desc_valid_o && desc_ready_i)) room_q <= req ? room_q - 1'b1 : room_q + 1'b1;
      if (req != done) inflight_q <= req ? inflight_q + 1'b1 : inflight_q - 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Words to descriptors
  // ---------------------------------------------------------------------------------------------
  logic [2:0]  word_q;
  logic [31:0] addr_lo_q, addr_hi_q;
  logic        eof_q;      // TXEOF; TXSOF follows from the TXEOF before it
  logic [LengthWidth-1:0] length_q;
  err_t        err_q, err;
  desc_t       desc;

  assign done       = word_valid_i && (word_q == 3'd7);
  assign push       = done && !dead_q && !halted_i;
  assign err        = err_q | word_err_i;
  assign next_known = word_valid_i && (word_q == 3'd1) && (err == '0) && !dead_q;

  always_ff @(posedge clk_i) begin
    if (word_valid_i) begin
      unique case (word_q)
        3'd0: next_lo_q <= word_i[31:6];
        3'd2: addr_lo_q <= word_i;
        3'd3: addr_hi_q <= word_i;
        3'd6: begin
          length_q <= word_i[LengthWidth-1:0];
          eof_q    <= word_i[26];
        end
        default: ;
      endcase
    end
  end

  always_comb begin
    desc         = '0;
    desc.ptr     = word_ptr_i;
    desc.addr    = {addr_hi_q, addr_lo_q};
    desc.length  = 26'(length_q);
    desc.eof     = eof_q;
    desc.err     = err;
    if (err == '0) desc.err.int_err = word_i[31];  // Cmplt: the host has not renewed it
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      word_q <= '0;
      err_q  <= '0;
      dead_q <= 1'b0;
    end else begin
      if (word_valid_i) word_q <= word_q + 3'd1;
      if (done) err_q <= '0;
      else if (word_valid_i) err_q <= err;
      if (halted_i) dead_q <= 1'b0;
      else if (push && (desc.err != '0)) dead_q <= 1'b1;
    end
  end

  ws_dma_fifo #(
    .Width($bits(desc_t)),
    .Depth(Depth)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .clear_i(halted_i),
    .push_i (push),
    .data_i (desc),
    .pop_i  (desc_valid_o && desc_ready_i),
    .valid_o(desc_valid_o),
    .data_o (desc_o),
    .count_o()
  );

  assert property (@(posedge clk_i) disable iff (!rst_ni)
    halted_i |-> inflight_q == '0) else $error("halted with a descriptor fetch in flight");

endmodule
