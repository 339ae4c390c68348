// Shift register without reset. Latency Depth cycles (0: a wire), one word a cycle.
module ws_delay #(
  parameter int unsigned Width = 1,
  parameter int unsigned Depth = 1
) (
  input  logic             clk_i,
  input  logic [Width-1:0] d_i,
  output logic [Width-1:0] q_o
);

  if (Depth == 0) begin : gen_wire
    logic unused_clk;
    assign unused_clk = clk_i;
    assign q_o = d_i;
  end else if (Depth == 1) begin : gen_one
    logic [Width-1:0] pipe_q;
    always_ff @(posedge clk_i) pipe_q <= d_i;
    assign q_o = pipe_q;
  end else begin : gen_many
    logic [Depth*Width-1:0] pipe_q;
    always_ff @(posedge clk_i) pipe_q <= {pipe_q[(Depth-1)*Width-1:0], d_i};
    assign q_o = pipe_q[Depth*Width-1 -: Width];
  end

endmodule
