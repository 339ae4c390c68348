// A small FIFO whose oldest entry is always on `data_o`, from a register, while `valid_o` is set.
// Latency 1 cycle; an entry in and one out a cycle.
module ws_dma_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 8,  // a power of two, at least 2
  localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  clear_i,
  input  logic                  push_i,
  input  logic [Width-1:0]      data_i,
  input  logic                  pop_i,
  output logic                  valid_o,
  output logic [Width-1:0]      data_o,
  output logic [CountWidth-1:0] count_o
);
  localparam int unsigned PtrWidth = $clog2(Depth);

  logic [Width-1:0]      mem [Depth];
  logic [Width-1:0]      head_q;
  logic [PtrWidth-1:0]   wptr_q, rptr_q;
  logic [CountWidth-1:0] count_q;

  assign valid_o = count_q != '0;
  assign data_o  = head_q;
  assign count_o = count_q;

  always_ff @(posedge clk_i) begin
    if (push_i) begin
      mem[wptr_q] <= data_i;
      if ((count_q == '0) || (pop_i && (count_q == CountWidth'(1)))) head_q <= data_i;
      else if (pop_i) head_q <= mem[rptr_q + 1'b1];
    end else if (pop_i) begin
      head_q <= mem[rptr_q + 1'b1];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      wptr_q  <= '0;
      rptr_q  <= '0;
      count_q <= '0;
    end else if (push_i || pop_i) begin
      if (push_i) wptr_q <= wptr_q + 1'b1;
      if (pop_i) rptr_q <= rptr_q + 1'b1;
      count_q <= count_q + CountWidth'(push_i) - CountWidth'(pop_i);
    end
  end

`ifndef SYNTHESIS
  // The users reserve room before they push.
  a_push : assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      push_i |-> count_q != CountWidth'(Depth))
      else $error("push into a full FIFO");
  a_pop : assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      pop_i |-> valid_o)
      else $error("pop from an empty FIFO");
`endif

endmodule
