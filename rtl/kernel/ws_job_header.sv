// The 64-byte job header: keeps its fields as its words come by and checks them.
//
// Latency: fields are there a cycle after the last word (`word_i`), `error_o` one cycle later.
// Throughput: a bus word a cycle.
module ws_job_header #(
  parameter int unsigned BusBytes = 16,
  parameter int unsigned MaxCols = 4,
  parameter int unsigned MaxK = 16384,
  parameter logic [15:0] Types = 16'h7DCC,
  localparam int unsigned AvailW = $clog2((BusBytes <= 16 ? 8 : 4) * BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  clear_i,       // a new packet begins
  input  logic                  word_i,        // data_i is the next word of the header
  input  logic [8*BusBytes-1:0] data_i,
  input  logic [AvailW-1:0]     bytes_i,       // bytes held from data_i on
  output logic                  last_o,        // the next word is the header's last

  // Activations that the kernel holds.
  input  logic                  held_i,
  input  logic [31:0]           held_k_i,
  input  logic [31:0]           held_cols_i,

  output logic [31:0]           tag_o,         // 0 until it has come whole
  output logic [3:0]            type_o,
  output logic [31:0]           k_o,
  output logic [23:0]           rows_o,
  output logic [31:0]           cols_o,
  output logic [6:0]            skip_o,
  output logic                  reuse_o,
  output logic [31:0]           error_o        // status bits
);

  localparam int unsigned HeaderWords = ws_pkg::JobHeaderBytes / BusBytes;
  localparam int unsigned IndexW = ws_kernel_pkg::index_width(HeaderWords);
  localparam int unsigned Fields = 9;  // magic to tag
  localparam int unsigned TagWord = ws_pkg::JobOffTag / BusBytes;
  localparam int unsigned TagEnd = (ws_pkg::JobOffTag % BusBytes) + 4;

  // ------------------------------------------------ capture
  logic [IndexW-1:0]      index_q;
  logic [Fields-1:0][31:0] field_q;
  logic                   reserved_q;  // a reserved byte is not 0
  logic [31:0]            reserved_word;
  logic [31:0]            tag_q;

  assign last_o = index_q == IndexW'(HeaderWords - 1);

  // Or of the reserved 32-bit words within this bus word.
  always_comb begin
    reserved_word = '0;
    for (int unsigned i = ws_pkg::JobOffReserved / 4; i < ws_pkg::JobHeaderBytes / 4; i++) begin
      if (index_q == IndexW'(i * 4 / BusBytes)) begin
        reserved_word = reserved_word | data_i[(i * 32) % (8 * BusBytes) +: 32];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      index_q    <= '0;
      reserved_q <= 1'b0;
      tag_q      <= '0;
    end else if (word_i) begin
      index_q    <= index_q + 1'b1;
      reserved_q <= reserved_q || reserved_word != '0;
      if (index_q == IndexW'(TagWord) && bytes_i >= AvailW'(TagEnd)) begin
        tag_q <= data_i[(ws_pkg::JobOffTag % BusBytes) * 8 +: 32];
      end
    end
    if (word_i) begin
      for (int unsigned i = 0; i < Fields - 1; i++) begin
        if (index_q == IndexW'(i * 4 / BusBytes)) begin
          field_q[i] <= data_i[(i * 32) % (8 * BusBytes) +: 32];
        end
      end
    end
  end

  logic [31:0] magic, version, wtype, k, rows, cols, skip, flags;
  assign magic   = field_q[ws_pkg::JobOffMagic / 4];
  assign version = field_q[ws_pkg::JobOffVersion / 4];
  assign wtype   = field_q[ws_pkg::JobOffType / 4];
  assign k       = field_q[ws_pkg::JobOffK / 4];
  assign rows    = field_q[ws_pkg::JobOffRows / 4];
  assign cols    = field_q[ws_pkg::JobOffCols / 4];
  assign skip    = field_q[ws_pkg::JobOffSkip / 4];
  assign flags   = field_q[ws_pkg::JobOffFlags / 4];

  assign tag_o   = tag_q;
  assign type_o  = wtype[3:0];
  assign k_o     = k;
  assign rows_o  = rows[23:0];
  assign cols_o  = cols;
  assign skip_o  = skip[6:0];
  assign reuse_o = (flags & ws_pkg::JobFlagReuseActivations) != '0;

  // ------------------------------------------------ checks
  logic        type_good, type_super;
  logic [31:0] error_d, error_q;

  always_comb begin
    type_good  = 1'b0;
    type_super = 1'b0;
    for (int unsigned t = 0; t < 16; t++) begin
      if (Types[t] && wtype == t) begin
        type_good  = 1'b1;
        type_super = ws_kernel_pkg::block_weights(t) == 256;
      end
    end
  end

  // What a block is, is unknown for a bad type: k is then judged by its bounds alone.
  always_comb begin
    error_d = '0;
    if (magic != ws_pkg::JobMagic) begin
      error_d = ws_pkg::StatusBadMagic;
    end else if (version != ws_pkg::JobVersion) begin
      error_d = ws_pkg::StatusBadVersion;
    end else begin
      if (!type_good) error_d = error_d | ws_pkg::StatusBadType;
      if (k == '0 || k > MaxK || (type_good && k[4:0] != '0)
          || (type_super && k[7:0] != '0)) error_d = error_d | ws_pkg::StatusBadK;
      if (rows == '0 || rows > ws_pkg::JobMaxRows) error_d = error_d | ws_pkg::StatusBadRows;
      if (cols == '0 || cols > MaxCols) error_d = error_d | ws_pkg::StatusBadCols;
      if (skip >= BusBytes) error_d = error_d | ws_pkg::StatusBadSkip;
      if ((flags & ~ws_pkg::JobFlagReuseActivations) != '0 || reserved_q) begin
        error_d = error_d | ws_pkg::StatusBadFlags;
      end
      if (reuse_o && !(held_i && held_k_i == k && held_cols_i == cols)) begin
        error_d = error_d | ws_pkg::StatusNoActivations;
      end
    end
  end

  // Evaluated in the cycle after the last word only: the fields are still then until clear_i.
  logic check_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) check_q <= 1'b0;
    else check_q <= word_i && last_o;
    if (check_q) error_q <= error_d;
  end
  assign error_o = error_q;

endmodule
