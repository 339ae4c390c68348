// A FIFO for stream beats in a RAM with a synchronous read port (block RAM). The oldest beat
// stands in the RAM's output register; a beat passes in two cycles, one a cycle.
module ws_dma_stream_fifo #(
  parameter int unsigned BusWidth = 128,
  parameter int unsigned Depth    = 256,  // beats in the RAM, a power of two
  localparam int unsigned BusBytes   = BusWidth / 8,
  localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                clear_i,
  input  logic                push_i,
  input  logic [BusWidth-1:0] data_i,
  input  logic [BusBytes-1:0] keep_i,
  input  logic                last_i,
  input  logic                pop_i,
  output logic                valid_o,
  output logic [BusWidth-1:0] data_o,
  output logic [BusBytes-1:0] keep_o,
  output logic                last_o
);
  localparam int unsigned PtrWidth = $clog2(Depth);

  logic [BusWidth-1:0]   data_mem [Depth];
  // In LUTs: much hangs on these bits, and a block RAM gives its data late in the cycle.
  (* ram_style = "distributed" *)
  logic [BusBytes:0]     side_mem [Depth];
  logic [BusWidth-1:0]   data_q;
  logic [BusBytes:0]     side_q;
  logic [PtrWidth-1:0]   wptr_q, rptr_q;
  logic [CountWidth-1:0] count_q;  // beats in the RAM alone
  logic                  valid_q, read;

  assign read    = (count_q != '0) && (!valid_q || pop_i);
  assign valid_o = valid_q;
  assign data_o  = data_q;
  assign {last_o, keep_o} = side_q;

  always_ff @(posedge clk_i) begin
    if (push_i) begin
      data_mem[wptr_q] <= data_i;
      side_mem[wptr_q] <= {last_i, keep_i};
    end
    if (read) begin
      data_q <= data_mem[rptr_q];
      side_q <= side_mem[rptr_q];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      wptr_q  <= '0;
      rptr_q  <= '0;
      count_q <= '0;
      valid_q <= 1'b0;
    end else if (push_i || read || pop_i) begin
      if (push_i) wptr_q <= wptr_q + 1'b1;
      if (read) rptr_q <= rptr_q + 1'b1;
      count_q <= count_q + CountWidth'(push_i) - CountWidth'(read);
      valid_q <= read || (valid_q && !pop_i);
    end
  end

`ifndef SYNTHESIS
  a_push : assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      push_i |-> count_q != CountWidth'(Depth))
      else $error("push into a full FIFO");
  a_pop : assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      pop_i |-> valid_q)
      else $error("pop from an empty FIFO");
`endif

endmodule
