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
  localparam int unsigned Pieces = ws_kernel_pkg::most_pieces(Types, Lanes, Extract),
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
  output logic                  makes_o,       // its last step (footer: each) makes words
  output logic [2:0]            step_max_o,    // last step: 32 weights a lane, or a footer word
  output logic [ColW-1:0]       col_max_o,     // last column of a step

  // Footer of the job whose token was pushed last, until footer_done_i.
  output logic [31:0]           footer_tag_o,
  output logic [31:0]           footer_status_o,
  output logic [63:0]           footer_start_o,
  input  logic                  footer_done_i
);

  localparam int unsigned Steps = 8 / Lanes;

  typedef enum logic [2:0] {
    StHeader, StCheck, StDecide, StActs, StPad, StWeights, StEnd, StDrain
  } state_e;
  state_e state_q, state_d;

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

  // ------------------------------------------------ walk through a part
  logic              look, begin_part, emit, part_done, super_block, walk_piece_last, walk_last;
  logic [3:0]        look_type;
  logic [23:0]       part_rows;
  logic [AvailW-1:0] first_bytes, next_bytes;
  logic [AddrW-1:0]  step_addr, row_addr;

  ws_job_walk #(
    .Lanes  (Lanes),
    .MaxCols(MaxCols),
    .MaxK   (MaxK),
    .Extract(Extract),
    .BytesW (AvailW),
    .Types  (Types)
  ) u_walk (
    .clk_i,
    .look_i       (look),
    .type_i       (look_type),
    .k_i          (k),
    .begin_i      (begin_part),
    .rows_i       (part_rows),
    .step_i       (emit),
    .first_bytes_o(first_bytes),
    .next_bytes_o (next_bytes),
    .done_o       (part_done),
    .type_o,
    .super_o      (super_block),
    .piece_o,
    .piece_last_o (walk_piece_last),
    .first_o,
    .last_o       (walk_last),
    .lanes_o,
    .step_addr_o  (step_addr),
    .row_addr_o   (row_addr)
  );

  // The activations' type is looked up while the header is checked, the weights' after that.
  assign look      = state_q == StCheck || state_q == StDecide;
  assign look_type = state_q == StCheck ? ws_pkg::TypeQ8_0[3:0] : wtype;
  assign part_rows = state_q == StDecide ? 24'(cols) : rows;

  // ------------------------------------------------ moves
  logic              short_now, footer_busy_q, judge_q, judge_d, clean_q, clean_d;
  logic [AvailW-1:0] need_q, need_d;     // bytes that the next move takes
  logic [31:0]       status_q, status_d, status_end;
  logic              enough, finish, hold, brought_q;

  assign enough       = avail_i >= need_q;
  assign take_bytes_o = need_q;

  // Whether the packet ended in the beat of the last weight byte, seen after that byte was taken.
  logic exact;
  assign exact = ended_i && words_i == WordsW'(partial_i);

  always_comb begin
    state_d      = state_q;
    status_d     = status_q;
    judge_d      = judge_q;
    clean_d      = clean_q;
    need_d       = need_q;
    take_o       = 1'b0;
    word_o       = 1'b0;
    all_o        = 1'b0;
    begin_part   = 1'b0;
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
            clean_d  = 1'b0;
            state_d  = StEnd;
          end else if (header_last) begin
            state_d = StCheck;
          end
        end
      end
      StCheck: state_d = StDecide;
      StDecide: begin
        begin_part = 1'b1;
        need_d     = reuse ? AvailW'(skip) : first_bytes;
        if (header_error != '0) begin
          status_d = header_error;
          clean_d  = 1'b0;
          state_d  = StDrain;
        end else begin
          judge_d = 1'b1;
          state_d = reuse ? StPad : StActs;
        end
      end
      StActs, StWeights: begin
        if (enough) begin
          if (push_ready_i) begin
            take_o = 1'b1;
            emit   = 1'b1;
            need_d = part_done ? AvailW'(skip) : next_bytes;
            if (part_done) state_d = state_q == StActs ? StPad : StEnd;
          end
        end else begin
          short_now = ended_i;
        end
      end
      StPad: begin
        begin_part = 1'b1;
        if (!aligned_i) begin
          if (words_i != '0) word_o = 1'b1;
          else short_now = ended_i;
        end else if (enough) begin
          take_o  = 1'b1;
          need_d  = first_bytes;
          state_d = StWeights;
        end else begin
          short_now = ended_i;
        end
      end
      StEnd: begin
        if (clean_q && !exact) begin
          status_d = ws_pkg::StatusLong;
          clean_d  = 1'b0;
          state_d  = StDrain;
        end else if (push_ready_i && !footer_busy_q) begin
          finish   = 1'b1;
          all_o    = 1'b1;
          status_d = '0;
          clean_d  = 1'b1;
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
      clean_d  = 1'b0;
      state_d  = StEnd;
    end
  end

  assign next_o       = finish;
  assign header_clear = finish;
  assign push_o       = emit || finish;
  assign hold         = finish && judge_q && brought_q && clean_q && !bad_keep_i;
  assign status_end   = status_q | (judge_q && bad_keep_i ? ws_pkg::StatusBadKeep : '0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q       <= StHeader;
      status_q      <= '0;
      judge_q       <= 1'b0;
      clean_q       <= 1'b1;
      held_q        <= 1'b0;
      footer_busy_q <= 1'b0;
    end else begin
      state_q  <= state_d;
      status_q <= status_d;
      judge_q  <= judge_d;
      clean_q  <= clean_d;
      // Activations are held again only when the job that brought them has ended well.
      if (state_q == StDecide && header_error == '0 && !reuse) held_q <= 1'b0;
      else if (hold) held_q <= 1'b1;
      if (finish) footer_busy_q <= 1'b1;
      else if (footer_done_i) footer_busy_q <= 1'b0;
    end
    need_q <= need_d;
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
  logic weights;
  assign weights = state_q == StWeights;

  assign kind_o       = state_q == StActs ? ws_kernel_pkg::KindAct
                      : weights ? ws_kernel_pkg::KindWeight : ws_kernel_pkg::KindFooter;
  assign piece_last_o = walk_piece_last || finish;
  assign last_o       = walk_last;
  assign makes_o      = finish || (weights && walk_last);
  assign step_max_o   = finish ? 3'd3 : weights && super_block ? 3'(Steps - 1) : 3'd0;
  assign col_max_o    = weights ? ColW'(cols - 1'b1) : '0;
  assign addr_o       = weights ? step_addr : row_addr;

`ifndef SYNTHESIS
  a_footer_free : assert property (@(posedge clk_i) disable iff (!rst_ni)
      finish |-> !footer_busy_q);
  a_push_room : assert property (@(posedge clk_i) disable iff (!rst_ni) push_o |-> push_ready_i);
`endif

endmodule
