// A 64-bit event counter read by two 32-bit reads.
//
// Reading the low word holds the high word until it is read in its turn, so that a carry between
// the two reads is not seen. Combinational to the reader; an event a cycle.
module ws_counter64 (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        clear_i,
  input  logic        count_i,
  input  logic        read_low_i,
  input  logic        read_high_i,
  output logic [31:0] low_o,
  output logic [31:0] high_o
);

  logic [63:0] count_q;
  logic [31:0] hold_q;
  logic        held_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      count_q <= '0;
      held_q  <= 1'b0;
    end else begin
      if (count_i) count_q <= count_q + 1'b1;
      if (read_low_i) held_q <= 1'b1;
      else if (read_high_i) held_q <= 1'b0;
    end
    if (read_low_i) hold_q <= count_q[63:32];
  end

  assign low_o  = count_q[31:0];
  assign high_o = held_q ? hold_q : count_q[63:32];

endmodule
