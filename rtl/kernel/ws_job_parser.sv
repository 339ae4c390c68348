// Walks through a job packet: header, activations, padding, skipped bytes, weight rows, end.
//
// It moves the realignment stage through the packet and labels what that stage extracts, so that
// the stages behind need no state of the job. Every way through a packet ends in one footer token,
// which follows the job's last bytes down the same pipeline. A malformed packet is drained first.
//
// Throughput: one extraction a cycle. Cost a job beside its bytes: 2 cycles after the header, 1 for
// the skipped bytes, 1 for the end; the realignment stage goes on filling meanwhile.
module ws_job_parser #(
  parameter int unsigned BusBytes = 16,
  parameter int unsigned Lanes = 1,
  parameter int unsigned MaxCols = 4,
  parameter int unsigned MaxK = 16384,
  parameter logic [15:0] Types = 16'h7DCC,
  localparam int unsigned Extract = ws_kernel_pkg::extract_bytes(BusBytes),
  localparam int unsigned Stride = MaxK / 32 / Lanes,
  localparam int unsigned AddrW = ws_kernel_pkg::index_width(MaxCols * Stride),
  localparam int unsigned ColW = ws_kernel_pkg::index_width(MaxCols),
  localparam int unsigned Pieces = ws_kernel_pkg::most_pieces(Types, Extract),
  localparam int unsigned PieceW = ws_kernel_pkg::index_width(Pieces),
  localparam int unsigned Words = BusBytes <= 16 ? 8 : 4,
  localparam int unsigned WordsW = $clog2(Words + 1),
  localparam int unsigned AvailW = $clog2(Words * BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Realignment stage.
  input  logic [8*BusBytes-1:0] head_i,
  input  logic [AvailW-1:0]     avail_i,
  input  logic [WordsW-1:0]     words_i,
  input  logic                  partial_i,
  input  logic                  aligned_i,
  input  logic                  ended_i,
  input  logic                  bad_keep_i,
  input  logic [63:0]           start_i,
  output logic                  take_o,
  output logic [AvailW-1:0]     take_bytes_o,
  output logic                  word_o,
  output logic                  all_o,
  output logic                  next_o,
  input  logic                  push_ready_i,
  output logic                  push_o,

  // What is pushed.
  output logic [1:0]            kind_o,        // kind_e
  output logic [3:0]            type_o,
  output logic [PieceW-1:0]     piece_o,       // of the block, 0 first
  output logic                  piece_last_o,
  output logic                  first_o,       // of the row
  output logic                  last_o,        // of the row
  output logic [Lanes-1:0]      lanes_o,       // that have a block
  output logic [AddrW-1:0]      addr_o,        // in the activation memory, for column 0
  output logic [ColW-1:0]       cols_m1_o,

  // Footer of the job whose token was pushed last, until footer_done_i.
  output logic [31:0]           footer_tag_o,
  output logic [31:0]           footer_status_o,
  output logic [63:0]           footer_start_o,
  input  logic                  footer_done_i
);

  localparam int unsigned LogLanes = $clog2(Lanes);
  localparam int unsigned BlocksW = $clog2(MaxK / 32 + 1);
  localparam int unsigned StepW = ws_kernel_pkg::index_width(Stride);

  // ------------------------------------------------ header
  logic        header_clear, header_word, header_last;
  logic        held_q;
  logic [31:0] held_k_q, held_cols_q;
  logic [31:0] tag, k, cols, header_error;
  logic [3:0]  wtype;
  logic [23:0] rows;
  logic [6:0]  skip;
  logic        reuse;

  ws_job_header #(
    .BusBytes(BusBytes),
    .MaxCols (MaxCols),
    .MaxK    (MaxK),
    .Types   (Types)
  ) u_header (
    .clk_i,
    .rst_ni,
    .clear_i    (header_clear),
    .word_i     (header_word),
    .data_i     (head_i),
    .bytes_i    (avail_i),
    .last_o     (header_last),
    .held_i     (held_q),
    .held_k_i   (held_k_q),
    .held_cols_i(held_cols_q),
    .tag_o      (tag),
    .type_o     (wtype),
    .k_o        (k),
    .rows_o     (rows),
    .cols_o     (cols),
    .skip_o     (skip),
    .reuse_o    (reuse),
    .error_o    (header_error)
  );

  // ------------------------------------------------ shape of a phase
  // Activations are walked through as rows of Q8_0, one a column. A row is a number of groups; a
  // group is what the lanes get at once: some blocks of 32, or one block of 256 in pieces.
  typedef enum logic [2:0] {
    StHeader, StCheck, StDecide, StActs, StPad, StWeights, StEnd, StDrain
  } state_e;
  state_e state_q, state_d;

  logic               setup;
  logic [3:0]         setup_type;
  logic               setup_super;
  logic [1:0]         setup_log;
  logic [PieceW-1:0]  setup_piece_max;
  logic [AvailW-1:0]  setup_full;
  logic [3:0][AvailW-1:0] setup_tails;
  logic [BlocksW-1:0] blocks_m1, setup_group_max;
  logic [1:0]         setup_tail_m1;

  assign setup_type = state_q == StDecide ? ws_pkg::TypeQ8_0[3:0] : wtype;
  assign blocks_m1  = BlocksW'(k >> 5) - 1'b1;

  // setup_tails: bytes of a last group of 1 to 4 blocks; the first also of a last piece.
  always_comb begin
    setup_super     = 1'b0;
    setup_log       = '0;
    setup_piece_max = '0;
    setup_full      = '0;
    setup_tails     = '0;
    for (int unsigned t = 0; t < 16; t++) begin
      // Of use while a phase is set up; naming that keeps it still otherwise.
      if (setup && (Types[t] || t == ws_pkg::TypeQ8_0) && setup_type == 4'(t)) begin
        setup_super     = ws_kernel_pkg::block_weights(t) == 256;
        setup_log       = 2'(ws_kernel_pkg::log_blocks(t, Lanes, Extract));
        setup_piece_max = PieceW'(ws_kernel_pkg::block_pieces(t, Extract) - 1);
        setup_full      = AvailW'(ws_kernel_pkg::group_bytes(t, Lanes, Extract));
        setup_tails[0]  = AvailW'(ws_kernel_pkg::tail_bytes(t, Extract));
        if (ws_kernel_pkg::block_weights(t) == 32) begin
          for (int unsigned i = 1; i < 4; i++) begin
            setup_tails[i] = AvailW'(ws_kernel_pkg::block_bytes(t) * (i + 1));
          end
        end
      end
    end
    setup_group_max = setup_super ? blocks_m1 >> 3 : blocks_m1 >> setup_log;
    setup_tail_m1   = setup_super ? '0 : blocks_m1[1:0] & ~(2'b11 << setup_log);
  end

  // Registers of the phase, loaded while the phase before it ends.
  logic [3:0]         type_q;
  logic               super_q;
  logic [1:0]         log_q, tail_m1_q;
  logic [PieceW-1:0]  piece_max_q, piece_q, piece_d;
  logic [AvailW-1:0]  full_q, tail_q;
  logic [BlocksW-1:0] group_max_q, group_q, group_d;
  logic [23:0]        rows_q;          // left after this one
  logic               tail_now_q;      // the next extraction is a tail
  logic [AddrW-1:0]   base_q;          // address of the row's first block
  logic               piece_last, group_last, emit, phase_done;

  assign piece_last = piece_q == piece_max_q;
  assign group_last = group_q == group_max_q;
  assign piece_d    = piece_last ? '0 : piece_q + 1'b1;
  assign group_d    = !piece_last ? group_q : group_last ? '0 : group_q + 1'b1;
  assign phase_done = piece_last && group_last && rows_q == '0;

  always_ff @(posedge clk_i) begin
    if (setup) begin
      type_q      <= setup_type;
      super_q     <= setup_super;
      log_q       <= setup_log;
      piece_max_q <= setup_piece_max;
      full_q      <= setup_full;
      tail_q      <= setup_tails[setup_tail_m1];
      tail_m1_q   <= setup_tail_m1;
      group_max_q <= setup_group_max;
      piece_q     <= '0;
      group_q     <= '0;
      tail_now_q  <= setup_super ? setup_piece_max == '0 : setup_group_max == '0;
      rows_q      <= state_q == StDecide ? 24'(cols - 1'b1) : rows - 1'b1;
      base_q      <= '0;
    end else if (emit) begin
      piece_q    <= piece_d;
      group_q    <= group_d;
      tail_now_q <= super_q ? piece_d == piece_max_q : group_d == group_max_q;
      if (piece_last && group_last) begin
        rows_q <= rows_q - 1'b1;
        base_q <= base_q + AddrW'(Stride);
      end
    end
  end

  // ------------------------------------------------ moves
  logic              short_now, footer_busy_q, judge_q, judge_d;
  logic [AvailW-1:0] need;
  logic [31:0]       status_q, status_d, status_end;
  logic              finish, hold, brought_q;

  assign need = tail_now_q ? tail_q : full_q;

  // Whether the packet ended in the beat of the last weight byte, seen after that byte was taken.
  logic exact;
  assign exact = ended_i && words_i == WordsW'(partial_i);

  always_comb begin
    state_d      = state_q;
    status_d     = status_q;
    judge_d      = judge_q;
    take_o       = 1'b0;
    take_bytes_o = need;
    word_o       = 1'b0;
    all_o        = 1'b0;
    setup        = 1'b0;
    emit         = 1'b0;
    finish       = 1'b0;
    short_now    = 1'b0;
    header_word  = 1'b0;
    unique case (state_q)
      StHeader: begin
        if (words_i != '0) begin
          word_o      = 1'b1;
          header_word = 1'b1;
          if (avail_i < AvailW'(BusBytes)
              || (!header_last && ended_i && words_i == WordsW'(1))) begin
            status_d = ws_pkg::StatusShort;
            state_d  = StEnd;
          end else if (header_last) begin
            state_d = StCheck;
          end
        end
      end
      StCheck: state_d = StDecide;
      StDecide: begin
        setup = 1'b1;
        if (header_error != '0) begin
          status_d = header_error;
          state_d  = StDrain;
        end else begin
          judge_d = 1'b1;
          state_d = reuse ? StPad : StActs;
        end
      end
      StActs, StWeights: begin
        if (avail_i >= need) begin
          if (push_ready_i) begin
            take_o = 1'b1;
            emit   = 1'b1;
            if (phase_done) state_d = state_q == StActs ? StPad : StEnd;
          end
        end else begin
          short_now = ended_i;
        end
      end
      StPad: begin
        setup        = 1'b1;
        take_bytes_o = AvailW'(skip);
        if (!aligned_i) begin
          if (words_i != '0) word_o = 1'b1;
          else short_now = ended_i;
        end else if (avail_i >= AvailW'(skip)) begin
          take_o  = 1'b1;
          state_d = StWeights;
        end else begin
          short_now = ended_i;
        end
      end
      StEnd: begin
        if (status_q == '0 && !exact) begin
          status_d = ws_pkg::StatusLong;
          state_d  = StDrain;
        end else if (push_ready_i && !footer_busy_q) begin
          finish   = 1'b1;
          all_o    = 1'b1;
          status_d = '0;
          judge_d  = 1'b0;
          state_d  = StHeader;
        end
      end
      StDrain: begin
        all_o = 1'b1;
        if (ended_i) state_d = StEnd;
      end
      default: state_d = StHeader;
    endcase
    if (short_now) begin
      status_d = ws_pkg::StatusShort;
      state_d  = StEnd;
    end
  end

  assign next_o       = finish;
  assign header_clear = finish;
  assign push_o       = emit || finish;
  assign hold         = finish && judge_q && brought_q && status_end == '0;
  assign status_end   = status_q | (judge_q && bad_keep_i ? ws_pkg::StatusBadKeep : '0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q       <= StHeader;
      status_q      <= '0;
      judge_q       <= 1'b0;
      held_q        <= 1'b0;
      footer_busy_q <= 1'b0;
    end else begin
      state_q  <= state_d;
      status_q <= status_d;
      judge_q  <= judge_d;
      // Activations are held again only when the job that brought them has ended well.
      if (state_q == StDecide && header_error == '0 && !reuse) held_q <= 1'b0;
      else if (hold) held_q <= 1'b1;
      if (finish) footer_busy_q <= 1'b1;
      else if (footer_done_i) footer_busy_q <= 1'b0;
    end
    if (state_q == StDecide) brought_q <= !reuse;
    if (hold) begin
      held_k_q    <= k;
      held_cols_q <= cols;
    end
    if (finish) begin
      footer_tag_o    <= tag;
      footer_status_o <= status_end;
      footer_start_o  <= start_i;
    end
  end

  // ------------------------------------------------ labels
  logic [StepW-1:0] step;
  logic [1:0]       first_lane, count_m1;

  assign kind_o       = state_q == StActs ? ws_kernel_pkg::KindAct
                      : state_q == StWeights ? ws_kernel_pkg::KindWeight
                      : ws_kernel_pkg::KindFooter;
  assign type_o       = type_q;
  assign piece_o      = piece_q;
  assign piece_last_o = piece_last || finish;
  assign first_o      = group_q == '0;
  assign last_o       = group_last;
  assign cols_m1_o    = ColW'(cols - 1'b1);

  // Lane l holds the blocks whose number is l modulo Lanes, so a group of fewer blocks than lanes
  // takes the lanes from that of its first block on.
  assign step       = StepW'(super_q ? group_q << (3 - LogLanes)
                                     : group_q >> (2'(LogLanes) - log_q));
  assign first_lane = 2'(group_q << log_q) & 2'(Lanes - 1);
  assign count_m1   = group_last ? tail_m1_q : ~(2'b11 << log_q);
  assign lanes_o    = super_q ? '1 : Lanes'((4'b1111 >> (2'd3 - count_m1)) << first_lane);
  assign addr_o     = (state_q == StActs ? base_q : '0) + AddrW'(step);

`ifndef SYNTHESIS
  a_footer_free : assert property (@(posedge clk_i) disable iff (!rst_ni)
      finish |-> !footer_busy_q);
  a_push_room : assert property (@(posedge clk_i) disable iff (!rst_ni) push_o |-> push_ready_i);
`endif

endmodule
