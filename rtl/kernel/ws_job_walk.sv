// Walks through the rows of one part of a job, activations or weights, and labels each extraction.
//
// A row is a number of groups; a group is what the lanes get at once: a block of 32 for each, or
// one block of 256. A group comes in pieces, one an extraction. Activations are walked through as
// rows of Q8_0, one a column. First the type is looked up (`look_i`), then the part is begun
// (`begin_i`, from the next cycle on), then each extraction is counted (`step_i`).
//
// Throughput: one extraction a cycle; all that decides the next one comes from registers.
module ws_job_walk #(
  parameter int unsigned Lanes = 1,
  parameter int unsigned MaxCols = 4,
  parameter int unsigned MaxK = 16384,
  parameter int unsigned Extract = 34,
  parameter int unsigned BytesW = 8,
  parameter logic [15:0] Types = 16'h7DCC,
  localparam int unsigned Stride = MaxK / 32 / Lanes,
  localparam int unsigned AddrW = ws_kernel_pkg::index_width(MaxCols * Stride),
  localparam int unsigned Pieces = ws_kernel_pkg::most_pieces(Types, Lanes, Extract),
  localparam int unsigned PieceW = ws_kernel_pkg::index_width(Pieces)
) (
  input  logic              clk_i,

  input  logic              look_i,
  input  logic [3:0]        type_i,        // with look_i
  input  logic [31:0]       k_i,           // with look_i
  input  logic              begin_i,
  input  logic [23:0]       rows_i,        // with begin_i: rows, or columns of activations
  input  logic              step_i,

  output logic [BytesW-1:0] first_bytes_o, // of the part's first extraction, with begin_i
  output logic [BytesW-1:0] next_bytes_o,  // of the one after the present one
  output logic              done_o,        // the present one is the part's last

  // The present extraction.
  output logic [3:0]        type_o,
  output logic              super_o,       // of a block of 256
  output logic [PieceW-1:0] piece_o,
  output logic              piece_last_o,
  output logic              first_o,       // of the row
  output logic              last_o,        // of the row
  output logic [Lanes-1:0]  lanes_o,       // that have a block
  output logic [AddrW-1:0]  step_addr_o,   // in the activation memory, within a column
  output logic [AddrW-1:0]  row_addr_o     // the same, when the rows are columns
);

  localparam int unsigned LogLanes = $clog2(Lanes);
  localparam int unsigned StepW = ws_kernel_pkg::index_width(Stride);
  localparam int unsigned BlocksW = $clog2(MaxK / 32 + 1);

  // ------------------------------------------------ the type's shape
  logic [3:0]             look_type_q;
  logic                   look_super_d, look_super_q, look_single_d, look_single_q;
  logic [1:0]             look_log_d, look_log_q;
  logic [PieceW-1:0]      look_piece_max_d, look_piece_max_q;
  logic [BytesW-1:0]      look_full_d, look_full_q;
  logic [3:0][BytesW-1:0] look_tails_d, look_tails_q;  // of a piece of 1 to 4 blocks, or the last
  logic [BlocksW-1:0]     look_blocks_m1_q;

  always_comb begin
    look_super_d     = 1'b0;
    look_single_d    = 1'b0;
    look_log_d       = '0;
    look_piece_max_d = '0;
    look_full_d      = '0;
    look_tails_d     = '0;
    for (int unsigned t = 0; t < 16; t++) begin
      if (look_i && (Types[t] || t == ws_pkg::TypeQ8_0) && type_i == 4'(t)) begin
        look_super_d     = ws_kernel_pkg::block_weights(t) == 256;
        look_single_d    = k_i <= ws_kernel_pkg::group_weights(t, Lanes);
        look_log_d       = 2'(ws_kernel_pkg::log_blocks(t, Lanes, Extract));
        look_piece_max_d = PieceW'(ws_kernel_pkg::group_pieces(t, Lanes, Extract) - 1);
        look_full_d      = BytesW'(ws_kernel_pkg::piece_bytes(t, Lanes, Extract));
        for (int unsigned i = 0; i < 4; i++) begin
          if (ws_kernel_pkg::block_weights(t) == 32) begin
            look_tails_d[i] = BytesW'(ws_kernel_pkg::block_bytes(t) * (i + 1));
          end else begin
            look_tails_d[i] = BytesW'(ws_kernel_pkg::block_bytes(t)
                            - (ws_kernel_pkg::group_pieces(t, Lanes, Extract) - 1) * Extract);
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (look_i) begin
      look_type_q      <= type_i;
      look_super_q     <= look_super_d;
      look_single_q    <= look_single_d;
      look_log_q       <= look_log_d;
      look_piece_max_q <= look_piece_max_d;
      look_full_q      <= look_full_d;
      look_tails_q     <= look_tails_d;
      look_blocks_m1_q <= BlocksW'(k_i >> 5) - 1'b1;
    end
  end

  // ------------------------------------------------ the part's shape
  // A row's last group may have fewer blocks of 32, so fewer pieces and a shorter last one.
  logic [BlocksW-1:0] begin_group_max;
  logic [1:0]         begin_lanes_m1, begin_pieces_m1, begin_blocks_m1;
  logic [PieceW-1:0]  begin_tail_max;
  logic               begin_last;
  logic [BytesW-1:0]  begin_tail;

  assign begin_group_max = look_super_q ? look_blocks_m1_q >> 3 : look_blocks_m1_q >> LogLanes;
  assign begin_lanes_m1  = look_blocks_m1_q[1:0] & 2'(Lanes - 1);
  assign begin_pieces_m1 = begin_lanes_m1 >> look_log_q;
  assign begin_blocks_m1 = begin_lanes_m1 & ~(2'b11 << look_log_q);
  assign begin_tail_max  = look_super_q ? look_piece_max_q : PieceW'(begin_pieces_m1);
  assign begin_tail      = look_tails_q[begin_blocks_m1];
  assign begin_last      = (look_single_q ? begin_tail_max : look_piece_max_q) == '0;
  assign first_bytes_o   = begin_last && (look_super_q || look_single_q) ? begin_tail : look_full_q;

  // ------------------------------------------------ counters
  logic [3:0]         type_q;
  logic               super_q;
  logic [1:0]         lanes_m1_q;                           // of the row's last group
  logic [PieceW-1:0]  piece_max_q, tail_max_q, piece_q, piece_d;
  logic [BytesW-1:0]  full_q, tail_q;
  logic [BlocksW-1:0] group_max_q, group_q, group_next_q;
  logic [BlocksW-1:0] group_left_q;                         // after this one in the row
  logic [23:0]        rows_q;                               // left, with this one
  logic               piece_last_q, piece_last_d, group_last_q, group_last_d, row_last_q;
  // One step further ahead, so that no comparison decides the next extraction.
  logic               piece_after_q;                        // the next piece is its group's last
  logic               group_after_q;                        // the next group is its row's last
  logic [PieceW-1:0]  piece_max;
  logic               full_one_q, full_two_q, tail_one_q, tail_two_q;  // pieces of a group
  logic               row_short_q;                          // a row is one group or two
  logic [AddrW-1:0]   base_q;                               // of the row, when rows are columns

  assign piece_d      = piece_last_q ? '0 : piece_q + 1'b1;
  assign piece_max    = group_last_q ? tail_max_q : piece_max_q;
  assign group_last_d = piece_last_q ? group_after_q : group_last_q;
  assign piece_last_d = !piece_last_q ? piece_after_q : group_last_d ? tail_one_q : full_one_q;
  assign next_bytes_o = piece_last_d && (super_q || group_last_d) ? tail_q : full_q;
  assign done_o       = piece_last_q && group_last_q && row_last_q;

  always_ff @(posedge clk_i) begin
    if (begin_i) begin
      type_q       <= look_type_q;
      super_q      <= look_super_q;
      piece_max_q  <= look_piece_max_q;
      full_q       <= look_full_q;
      tail_q       <= begin_tail;
      tail_max_q   <= begin_tail_max;
      lanes_m1_q   <= begin_lanes_m1;
      group_max_q  <= begin_group_max;
      full_one_q   <= look_piece_max_q == '0;
      full_two_q   <= look_piece_max_q == PieceW'(1);
      tail_one_q   <= begin_tail_max == '0;
      tail_two_q   <= begin_tail_max == PieceW'(1);
      row_short_q  <= look_single_q || begin_group_max == BlocksW'(1);
      piece_q      <= '0;
      piece_last_q <= begin_last;
      piece_after_q <= (look_single_q ? begin_tail_max : look_piece_max_q) == PieceW'(1);
      group_q      <= '0;
      group_next_q <= BlocksW'(1);
      group_left_q <= begin_group_max;
      group_last_q <= look_single_q;
      group_after_q <= look_single_q || begin_group_max == BlocksW'(1);
      rows_q       <= rows_i;
      row_last_q   <= rows_i == 24'd1;
      base_q       <= '0;
    end else if (step_i) begin
      piece_q      <= piece_d;
      piece_last_q <= piece_last_d;
      group_last_q <= group_last_d;
      piece_after_q <= !piece_last_q ? piece_q == piece_max - PieceW'(2)
                     : group_last_d ? tail_two_q : full_two_q;
      if (piece_last_q) begin
        group_left_q  <= group_last_q ? group_max_q : group_left_q - 1'b1;
        group_after_q <= group_last_q ? row_short_q : group_left_q == BlocksW'(2);
        group_q      <= group_last_q ? '0 : group_next_q;
        group_next_q <= group_last_q ? BlocksW'(1) : group_next_q + 1'b1;
      end
      if (piece_last_q && group_last_q) begin
        rows_q     <= rows_q - 1'b1;
        row_last_q <= rows_q == 24'd2;
        base_q     <= base_q + AddrW'(Stride);
      end
    end
  end

  // ------------------------------------------------ labels
  // Lane l holds the blocks whose number is l modulo Lanes.
  logic [StepW-1:0] step;

  assign type_o       = type_q;
  assign super_o      = super_q;
  assign piece_o      = piece_q;
  assign piece_last_o = piece_last_q;
  assign first_o      = group_q == '0;
  assign last_o       = group_last_q;
  assign lanes_o      = super_q || !group_last_q ? '1 : Lanes'(4'b1111 >> (2'd3 - lanes_m1_q));
  assign step         = StepW'(super_q ? group_q << (3 - LogLanes) : group_q);
  assign step_addr_o  = AddrW'(step);
  assign row_addr_o   = base_q + AddrW'(step);

endmodule
