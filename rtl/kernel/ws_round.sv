// A 128-bit fixed-point number in units of 2^-48, rounded to fp32, nearest, ties to even.
//
// The largest sums are far inside the range of fp32 and the smallest, 2^-48, is a normal number, so
// there is neither overflow nor a subnormal result. 0 gives +0; bad_i gives the quiet NaN.
//
// Latency 6: magnitude, leading one (32, 8, 1 bits at a time), guard bits, rounding. One a cycle.
module ws_round #(
  parameter int unsigned UserWidth = 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 valid_i,
  input  logic signed [127:0]  sum_i,
  input  logic                 bad_i,
  input  logic [UserWidth-1:0] user_i,
  output logic                 valid_o,
  output logic [31:0]          float_o,
  output logic [UserWidth-1:0] user_o
);

  logic [5:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[4:0], valid_i};
  end
  assign valid_o = valid_q[5];

  ws_delay #(.Width(UserWidth), .Depth(6)) u_user (.clk_i, .d_i(user_i), .q_o(user_o));

  // ------------------------------------------------ magnitude
  logic         neg1_q, bad1_q;
  logic [127:0] mag1_q;
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      neg1_q <= sum_i[127];
      bad1_q <= bad_i;
      // One adder: an inverted operand and a carry in.
      mag1_q <= (sum_i ^ {128{sum_i[127]}}) + 128'(sum_i[127]);
    end
  end

  // ------------------------------------------------ leading one to bit 127
  logic         neg2_q, bad2_q, neg3_q, bad3_q, neg4_q, bad4_q, zero4_q;
  logic [127:0] mag2_q, mag3_q, mag4_q;
  logic [6:0]   shift2_q, shift3_q, shift4_q;

  always_ff @(posedge clk_i) begin
    if (valid_q[0]) begin
      neg2_q <= neg1_q;
      bad2_q <= bad1_q;
      if (|mag1_q[127:96]) begin
        mag2_q   <= mag1_q;
        shift2_q <= 7'd0;
      end else if (|mag1_q[95:64]) begin
        mag2_q   <= {mag1_q[95:0], 32'd0};
        shift2_q <= 7'd32;
      end else if (|mag1_q[63:32]) begin
        mag2_q   <= {mag1_q[63:0], 64'd0};
        shift2_q <= 7'd64;
      end else begin
        mag2_q   <= {mag1_q[31:0], 96'd0};
        shift2_q <= 7'd96;
      end
    end
    if (valid_q[1]) begin
      neg3_q <= neg2_q;
      bad3_q <= bad2_q;
      if (|mag2_q[127:120]) begin
        mag3_q   <= mag2_q;
        shift3_q <= shift2_q;
      end else if (|mag2_q[119:112]) begin
        mag3_q   <= {mag2_q[119:0], 8'd0};
        shift3_q <= shift2_q + 7'd8;
      end else if (|mag2_q[111:104]) begin
        mag3_q   <= {mag2_q[111:0], 16'd0};
        shift3_q <= shift2_q + 7'd16;
      end else begin
        mag3_q   <= {mag2_q[103:0], 24'd0};
        shift3_q <= shift2_q + 7'd24;
      end
    end
    if (valid_q[2]) begin
      neg4_q   <= neg3_q;
      bad4_q   <= bad3_q;
      zero4_q  <= ~|mag3_q[127:120];
      mag4_q   <= mag3_q << lead;
      shift4_q <= shift3_q + 7'(lead);
    end
  end

  // Zeros before the leading one of the top byte.
  logic [2:0] lead;
  always_comb begin
    lead = 3'd7;
    for (int i = 0; i < 8; i++) if (mag3_q[120 + i]) lead = 3'(7 - i);
  end

  // ------------------------------------------------ rounding
  // A leading one in bit i weighs 2^(i-48): biased exponent i + 79, with i = 127 - shift. A carry
  // out of the fraction rightly goes into the exponent.
  logic        neg5_q, bad5_q, zero5_q, up5_q;
  logic [7:0]  exponent5_q;
  logic [22:0] fraction5_q;
  logic [31:0] float_q;

  always_ff @(posedge clk_i) begin
    if (valid_q[3]) begin
      neg5_q      <= neg4_q;
      bad5_q      <= bad4_q;
      zero5_q     <= zero4_q;
      up5_q       <= mag4_q[103] && (mag4_q[104] || |mag4_q[102:0]);
      exponent5_q <= 8'd206 - 8'(shift4_q);
      fraction5_q <= mag4_q[126:104];
    end
    if (valid_q[4]) begin
      if (bad5_q) float_q <= ws_pkg::ResultNan;
      else if (zero5_q) float_q <= '0;
      else float_q <= {neg5_q, {exponent5_q, fraction5_q} + 31'(up5_q)};
    end
  end
  assign float_o = float_q;

  logic unused_lead;
  assign unused_lead = mag4_q[127];

endmodule
