// From integer dot products to a fixed-point term in units of 2^-48, exactly:
//
//   dx ( d (dot_lo sc_lo + dot_hi sc_hi) + m (sum_lo mn_lo + sum_hi mn_hi) )
//
// with the fp16 scales dx (activations), d and m (weights). A fp16 number is an 11-bit mantissa
// shifted left by 0 to 29, in units of 2^-24. Mantissas are multiplied as integers, shifts are
// added, signs are folded into sc and mn while the dot products are made.
//
// Latency 11 from the scales, 7 from the dot products (which come 4 cycles later). One a cycle.
// `valid_i` holds the valid bit of each stage's input, the first in bit 0.
module ws_scale #(
  localparam int unsigned TermWidth = 107
) (
  input  logic                        clk_i,
  input  logic [10:0]                 valid_i,

  input  logic                        enable_i,  // low: the term is 0
  input  logic [15:0]                 d_i,
  input  logic [15:0]                 m_i,
  input  logic signed [7:0]           sc_lo_i,
  input  logic signed [7:0]           sc_hi_i,
  input  logic [5:0]                  mn_lo_i,
  input  logic [5:0]                  mn_hi_i,
  input  logic [15:0]                 dx_i,
  input  logic signed [11:0]          sum_lo_i,
  input  logic signed [11:0]          sum_hi_i,

  input  logic signed [19:0]          dot_lo_i,
  input  logic signed [19:0]          dot_hi_i,

  output logic signed [TermWidth-1:0] term_o,
  output logic                        bad_o      // a scale is inf or NaN
);

  function automatic logic [10:0] mantissa(input logic [14:0] h);
    mantissa = {h[14:10] != '0, h[9:0]};
  endfunction
  function automatic logic [4:0] shift(input logic [4:0] exponent);
    shift = exponent == '0 ? '0 : exponent - 1'b1;
  endfunction

  // ------------------------------------------------ stage 0: operands
  logic [15:0]        d0_q, m0_q, dx0_q;
  logic signed [7:0]  sc_lo0_q, sc_hi0_q;
  logic [5:0]         mn_lo0_q, mn_hi0_q;
  logic signed [11:0] sum_lo0_q, sum_hi0_q;

  always_ff @(posedge clk_i) begin
    if (valid_i[0]) begin
      // Zeros here rather than behind the multiplier, whose product goes straight to its register.
      d0_q      <= enable_i ? d_i : '0;
      m0_q      <= enable_i ? m_i : '0;
      dx0_q     <= enable_i ? dx_i : '0;
      sc_lo0_q  <= sc_lo_i;
      sc_hi0_q  <= sc_hi_i;
      mn_lo0_q  <= mn_lo_i;
      mn_hi0_q  <= mn_hi_i;
      sum_lo0_q <= sum_lo_i;
      sum_hi0_q <= sum_hi_i;
    end
  end

  // ------------------------------------------------ stage 1: mantissas, minima
  logic [21:0]        dd1_q, dm1_q;
  logic [5:0]         ed1_q, em1_q;
  logic               neg_d1_q, neg_m1_q, bad1_q;
  logic signed [7:0]  sc_lo1_q, sc_hi1_q;
  logic signed [18:0] mn_lo1_q, mn_hi1_q;

  always_ff @(posedge clk_i) begin
    if (valid_i[1]) begin
      dd1_q    <= mantissa(d0_q[14:0]) * mantissa(dx0_q[14:0]);
      dm1_q    <= mantissa(m0_q[14:0]) * mantissa(dx0_q[14:0]);
      ed1_q    <= 6'(shift(d0_q[14:10])) + 6'(shift(dx0_q[14:10]));
      em1_q    <= 6'(shift(m0_q[14:10])) + 6'(shift(dx0_q[14:10]));
      neg_d1_q <= d0_q[15] ^ dx0_q[15];
      neg_m1_q <= m0_q[15] ^ dx0_q[15];
      bad1_q   <= &d0_q[14:10] || &m0_q[14:10] || &dx0_q[14:10];
      sc_lo1_q <= sc_lo0_q;
      sc_hi1_q <= sc_hi0_q;
      mn_lo1_q <= sum_lo0_q * $signed({1'b0, mn_lo0_q});
      mn_hi1_q <= sum_hi0_q * $signed({1'b0, mn_hi0_q});
    end
  end

  // ------------------------------------------------ stages 2, 3: signs
  logic signed [8:0]  sc_lo2_q, sc_hi2_q, sc_lo3_q, sc_hi3_q;
  logic signed [19:0] mn2_q, mn3_q;
  logic               neg_m2_q;

  always_ff @(posedge clk_i) begin
    if (valid_i[2]) begin
      sc_lo2_q <= neg_d1_q ? 9'sd0 - 9'(sc_lo1_q) : 9'(sc_lo1_q);
      sc_hi2_q <= neg_d1_q ? 9'sd0 - 9'(sc_hi1_q) : 9'(sc_hi1_q);
      mn2_q    <= 20'(mn_lo1_q) + 20'(mn_hi1_q);
      neg_m2_q <= neg_m1_q;
    end
    if (valid_i[3]) begin
      sc_lo3_q <= sc_lo2_q;
      sc_hi3_q <= sc_hi2_q;
      mn3_q    <= neg_m2_q ? -mn2_q : mn2_q;
    end
  end

  // ------------------------------------------------ stages 4, 5: the formats' scales
  // |dot sc| is at most 2^23 for every format, so 25 bits hold it.
  logic signed [24:0] a_lo4_q, a_hi4_q;
  logic signed [25:0] a5_q;
  logic signed [19:0] mn5;
  logic [21:0]        dd5, dm5;
  logic [5:0]         ed5, em5;

  always_ff @(posedge clk_i) begin
    if (valid_i[4]) begin
      a_lo4_q <= 25'(dot_lo_i * sc_lo3_q);
      a_hi4_q <= 25'(dot_hi_i * sc_hi3_q);
    end
    if (valid_i[5]) a5_q <= 26'(a_lo4_q) + 26'(a_hi4_q);
  end

  ws_delay #(.Width(56), .Depth(4)) u_mantissas (
    .clk_i, .d_i({dd1_q, dm1_q, ed1_q, em1_q}), .q_o({dd5, dm5, ed5, em5})
  );
  ws_delay #(.Width(20), .Depth(2)) u_minimum (.clk_i, .d_i(mn3_q), .q_o(mn5));

  // ------------------------------------------------ stages 6 to 9: mantissas, shifts
  logic signed [105:0] term_d;
  logic signed [99:0]  term_m;

  ws_mul_shift #(.ValueWidth(26)) u_main (
    .clk_i, .valid_i(valid_i[9:6]), .value_i(a5_q), .mant_i(dd5), .shift_i(ed5), .term_o(term_d)
  );
  ws_mul_shift #(.ValueWidth(20)) u_min (
    .clk_i, .valid_i(valid_i[9:6]), .value_i(mn5), .mant_i(dm5), .shift_i(em5), .term_o(term_m)
  );

  // ------------------------------------------------ stage 10: join
  logic signed [TermWidth-1:0] term_q;
  always_ff @(posedge clk_i) begin
    if (valid_i[10]) term_q <= TermWidth'(term_d) + TermWidth'(term_m);
  end
  assign term_o = term_q;

  ws_delay #(.Width(1), .Depth(9)) u_bad (.clk_i, .d_i(bad1_q), .q_o(bad_o));

endmodule
