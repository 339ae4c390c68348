// Streaming kernel: jobs in, results out (docs/stream.md), registers on AXI4-Lite
// (docs/registers.md).
//
//   s_axis > ws_realign > ws_group > lanes (decode, dot, scale) > ws_acc > ws_round > ws_footer
//               |  ^                   ^                                               |
//           ws_job_parser            ws_issue <----------- credits ------------ ws_result > m_axis
//
// Throughput: a bus word a cycle, as long as BlocksPerCycle blocks of 32 weights a cycle suffice
// for that and the columns. Latency: about 30 cycles from a packet's last byte to its footer. A
// packet is taken while the one before it is still computed; 2 or 3 cycles pass without a beat
// between them.
module ws_kernel #(
  parameter int unsigned BusWidth = 128,       // 64, 128, 256 or 512
  parameter int unsigned BlocksPerCycle = 1,   // 1, 2 or 4: blocks of 32 weights
  parameter int unsigned MaxCols = 4,          // 1 to 255
  parameter int unsigned MaxK = 16384,         // a multiple of 256
  parameter logic [15:0] Types = 16'h7DCC,     // bit n: weight type n is built in
  localparam int unsigned BusBytes = BusWidth / 8
) (
  input  logic                aclk,
  input  logic                aresetn,

  input  logic [11:0]         s_axi_ctrl_awaddr,
  input  logic [2:0]          s_axi_ctrl_awprot,
  input  logic                s_axi_ctrl_awvalid,
  output logic                s_axi_ctrl_awready,
  input  logic [31:0]         s_axi_ctrl_wdata,
  input  logic [3:0]          s_axi_ctrl_wstrb,
  input  logic                s_axi_ctrl_wvalid,
  output logic                s_axi_ctrl_wready,
  output logic [1:0]          s_axi_ctrl_bresp,
  output logic                s_axi_ctrl_bvalid,
  input  logic                s_axi_ctrl_bready,
  input  logic [11:0]         s_axi_ctrl_araddr,
  input  logic [2:0]          s_axi_ctrl_arprot,
  input  logic                s_axi_ctrl_arvalid,
  output logic                s_axi_ctrl_arready,
  output logic [31:0]         s_axi_ctrl_rdata,
  output logic [1:0]          s_axi_ctrl_rresp,
  output logic                s_axi_ctrl_rvalid,
  input  logic                s_axi_ctrl_rready,

  input  logic [BusWidth-1:0] s_axis_tdata,
  input  logic [BusBytes-1:0] s_axis_tkeep,
  input  logic                s_axis_tlast,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,

  output logic [BusWidth-1:0] m_axis_tdata,
  output logic [BusBytes-1:0] m_axis_tkeep,
  output logic                m_axis_tlast,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready
);

  localparam int unsigned Lanes = BlocksPerCycle;
  localparam int unsigned Levels = $clog2(Lanes);
  localparam int unsigned ExtBytes = ws_kernel_pkg::extract_bytes(BusBytes);
  localparam int unsigned Pieces = ws_kernel_pkg::most_pieces(Types, Lanes, ExtBytes);
  localparam int unsigned PieceW = ws_kernel_pkg::index_width(Pieces);
  localparam int unsigned Stride = MaxK / 32 / Lanes;
  localparam int unsigned AddrW = ws_kernel_pkg::index_width(MaxCols * Stride);
  localparam int unsigned ColW = ws_kernel_pkg::index_width(MaxCols);
  localparam int unsigned Words = BusBytes <= 16 ? 8 : 4;
  localparam int unsigned WordsW = $clog2(Words + 1);
  localparam int unsigned AvailW = $clog2(Words * BusBytes + 1);
  localparam int unsigned TermWidth = 107;
  localparam int unsigned LaneLatency = 12;
  localparam int unsigned ResultDepth = 64;

  // ------------------------------------------------ reset, time
  logic        rst_nq, soft_reset;
  logic [63:0] now_q;

  always_ff @(posedge aclk) begin
    rst_nq <= aresetn && !soft_reset;
    if (!aresetn) now_q <= '0;
    else now_q <= now_q + 1'b1;
  end

  // ------------------------------------------------ stream in, job parser
  logic [BusWidth-1:0]   head;
  logic [AvailW-1:0]     avail, take_bytes;
  logic [WordsW-1:0]     words;
  logic                  partial, aligned, ended, bad_keep, take, skip_word, skip_all, next_packet;
  logic                  push, push_ready, raw_valid, raw_ready;
  logic [63:0]           start;
  logic [8*ExtBytes-1:0] raw;

  // What a group is, from the parser to the issue stage.
  typedef struct packed {
    logic [1:0]       kind;
    logic [3:0]       wtype;
    logic             first;
    logic             last;
    logic [Lanes-1:0] lanes;
    logic [AddrW-1:0] addr;
    logic             makes;
    logic [2:0]       step_max;
    logic [ColW-1:0]  col_max;
  } label_t;
  localparam int unsigned LabelW = 12 + Lanes + AddrW + ColW;

  label_t            label_push, label_raw, label_group;
  logic [PieceW-1:0] piece_push, piece_raw;
  logic              piece_last_push, piece_last_raw;

  logic [31:0] footer_tag, footer_status;
  logic [63:0] footer_start;
  logic        footer_done;

  ws_realign #(
    .BusBytes (BusBytes),
    .ExtBytes (ExtBytes),
    .UserWidth(LabelW + PieceW + 1)
  ) u_realign (
    .clk_i       (aclk),
    .rst_ni      (rst_nq),
    .now_i       (now_q),
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .s_axis_tvalid,
    .s_axis_tready,
    .head_o      (head),
    .avail_o     (avail),
    .words_o     (words),
    .partial_o   (partial),
    .aligned_o   (aligned),
    .ended_o     (ended),
    .bad_keep_o  (bad_keep),
    .start_o     (start),
    .take_i      (take),
    .take_bytes_i(take_bytes),
    .word_i      (skip_word),
    .all_i       (skip_all),
    .next_i      (next_packet),
    .push_i      (push),
    .user_i      ({label_push, piece_push, piece_last_push}),
    .push_ready_o(push_ready),
    .raw_valid_o (raw_valid),
    .raw_o       (raw),
    .raw_user_o  ({label_raw, piece_raw, piece_last_raw}),
    .raw_ready_i (raw_ready)
  );

  ws_job_parser #(
    .BusBytes(BusBytes),
    .Lanes   (Lanes),
    .MaxCols (MaxCols),
    .MaxK    (MaxK),
    .Types   (Types)
  ) u_parser (
    .clk_i          (aclk),
    .rst_ni         (rst_nq),
    .head_i         (head),
    .avail_i        (avail),
    .words_i        (words),
    .partial_i      (partial),
    .aligned_i      (aligned),
    .ended_i        (ended),
    .bad_keep_i     (bad_keep),
    .start_i        (start),
    .take_o         (take),
    .take_bytes_o   (take_bytes),
    .word_o         (skip_word),
    .all_o          (skip_all),
    .next_o         (next_packet),
    .push_ready_i   (push_ready),
    .push_o         (push),
    .kind_o         (label_push.kind),
    .type_o         (label_push.wtype),
    .piece_o        (piece_push),
    .piece_last_o   (piece_last_push),
    .first_o        (label_push.first),
    .last_o         (label_push.last),
    .lanes_o        (label_push.lanes),
    .addr_o         (label_push.addr),
    .makes_o        (label_push.makes),
    .step_max_o     (label_push.step_max),
    .col_max_o      (label_push.col_max),
    .footer_tag_o   (footer_tag),
    .footer_status_o(footer_status),
    .footer_start_o (footer_start),
    .footer_done_i  (footer_done)
  );

  // ------------------------------------------------ group, issue
  logic                         group_valid, group_done;
  logic [Pieces*8*ExtBytes-1:0] group;
  logic                         slot_store, slot_weight, slot_footer, slot_fresh;
  logic                         slot_first, slot_last, store_busy, result_pop;
  logic [2:0]                   slot_step;
  logic [1:0]                   slot_word;
  logic [ColW-1:0]              slot_col;
  logic [AddrW-1:0]             slot_addr;

  ws_group #(
    .ExtBytes (ExtBytes),
    .Pieces   (Pieces),
    .UserWidth(LabelW)
  ) u_group (
    .clk_i       (aclk),
    .rst_ni      (rst_nq),
    .valid_i     (raw_valid),
    .ready_o     (raw_ready),
    .raw_i       (raw),
    .piece_i     (piece_raw),
    .piece_last_i(piece_last_raw),
    .user_i      (label_raw),
    .valid_o     (group_valid),
    .group_o     (group),
    .user_o      (label_group),
    .done_i      (group_done)
  );

  ws_issue #(
    .MaxCols(MaxCols),
    .Stride (Stride),
    .Credits(ResultDepth)
  ) u_issue (
    .clk_i       (aclk),
    .rst_ni      (rst_nq),
    .valid_i     (group_valid),
    .kind_i      (label_group.kind),
    .first_i     (label_group.first),
    .last_i      (label_group.last),
    .addr_i      (label_group.addr),
    .makes_i     (label_group.makes),
    .step_max_i  (label_group.step_max),
    .col_max_i   (label_group.col_max),
    .done_o      (group_done),
    .store_o     (slot_store),
    .weight_o    (slot_weight),
    .footer_o    (slot_footer),
    .fresh_o     (slot_fresh),
    .first_o     (slot_first),
    .last_o      (slot_last),
    .step_o      (slot_step),
    .word_o      (slot_word),
    .col_o       (slot_col),
    .addr_o      (slot_addr),
    .store_busy_i(store_busy),
    .word_pop_i  (result_pop)
  );

  // Activations take two cycles from their slot to the memory.
  logic storing_q;
  always_ff @(posedge aclk) begin
    if (!rst_nq) begin
      storing_q  <= 1'b0;
      store_busy <= 1'b0;
    end else begin
      storing_q  <= slot_store;
      store_busy <= slot_store || storing_q;
    end
  end

  // ------------------------------------------------ lanes
  logic [LaneLatency:1]                   slot_valid_q;
  logic [LaneLatency-1:0]                 slot_valid;
  logic [Lanes-1:0][TermWidth-1:0]        term;
  logic [Lanes-1:0]                       bad;

  always_ff @(posedge aclk) begin
    if (!rst_nq) slot_valid_q <= '0;
    else slot_valid_q <= slot_valid;
  end
  assign slot_valid = {slot_valid_q[LaneLatency-1:1], slot_weight};

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    ws_lane #(
      .ExtBytes(ExtBytes),
      .Lanes   (Lanes),
      .Lane    (l),
      .Depth   (MaxCols * Stride),
      .Types   (Types)
    ) u_lane (
      .clk_i   (aclk),
      .rst_ni  (rst_nq),
      .group_i (group),
      .type_i  (label_group.wtype),
      .step_i  (slot_step),
      .enable_i(label_group.lanes[l]),
      .store_i (slot_store),
      .fresh_i (slot_fresh),
      .addr_i  (slot_addr),
      .valid_i (slot_valid),
      .term_o  (term[l]),
      .bad_o   (bad[l])
    );
  end

  // ------------------------------------------------ accumulate, round
  // The slot's labels, as late as its terms.
  logic            acc_slot, acc_footer, acc_first, acc_last;
  logic [1:0]      acc_word;
  logic [ColW-1:0] acc_col;
  logic [LaneLatency+Levels:1] word_valid_q;

  always_ff @(posedge aclk) begin
    if (!rst_nq) word_valid_q <= '0;
    else word_valid_q <= {word_valid_q[LaneLatency+Levels-1:1], slot_weight || slot_footer};
  end
  assign acc_slot = word_valid_q[LaneLatency+Levels];

  ws_delay #(
    .Width(5 + ColW),
    .Depth(LaneLatency + Levels)
  ) u_slot (
    .clk_i(aclk),
    .d_i  ({slot_footer, slot_word, slot_first, slot_last, slot_col}),
    .q_o  ({acc_footer, acc_word, acc_first, acc_last, acc_col})
  );

  logic                sum_valid, sum_footer, sum_bad, word_valid, word_footer, word_last;
  logic [1:0]          sum_word, word_index;
  logic signed [127:0] sum;
  logic [31:0]         float, word, status;

  ws_acc #(
    .Lanes    (Lanes),
    .MaxCols  (MaxCols),
    .TermWidth(TermWidth)
  ) u_acc (
    .clk_i       (aclk),
    .rst_ni      (rst_nq),
    .valid_i     (slot_valid_q[LaneLatency]),
    .term_i      (term),
    .bad_i       (bad),
    .slot_valid_i(acc_slot),
    .footer_i    (acc_footer),
    .word_i      (acc_word),
    .first_i     (acc_first),
    .last_i      (acc_last),
    .col_i       (acc_col),
    .valid_o     (sum_valid),
    .footer_o    (sum_footer),
    .word_o      (sum_word),
    .sum_o       (sum),
    .bad_o       (sum_bad)
  );

  ws_round #(
    .UserWidth(3)
  ) u_round (
    .clk_i  (aclk),
    .rst_ni (rst_nq),
    .valid_i(sum_valid),
    .sum_i  (sum),
    .bad_i  (sum_bad),
    .user_i ({sum_footer, sum_word}),
    .valid_o(word_valid),
    .float_o(float),
    .user_o ({word_footer, word_index})
  );

  // ------------------------------------------------ footer, stream out
  ws_footer u_footer (
    .clk_i   (aclk),
    .rst_ni  (rst_nq),
    .now_i   (now_q),
    .valid_i (word_valid),
    .footer_i(word_footer),
    .word_i  (word_index),
    .float_i (float),
    .tag_i   (footer_tag),
    .status_i(footer_status),
    .start_i (footer_start),
    .word_o  (word),
    .last_o  (word_last),
    .done_o  (footer_done),
    .status_o(status)
  );

  ws_result #(
    .BusBytes(BusBytes),
    .Depth   (ResultDepth)
  ) u_result (
    .clk_i  (aclk),
    .rst_ni (rst_nq),
    .valid_i(word_valid),
    .word_i (word),
    .last_i (word_last),
    .pop_o  (result_pop),
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tvalid,
    .m_axis_tready
  );

  // ------------------------------------------------ registers
  ws_kernel_csr #(
    .BusWidth      (BusWidth),
    .BlocksPerCycle(BlocksPerCycle),
    .MaxCols       (MaxCols),
    .MaxK          (MaxK),
    .Types         (Types)
  ) u_csr (
    .clk_i       (aclk),
    .rst_ni      (aresetn),
    .s_axi_ctrl_awaddr,
    .s_axi_ctrl_awprot,
    .s_axi_ctrl_awvalid,
    .s_axi_ctrl_awready,
    .s_axi_ctrl_wdata,
    .s_axi_ctrl_wstrb,
    .s_axi_ctrl_wvalid,
    .s_axi_ctrl_wready,
    .s_axi_ctrl_bresp,
    .s_axi_ctrl_bvalid,
    .s_axi_ctrl_bready,
    .s_axi_ctrl_araddr,
    .s_axi_ctrl_arprot,
    .s_axi_ctrl_arvalid,
    .s_axi_ctrl_arready,
    .s_axi_ctrl_rdata,
    .s_axi_ctrl_rresp,
    .s_axi_ctrl_rvalid,
    .s_axi_ctrl_rready,
    .soft_reset_o(soft_reset),
    .in_reset_i  (!rst_nq),
    .in_valid_i  (s_axis_tvalid),
    .in_ready_i  (s_axis_tready),
    .in_last_i   (s_axis_tlast),
    .out_valid_i (m_axis_tvalid),
    .out_ready_i (m_axis_tready),
    .out_last_i  (m_axis_tlast),
    .footer_i    (footer_done),
    .status_i    (status)
  );

`ifndef SYNTHESIS
  initial begin
    if (!(BusWidth inside {64, 128, 256, 512})) $fatal(1, "BusWidth must be 64, 128, 256 or 512");
    if (!(BlocksPerCycle inside {1, 2, 4})) $fatal(1, "BlocksPerCycle must be 1, 2 or 4");
    if (MaxCols < 1 || MaxCols > 255) $fatal(1, "MaxCols must be 1 to 255");
    if (MaxK < 256 || MaxK % 256 != 0) $fatal(1, "MaxK must be a multiple of 256");
  end
`endif

endmodule
