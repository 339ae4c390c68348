// A FIFO for stream data in a RAM with a synchronous read port (block RAM). The oldest entry
// stands in the RAM's output register; an entry passes in two cycles, one a cycle.
module ws_dma_ram_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 256,  // entries in the RAM, a power of two
  localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clear_i,
  input  logic             push_i,
  input  logic [Width-1:0] data_i,
  input  logic             pop_i,
  output logic             valid_o,
  output logic [Width-1:0] data_o
);
  localparam int unsigned PtrWidth = $clog2(Depth);

  logic [Width-1:0]      mem [Depth];
  logic [Width-1:0]      data_q;
  logic [PtrWidth-1:0]   wptr_q, rptr_q;
  logic [CountWidth-1:0] count_q;  // entries in the RAM alone
  logic                  valid_q, read;

  assign read    = (count_q != '0) && (!valid_q || pop_i);
  assign valid_o = valid_q;
  assign data_o  = data_q;

  always_ff @(posedge clk_i) begin
    if (push_i) mem[wptr_q] <= data_i;
    if (read) data_q <= mem[rptr_q];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      wptr_q  <= '0;
      rptr_q  <= '0;
      count_q <= '0;
      valid_q <= 1'b0;
    end else begin
      if (push_i) wptr_q <= wptr_q + 1'b1;
      if (read) rptr_q <= rptr_q + 1'b1;
      if (push_i != read) count_q <= push_i ? count_q + 1'b1 : count_q - 1'b1;
      if (read) valid_q <= 1'b1;
      else if (pop_i) valid_q <= 1'b0;
    end
  end

  assert property (@(posedge clk_i) disable iff (!rst_ni)
    push_i |-> count_q != CountWidth'(Depth)) else $error("push into a full FIFO");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    pop_i |-> valid_q) else $error("pop from an empty FIFO");

endmodule
