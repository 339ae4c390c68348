// Activation memory of one lane: blocks of 32 activations with their scale and the sums that the
// formats with a minimum need.
//
// Stored: 32 signed bytes, fp16 scale, sum of the first 16 and of the last 16. The sums are made on
// the way in. Write: 2 cycles from `store_i` to the memory, one block a cycle. Read: one block a
// cycle, registered once (latency 1); the multiplier's input register follows it.
module ws_act_bank #(
  parameter int unsigned Depth = 2048,
  localparam int unsigned AddrW = Depth > 1 ? $clog2(Depth) : 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               store_i,
  input  logic [AddrW-1:0]   store_addr_i,
  input  logic [255:0]       store_q_i,
  input  logic [15:0]        store_d_i,

  input  logic               read_i,
  input  logic [AddrW-1:0]   read_addr_i,
  output logic [255:0]       q_o,
  output logic [15:0]        d_o,
  output logic signed [11:0] sum_lo_o,
  output logic signed [11:0] sum_hi_o
);

  // ------------------------------------------------ sums
  logic             write_q;
  logic [AddrW-1:0] addr_q;
  logic [255:0]     q_q;
  logic [15:0]      d_q;
  logic [7:0][9:0]  quad_q;   // sums of 4

  always_ff @(posedge clk_i) begin
    if (!rst_ni) write_q <= 1'b0;
    else write_q <= store_i;
    if (store_i) begin
      addr_q <= store_addr_i;
      q_q    <= store_q_i;
      d_q    <= store_d_i;
      for (int i = 0; i < 8; i++) begin
        quad_q[i] <= (10'($signed(store_q_i[32*i +: 8]))
                      + 10'($signed(store_q_i[32*i+8 +: 8])))
                   + (10'($signed(store_q_i[32*i+16 +: 8]))
                      + 10'($signed(store_q_i[32*i+24 +: 8])));
      end
    end
  end

  logic [11:0] sum_lo, sum_hi;
  assign sum_lo = (12'($signed(quad_q[0])) + 12'($signed(quad_q[1])))
                + (12'($signed(quad_q[2])) + 12'($signed(quad_q[3])));
  assign sum_hi = (12'($signed(quad_q[4])) + 12'($signed(quad_q[5])))
                + (12'($signed(quad_q[6])) + 12'($signed(quad_q[7])));

  // ------------------------------------------------ memory
  logic [295:0] mem [Depth];
  logic [295:0] read_q;

  always_ff @(posedge clk_i) begin
    if (write_q) mem[addr_q] <= {sum_hi, sum_lo, d_q, q_q};
  end
  always_ff @(posedge clk_i) begin
    if (read_i) read_q <= mem[read_addr_i];
  end

  assign {sum_hi_o, sum_lo_o, d_o, q_o} = read_q;

endmodule
