// Byte realignment: takes bus words from the stream and gives out runs of bytes that begin at any
// byte of the packet.
//
// Words are kept in a small circular buffer with a byte position. The parser looks at what is held
// (`avail_o`, `words_o`, `ended_o`, `head_o`) and, in a cycle, moves on by some bytes, by the rest
// of a word, or by all that is held; with `push_i` the bytes at the position before the move enter
// the output pipeline together with `user_i`. One packet at a time: beats of the next one wait
// until `next_i`.
//
// Latency: 2 cycles from the port into the buffer, 2 from `push_i` to `raw_o` (word select, byte
// shift). Throughput: a bus word in and ExtBytes bytes out a cycle.
module ws_realign #(
  parameter int unsigned BusBytes = 16,
  parameter int unsigned ExtBytes = 34,
  parameter int unsigned UserWidth = 1,
  localparam int unsigned Words = BusBytes <= 16 ? 8 : 4,
  localparam int unsigned WordsW = $clog2(Words + 1),
  localparam int unsigned AvailW = $clog2(Words * BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [63:0]           now_i,          // cycle counter

  input  logic [8*BusBytes-1:0] s_axis_tdata,
  input  logic [BusBytes-1:0]   s_axis_tkeep,
  input  logic                  s_axis_tlast,
  input  logic                  s_axis_tvalid,
  output logic                  s_axis_tready,

  // What is held of the current packet.
  output logic [8*BusBytes-1:0] head_o,         // the word at the position
  output logic [AvailW-1:0]     avail_o,        // bytes from the position on
  output logic [WordsW-1:0]     words_o,        // words from the one at the position on
  output logic                  partial_o,      // the position is within a word
  output logic                  aligned_o,      // the position is a multiple of 64 in the packet
  output logic                  ended_o,        // the packet's last word has been taken in
  output logic                  bad_keep_o,     // a beat taken in so far broke the rules of TKEEP
  output logic [63:0]           start_o,        // now_i when the packet's first beat was accepted

  // Moves; at most one of the three.
  input  logic                  take_i,         // by take_bytes_i, not more than avail_o
  input  logic [AvailW-1:0]     take_bytes_i,
  input  logic                  word_i,         // to the next word; words_o is not 0
  input  logic                  all_i,          // past everything held
  input  logic                  next_i,         // with all_i: the packet is over

  // Output pipeline.
  input  logic                  push_i,
  input  logic [UserWidth-1:0]  user_i,
  output logic                  push_ready_o,
  output logic                  raw_valid_o,
  output logic [8*ExtBytes-1:0] raw_o,
  output logic [UserWidth-1:0]  raw_user_o,
  input  logic                  raw_ready_i
);

  localparam int unsigned IndexW = $clog2(Words);
  localparam int unsigned PosW = $clog2(BusBytes);
  localparam int unsigned CountW = $clog2(BusBytes + 1);
  localparam int unsigned WinBytes = ExtBytes + BusBytes - 1;
  localparam int unsigned WinWords = (WinBytes + BusBytes - 1) / BusBytes;

  // ------------------------------------------------ input register
  // TKEEP is counted here so that the count comes from a register below.
  logic                  in_valid_q, in_last_q, in_bad_q, in_first_q;
  logic [8*BusBytes-1:0] in_data_q;
  logic [CountW-1:0]     in_bytes_q;
  logic [63:0]           in_start_q;
  logic                  in_take, in_move, in_begin_q;
  logic [CountW-1:0]     keep_bytes;
  logic                  keep_full, keep_run;

  assign keep_full = &s_axis_tkeep;
  assign keep_run  = ~|(s_axis_tkeep[BusBytes-1:1] & ~s_axis_tkeep[BusBytes-2:0]);

  // The bytes of the beat: ones from byte 0 on in the last beat, all in the others. The first four
  // that are not all ones are looked for, then the first of these.
  logic                       keep_so_far, keep_here;
  logic [BusBytes/4-1:0]      keep_four;
  logic [BusBytes/4-1:0][1:0] keep_ones;

  always_comb begin
    for (int unsigned i = 0; i < BusBytes / 4; i++) begin
      keep_four[i] = &s_axis_tkeep[4*i +: 4];
      keep_ones[i] = !s_axis_tkeep[4*i] ? 2'd0 : !s_axis_tkeep[4*i+1] ? 2'd1
                   : !s_axis_tkeep[4*i+2] ? 2'd2 : 2'd3;
    end
    keep_so_far = 1'b1;
    keep_bytes  = '0;
    for (int unsigned i = 0; i < BusBytes / 4; i++) begin
      keep_here   = keep_so_far && !keep_four[i];
      keep_so_far = keep_so_far && keep_four[i];
      if (keep_here) keep_bytes = keep_bytes | {(CountW-2)'(i), keep_ones[i]};
    end
    if (!s_axis_tlast || keep_full) keep_bytes = CountW'(BusBytes);
  end

  assign s_axis_tready = rst_ni && (!in_valid_q || in_move);
  assign in_take       = s_axis_tvalid && s_axis_tready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_valid_q <= 1'b0;
      in_begin_q <= 1'b1;
    end else begin
      if (in_take) in_begin_q <= s_axis_tlast;
      if (in_take) in_valid_q <= 1'b1;
      else if (in_move) in_valid_q <= 1'b0;
    end
    if (in_take) begin
      in_data_q  <= s_axis_tdata;
      in_last_q  <= s_axis_tlast;
      in_bytes_q <= keep_bytes;
      in_bad_q   <= s_axis_tlast ? !keep_run : !keep_full;
      in_first_q <= in_begin_q;
      if (in_begin_q) in_start_q <= now_i;
    end
  end

  // ------------------------------------------------ word buffer
  logic [8*BusBytes-1:0] word_q [Words];
  logic [IndexW-1:0]     wr_q, rd_q;
  logic [WordsW-1:0]     words_q, drop;
  logic [PosW-1:0]       pos_q, pos_d;
  logic [AvailW-1:0]     avail_q, avail_alone, avail_joined, joined, rest;
  logic                  ended_q, bad_q;
  logic [AvailW-1:0]     moved;

  assign in_move = in_valid_q && !ended_q && words_q != WordsW'(Words);
  assign joined  = avail_q + AvailW'(in_bytes_q);
  assign rest    = AvailW'(BusBytes) - AvailW'(pos_q);
  assign moved   = AvailW'(pos_q) + take_bytes_i;

  // The bytes left are worked out without and with those that come in, since it is known late
  // whether they do.
  always_comb begin
    drop         = '0;
    pos_d        = pos_q;
    avail_alone  = avail_q;
    avail_joined = joined;
    unique case (1'b1)
      take_i: begin
        drop         = WordsW'(moved >> PosW);
        pos_d        = moved[PosW-1:0];
        avail_alone  = avail_q - take_bytes_i;
        avail_joined = joined - take_bytes_i;
      end
      word_i: begin
        // The last word held may have fewer bytes than the rest of a word.
        drop         = WordsW'(1);
        pos_d        = '0;
        avail_alone  = words_q == WordsW'(1) ? '0 : avail_q - rest;
        avail_joined = words_q == WordsW'(1) ? AvailW'(in_bytes_q) : joined - rest;
      end
      all_i: begin
        drop         = words_q;
        pos_d        = '0;
        avail_alone  = '0;
        avail_joined = AvailW'(in_bytes_q);
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (in_move) word_q[wr_q] <= in_data_q;
    if (in_move && in_first_q) start_o <= in_start_q;
    if (!rst_ni) begin
      wr_q    <= '0;
      rd_q    <= '0;
      words_q <= '0;
      pos_q   <= '0;
      avail_q <= '0;
      ended_q <= 1'b0;
      bad_q   <= 1'b0;
    end else begin
      wr_q    <= wr_q + IndexW'(in_move);
      rd_q    <= rd_q + IndexW'(drop);
      words_q <= words_q - drop + WordsW'(in_move);
      pos_q   <= pos_d;
      avail_q <= in_move ? avail_joined : avail_alone;
      if (next_i) begin
        ended_q <= 1'b0;
        bad_q   <= 1'b0;
      end else if (in_move) begin
        ended_q <= in_last_q;
        bad_q   <= bad_q || in_bad_q;
      end
    end
  end

  assign head_o     = word_q[rd_q];
  assign avail_o    = avail_q;
  assign words_o    = words_q;
  assign partial_o  = pos_q != '0;
  assign ended_o    = ended_q;
  assign bad_keep_o = bad_q;

  // Words since the packet's start, modulo 64 bytes.
  if (BusBytes < 64) begin : gen_line
    localparam int unsigned LineW = 6 - PosW;
    logic [LineW-1:0] line_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || next_i) line_q <= '0;
      else line_q <= line_q + LineW'(drop);
    end
    assign aligned_o = line_q == '0 && pos_q == '0;
  end else begin : gen_word
    assign aligned_o = pos_q == '0;
  end

  // ------------------------------------------------ word select, byte shift
  logic                  sel_valid_q, raw_valid_q;
  logic [8*BusBytes*WinWords-1:0] sel_q;
  logic [PosW-1:0]       sel_pos_q;
  logic [UserWidth-1:0]  sel_user_q, raw_user_q;
  logic [8*ExtBytes-1:0] raw_q;
  logic                  sel_go, raw_go;

  assign raw_go       = !raw_valid_q || raw_ready_i;
  assign sel_go       = !sel_valid_q || raw_go;
  assign push_ready_o = sel_go;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sel_valid_q <= 1'b0;
      raw_valid_q <= 1'b0;
    end else begin
      if (sel_go) sel_valid_q <= push_i;
      if (raw_go) raw_valid_q <= sel_valid_q;
    end
    if (push_i) begin
      for (int unsigned i = 0; i < WinWords; i++) begin
        sel_q[8*BusBytes*i +: 8*BusBytes] <= word_q[rd_q + IndexW'(i)];
      end
      sel_pos_q  <= pos_q;
      sel_user_q <= user_i;
    end
    if (raw_go && sel_valid_q) begin
      raw_q      <= (8*ExtBytes)'(sel_q >> {sel_pos_q, 3'b000});
      raw_user_q <= sel_user_q;
    end
  end

  assign raw_valid_o = raw_valid_q;
  assign raw_o       = raw_q;
  assign raw_user_o  = raw_user_q;

`ifndef SYNTHESIS
  a_take_held : assert property (@(posedge clk_i) disable iff (!rst_ni)
      take_i |-> take_bytes_i <= avail_q);
  a_word_held : assert property (@(posedge clk_i) disable iff (!rst_ni) word_i |-> words_q != '0);
  a_one_move : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $onehot0({take_i, word_i, all_i}));
  a_push_room : assert property (@(posedge clk_i) disable iff (!rst_ni) push_i |-> sel_go);
  a_words_bound : assert property (@(posedge clk_i) disable iff (!rst_ni)
      words_q <= WordsW'(Words));
  a_raw_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      raw_valid_q && !raw_ready_i |=> raw_valid_q && $stable(raw_q) && $stable(raw_user_q));
`endif

endmodule
