// One lane: 32 weights against 32 activations a cycle, as an exact fixed-point term. It decodes its
// share of the group and keeps its share of the activations.
//
// Latency 12 from the slot to the term: decode and memory read 1, dot product 4, scales 7. One
// slot a cycle. The stages' valid bits come from outside, since all lanes share them: `valid_i[n]`
// is that of the slot issued n cycles before.
module ws_lane #(
  parameter int unsigned ExtBytes = 34,
  parameter int unsigned Lanes = 1,
  parameter int unsigned Lane = 0,
  parameter int unsigned Depth = 2048,      // activation blocks held
  parameter logic [15:0] Types = 16'h7DCC,
  localparam int unsigned AddrW = ws_kernel_pkg::index_width(Depth),
  localparam int unsigned Pieces = ws_kernel_pkg::most_pieces(Types, Lanes, ExtBytes),
  localparam int unsigned GroupBits = 8 * ExtBytes * Pieces,
  localparam int unsigned TermWidth = 107
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,

  // Slot.
  input  logic [GroupBits-1:0]        group_i,
  input  logic [3:0]                  type_i,
  input  logic [2:0]                  step_i,
  input  logic                        enable_i,  // this lane has a block
  input  logic                        store_i,
  input  logic                        fresh_i,
  input  logic [AddrW-1:0]            addr_i,
  input  logic [11:0]                 valid_i,

  output logic signed [TermWidth-1:0] term_o,
  output logic                        bad_o
);

  // ------------------------------------------------ decode
  ws_kernel_pkg::dec_t             dec, dec_q;
  logic             enable_q, store_q;
  logic [AddrW-1:0] addr_q;

  ws_decode #(
    .ExtBytes(ExtBytes),
    .Lanes   (Lanes),
    .Lane    (Lane),
    .Types   (Types)
  ) u_decode (
    .group_i, .type_i, .step_i, .dec_o(dec)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) store_q <= 1'b0;
    else store_q <= store_i && enable_i;
    if (enable_i && (store_i || (valid_i[0] && fresh_i))) dec_q <= dec;
    if (store_i) addr_q <= addr_i;
    if (valid_i[0]) enable_q <= enable_i;
  end

  // ------------------------------------------------ activations
  logic [255:0]       xq;
  logic [15:0]        dx;
  logic signed [11:0] sum_lo, sum_hi;

  ws_act_bank #(
    .Depth(Depth)
  ) u_acts (
    .clk_i,
    .rst_ni,
    .store_i     (store_q),
    .store_addr_i(addr_q),
    .store_q_i   (dec_q.q),
    .store_d_i   (dec_q.d),
    .read_i      (valid_i[0]),
    .read_addr_i (addr_i),
    .q_o         (xq),
    .d_o         (dx),
    .sum_lo_o    (sum_lo),
    .sum_hi_o    (sum_hi)
  );

  // ------------------------------------------------ arithmetic
  logic signed [19:0] dot_lo, dot_hi;

  ws_dot u_dot (
    .clk_i,
    .valid_i(valid_i[4:1]),
    .a_i    (dec_q.q),
    .b_i    (xq),
    .lo_o   (dot_lo),
    .hi_o   (dot_hi)
  );

  ws_scale u_scale (
    .clk_i,
    .valid_i (valid_i[11:1]),
    .enable_i(enable_q),
    .d_i     (dec_q.d),
    .m_i     (dec_q.m),
    .sc_lo_i (dec_q.sc_lo),
    .sc_hi_i (dec_q.sc_hi),
    .mn_lo_i (dec_q.mn_lo),
    .mn_hi_i (dec_q.mn_hi),
    .dx_i    (dx),
    .sum_lo_i(sum_lo),
    .sum_hi_i(sum_hi),
    .dot_lo_i(dot_lo),
    .dot_hi_i(dot_hi),
    .term_o,
    .bad_o
  );

endmodule
