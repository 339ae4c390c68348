// A streaming kernel that takes a byte a cycle: the smallest that keeps the contracts of
// docs/dut.md, and as unlike rtl/kernel as can be. Q8_0 and Q4_0.
//
// One state machine moves through the packet. A block of weights is gathered in a register, then
// multiplied with each column, a weight a cycle; its scaled sum is added to the column's 128-bit
// accumulator, which is rounded once at the end of a row.
//
// FAULT = 1 plants a fault to look for: terms are cut to 72 bits before they are added.
module serial_kernel #(
  parameter BUS      = 128,  // width of the streams: 64, 128, 256 or 512
  parameter MAX_COLS = 2,
  parameter MAX_K    = 2048,
  parameter FAULT    = 0
) (
  input  wire             aclk,
  input  wire             aresetn,

  input  wire [11:0]      s_axi_ctrl_awaddr,
  input  wire [2:0]       s_axi_ctrl_awprot,
  input  wire             s_axi_ctrl_awvalid,
  output wire             s_axi_ctrl_awready,
  input  wire [31:0]      s_axi_ctrl_wdata,
  input  wire [3:0]       s_axi_ctrl_wstrb,
  input  wire             s_axi_ctrl_wvalid,
  output wire             s_axi_ctrl_wready,
  output wire [1:0]       s_axi_ctrl_bresp,
  output wire             s_axi_ctrl_bvalid,
  input  wire             s_axi_ctrl_bready,
  input  wire [11:0]      s_axi_ctrl_araddr,
  input  wire [2:0]       s_axi_ctrl_arprot,
  input  wire             s_axi_ctrl_arvalid,
  output wire             s_axi_ctrl_arready,
  output wire [31:0]      s_axi_ctrl_rdata,
  output wire [1:0]       s_axi_ctrl_rresp,
  output wire             s_axi_ctrl_rvalid,
  input  wire             s_axi_ctrl_rready,

  input  wire [BUS-1:0]   s_axis_tdata,
  input  wire [BUS/8-1:0] s_axis_tkeep,
  input  wire             s_axis_tlast,
  input  wire             s_axis_tvalid,
  output wire             s_axis_tready,

  output reg  [BUS-1:0]   m_axis_tdata,
  output wire [BUS/8-1:0] m_axis_tkeep,
  output reg              m_axis_tlast,
  output reg              m_axis_tvalid,
  input  wire             m_axis_tready
);

  localparam BYTES = BUS / 8;
  localparam WORDS = BUS / 32;
  localparam CW    = MAX_COLS > 1 ? $clog2(MAX_COLS) : 1;

  localparam [3:0] HEAD = 0, CHECK = 1, ACTS = 2, PAD = 3, SKIP = 4, BLOCK = 5, MAC = 6, TERM = 7,
                   ROUND = 8, TAIL = 9, DRAIN = 10, FOOT = 11, LEAVE = 12;

  // Bits of a status (docs/stream.md).
  localparam NONFINITE = 0, BAD_MAGIC = 8, BAD_VERSION = 9, BAD_TYPE = 10, BAD_K = 11,
             BAD_ROWS = 12, BAD_COLS = 13, BAD_SKIP = 14, BAD_FLAGS = 15, NO_ACTIVATIONS = 16,
             SHORT = 17, LONG = 18, BAD_KEEP = 19;

  wire       soft_reset;
  wire       reset = !aresetn || soft_reset;
  reg  [3:0] state;

  // ------------------------------------------------ a beat in, taken apart byte by byte
  reg             have, last, began, bad_keep;
  reg  [BUS-1:0]  data;
  reg  [7:0]      left;
  reg  [63:0]     start;
  reg  [63:0]     cycles;

  function [7:0] ones(input [BYTES-1:0] keep);  // from byte 0 on
    integer i;
    begin
      ones = 0;
      for (i = 0; i < BYTES; i = i + 1) if (keep[i] && ones == i[7:0]) ones = ones + 8'd1;
    end
  endfunction

  wire        bytewise = state == HEAD || state == ACTS || state == PAD || state == SKIP ||
                         state == BLOCK;
  wire        take     = bytewise && have && left != 0;  // the byte data[7:0]
  wire        over     = bytewise && have && left == 0 && last;
  wire        drop     = have && !last && (bytewise ? left == 0 : state == DRAIN);
  wire        accept   = s_axis_tvalid && s_axis_tready;
  wire [7:0]  kept     = ones(s_axis_tkeep);
  wire [BYTES-1:0] contiguous = ~({BYTES{1'b1}} << kept);

  assign s_axis_tready = !have && (bytewise || state == DRAIN);

  // ------------------------------------------------ the header
  reg  [511:0] head;
  reg  [31:0]  n;  // bytes of the state's part so far
  wire [31:0]  h_type = head[2*32+:32], h_k = head[3*32+:32], h_rows = head[4*32+:32];
  wire [31:0]  h_cols = head[5*32+:32], h_skip = head[6*32+:32], h_flags = head[7*32+:32];
  wire         q8 = h_type == 8;
  wire         reuse = h_flags[0];
  reg          held;
  reg  [31:0]  held_k, held_cols;
  reg  [31:0]  status;
  reg          judged;  // by the header alone
  reg          brought;  // activations of its own

  reg [31:0] errors;
  always @* begin
    errors = 0;
    if (head[31:0] != 32'h314A5357) errors[BAD_MAGIC] = 1;
    else if (head[63:32] != 1) errors[BAD_VERSION] = 1;
    else begin
      errors[BAD_TYPE]       = h_type != 8 && h_type != 2;
      errors[BAD_K]          = h_k == 0 || h_k > MAX_K || (!errors[BAD_TYPE] && h_k[4:0] != 0);
      errors[BAD_ROWS]       = h_rows == 0 || h_rows >= 32'h1000000;
      errors[BAD_COLS]       = h_cols == 0 || h_cols > MAX_COLS;
      errors[BAD_SKIP]       = h_skip >= BYTES;
      errors[BAD_FLAGS]      = h_flags[31:1] != 0 || head[511:288] != 0;
      errors[NO_ACTIVATIONS] = reuse && !(held && held_k == h_k && held_cols == h_cols);
    end
  end

  // ------------------------------------------------ a block of weights against a column
  wire [31:0]  column_bytes = (h_k >> 5) * 34;
  wire [31:0]  acts_bytes   = h_cols * column_bytes;
  wire [31:0]  block_bytes  = q8 ? 34 : 18;
  reg  [7:0]   acts [0:MAX_COLS*MAX_K/32*34-1];
  reg  [271:0] block;
  reg  [31:0]  row, at, column, base;  // `at`: a block's activations in their column
  reg  [5:0]   i;
  reg  signed [20:0] sum;  // 32 times -128 by -128 is 2^19

  wire signed [7:0] x = acts[base + at + 2 + {26'd0, i}];
  wire [3:0]        nibble = i[4] ? block[16+8*i[3:0]+4+:4] : block[16+8*i[3:0]+:4];
  wire signed [7:0] w = q8 ? block[16+8*i[4:0]+:8] : $signed({4'd0, nibble}) - 8'sd8;

  wire [15:0] d  = block[15:0];
  wire [15:0] dx = {acts[base+at+1], acts[base+at]};

  function [10:0] mantissa(input [15:0] h);
    mantissa = {h[14:10] != 0, h[9:0]};
  endfunction
  function [5:0] shift(input [15:0] h);
    shift = h[14:10] == 0 ? 6'd0 : {1'b0, h[14:10]} - 6'd1;
  endfunction

  wire [21:0]         mantissas = mantissa(d) * mantissa(dx);
  wire signed [127:0] product = sum * $signed({106'd0, mantissas});
  wire signed [127:0] scaled = product <<< (shift(d) + shift(dx));
  wire signed [127:0] signed_term = d[15] ^ dx[15] ? -scaled : scaled;
  wire signed [127:0] term = FAULT != 0 ? {{56{signed_term[71]}}, signed_term[71:0]} : signed_term;
  wire                wild = &d[14:10] || &dx[14:10];

  reg signed [127:0] sums [0:MAX_COLS-1];
  reg                nans [0:MAX_COLS-1];

  // To the nearest fp32, ties to even; the sum counts units of 2^-48.
  function [31:0] fp32(input [127:0] value);
    reg [127:0] magnitude, rest;
    reg [24:0]  rounded;
    integer     p, b;
    begin
      magnitude = value[127] ? -value : value;
      p = 0;
      for (b = 0; b < 128; b = b + 1) if (magnitude[b]) p = b;
      rest = magnitude << (127 - p);  // its first bit is bit 127
      rounded = {1'b0, rest[127:104]};
      if (rest[103] && (rest[102:0] != 0 || rest[104])) rounded = rounded + 1'b1;
      fp32 = {value[127], 8'(p + 79) + {7'd0, rounded[24]}, rounded[24] ? 23'd0 : rounded[22:0]};
      if (magnitude == 0) fp32 = 0;
    end
  endfunction

  // ------------------------------------------------ words out
  reg  [4:0]  packed_words;
  reg  [1:0]  foot;
  reg  [31:0] word;
  wire        push = !m_axis_tvalid && (state == ROUND || state == FOOT);
  wire        final_word = state == FOOT && foot == 3;
  wire [63:0] took = cycles - start;

  assign m_axis_tkeep = ~({BYTES{1'b1}} << {packed_words, 2'b00});

  always @* begin
    if (state == ROUND) word = nans[column[CW-1:0]] ? 32'h7FC00000 : fp32(sums[column[CW-1:0]]);
    else case (foot)
      0: word = head[8*32+:32];
      1: word = status;
      2: word = took[31:0];
      default: word = took[63:32];
    endcase
  end

  always @(posedge aclk) begin
    if (m_axis_tvalid && m_axis_tready) begin
      m_axis_tvalid <= 0;
      packed_words  <= 0;
    end
    if (push) begin
      m_axis_tdata[32*packed_words+:32] <= word;
      packed_words <= packed_words + 5'd1;
      m_axis_tvalid <= final_word || packed_words == WORDS[4:0] - 5'd1;
      m_axis_tlast  <= final_word;
    end
    if (reset) begin
      m_axis_tvalid <= 0;
      packed_words  <= 0;
    end
  end

  // ------------------------------------------------ the way through a packet
  integer c;
  always @(posedge aclk) begin
    if (take) begin
      data <= data >> 8;
      left <= left - 8'd1;
    end
    if (drop) have <= 0;
    if (accept) begin
      have <= 1;
      data <= s_axis_tdata;
      last <= s_axis_tlast;
      left <= s_axis_tlast ? kept : BYTES[7:0];
      if (s_axis_tlast ? s_axis_tkeep != contiguous : !(&s_axis_tkeep)) bad_keep <= 1;
      began <= 1;
      if (!began) start <= cycles;
    end

    if (take) n <= n + 1;
    case (state)
      HEAD: begin
        if (take) begin
          head[8*n[5:0]+:8] <= data[7:0];
          if (n == 63) state <= CHECK;
        end
        if (over) begin
          judged <= 1;
          status <= 1 << SHORT;
          if (n < 36) head[8*32+:32] <= 0;
          state <= FOOT;
        end
      end
      CHECK: begin
        n       <= 0;
        status  <= errors;
        judged  <= errors != 0;
        brought <= errors == 0 && !reuse;
        row     <= 0;
        if (errors != 0) state <= DRAIN;
        else if (!reuse) begin
          state     <= ACTS;
          held      <= 0;
          held_k    <= h_k;
          held_cols <= h_cols;
        end else state <= h_skip != 0 ? SKIP : BLOCK;
      end
      ACTS: if (take) begin
        acts[n] <= data[7:0];
        if (n + 1 == acts_bytes) begin
          if (acts_bytes[5:0] != 0) state <= PAD;
          else begin
            n     <= 0;
            state <= h_skip != 0 ? SKIP : BLOCK;
          end
        end
      end
      PAD: if (take && n[5:0] == 63) begin
        n     <= 0;
        state <= h_skip != 0 ? SKIP : BLOCK;
      end
      SKIP: if (take && n + 1 == h_skip) begin
        n     <= 0;
        state <= BLOCK;
      end
      BLOCK: if (take) begin
        block[8*n[5:0]+:8] <= data[7:0];
        if (n + 1 == block_bytes) begin
          n     <= 0;
          state <= MAC;
        end
      end
      MAC: begin
        sum <= sum + w * x;
        i   <= i + 6'd1;
        if (i == 31) state <= TERM;
      end
      TERM: begin
        sum <= 0;
        i   <= 0;
        sums[column[CW-1:0]] <= sums[column[CW-1:0]] + term;
        nans[column[CW-1:0]] <= nans[column[CW-1:0]] || wild;
        column <= column + 1;
        base   <= base + column_bytes;
        state  <= MAC;
        if (column + 1 == h_cols) begin
          column <= 0;
          base   <= 0;
          at     <= at + 34;
          state  <= at + 34 == column_bytes ? ROUND : BLOCK;
        end
      end
      ROUND: if (push) begin
        if (nans[column[CW-1:0]]) status[NONFINITE] <= 1;
        sums[column[CW-1:0]] <= 0;
        nans[column[CW-1:0]] <= 0;
        column <= column + 1;
        if (column + 1 == h_cols) begin
          column <= 0;
          at     <= 0;
          row    <= row + 1;
          state  <= row + 1 == h_rows ? TAIL : BLOCK;
        end
      end
      TAIL: begin
        if (!last) status[LONG] <= 1;
        state <= last ? FOOT : DRAIN;
      end
      DRAIN: if (have && last) state <= FOOT;
      FOOT: if (push) begin
        foot <= foot + 2'd1;
        if (foot == 3) state <= LEAVE;
      end
      default: begin  // LEAVE, when the last beat is taken
        if (m_axis_tvalid && m_axis_tready) begin
          have     <= 0;
          began    <= 0;
          bad_keep <= 0;
          n        <= 0;
          state    <= HEAD;
        end
      end
    endcase
    if (over && state != HEAD) begin
      status[SHORT] <= 1;
      state <= FOOT;
    end
    // Before the status is sent, all that there is of it.
    if (state == FOOT && foot == 0) begin
      if (bad_keep && !judged) status[BAD_KEEP] <= 1;
      if (brought) held <= status[31:8] == 0 && !bad_keep;
      brought <= 0;
    end

    if (reset) begin
      have     <= 0;
      began    <= 0;
      bad_keep <= 0;
      held     <= 0;
      brought  <= 0;
      n        <= 0;
      foot     <= 0;
      state    <= HEAD;
    end
    // A row cut short leaves nothing behind.
    if (reset || state == CHECK) begin
      i      <= 0;
      sum    <= 0;
      at     <= 0;
      column <= 0;
      base   <= 0;
      for (c = 0; c < MAX_COLS; c = c + 1) begin
        sums[c] <= 0;
        nans[c] <= 0;
      end
    end
  end

  // ------------------------------------------------ registers
  serial_registers #(
    .BUS(BUS), .MAX_COLS(MAX_COLS), .MAX_K(MAX_K)
  ) registers (
    .aclk(aclk), .aresetn(aresetn), .soft_reset(soft_reset), .cycles(cycles),
    .s_axi_ctrl_awaddr(s_axi_ctrl_awaddr), .s_axi_ctrl_awvalid(s_axi_ctrl_awvalid),
    .s_axi_ctrl_awready(s_axi_ctrl_awready), .s_axi_ctrl_wdata(s_axi_ctrl_wdata),
    .s_axi_ctrl_wstrb(s_axi_ctrl_wstrb), .s_axi_ctrl_wvalid(s_axi_ctrl_wvalid),
    .s_axi_ctrl_wready(s_axi_ctrl_wready), .s_axi_ctrl_bresp(s_axi_ctrl_bresp),
    .s_axi_ctrl_bvalid(s_axi_ctrl_bvalid), .s_axi_ctrl_bready(s_axi_ctrl_bready),
    .s_axi_ctrl_araddr(s_axi_ctrl_araddr), .s_axi_ctrl_arvalid(s_axi_ctrl_arvalid),
    .s_axi_ctrl_arready(s_axi_ctrl_arready), .s_axi_ctrl_rdata(s_axi_ctrl_rdata),
    .s_axi_ctrl_rresp(s_axi_ctrl_rresp), .s_axi_ctrl_rvalid(s_axi_ctrl_rvalid),
    .s_axi_ctrl_rready(s_axi_ctrl_rready),
    .beat_in(accept), .stall_in(s_axis_tready && !s_axis_tvalid),
    .beat_out(m_axis_tvalid && m_axis_tready), .stall_out(m_axis_tvalid && !m_axis_tready),
    .last_out(m_axis_tlast), .footer(push && final_word), .status(status)
  );

  // Nothing here is privileged.
  wire unused = &{1'b0, s_axi_ctrl_awprot, s_axi_ctrl_arprot};

endmodule
