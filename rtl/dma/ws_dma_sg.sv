// The scatter-gather port: descriptor reads and status write-backs of both channels on one AXI4
// master with 32-bit data. Several of each are in flight; answers come in order (one ID).
module ws_dma_sg
  import ws_dma_pkg::*;
(
  input  logic            clk_i,
  input  logic            rst_ni,
  // Descriptor fetches; channel 0 is MM2S, 1 is S2MM
  input  logic      [1:0] req_valid_i,
  input  desc_ptr_t [1:0] req_ptr_i,
  output logic      [1:0] req_ready_o,
  output logic      [1:0] word_valid_o,
  output logic     [31:0] word_o,
  output err_t            word_err_o,
  output desc_ptr_t       word_ptr_o,
  // Status write-backs, and a pulse when one is in memory
  input  logic      [1:0] update_valid_i,
  input  update_t   [1:0] update_i,
  output logic      [1:0] update_ready_o,
  output logic      [1:0] retire_o,
  output desc_ptr_t       retire_ptr_o,
  output logic            retire_eof_o,
  output err_t            retire_err_o,  // of the write itself
  // AXI4
  output logic     [63:0] awaddr_o,
  output logic            awvalid_o,
  input  logic            awready_i,
  output logic     [31:0] wdata_o,
  output logic            wvalid_o,
  input  logic            wready_i,
  input  logic      [1:0] bresp_i,
  input  logic            bvalid_i,
  output logic            bready_o,
  output logic     [63:0] araddr_o,
  output logic            arvalid_o,
  input  logic            arready_i,
  input  logic     [31:0] rdata_i,
  input  logic      [1:0] rresp_i,
  input  logic            rlast_i,
  input  logic            rvalid_i,
  output logic            rready_o
);
  localparam int unsigned MaxReads  = 4;
  localparam int unsigned MaxWrites = 8;

  typedef struct packed {
    logic      chan;
    desc_ptr_t ptr;
  } read_t;

  typedef struct packed {
    logic      chan;
    logic      eof;
    desc_ptr_t ptr;
  } write_t;

  // ---------------------------------------------------------------------------------------------
  // Reads: the channels take turns
  // ---------------------------------------------------------------------------------------------
  logic                         rturn_q, rchan, rpush, rpop;
  logic [$clog2(MaxReads+1)-1:0] reads;
  read_t                        rhead, rnew;

  assign rchan      = req_valid_i[rturn_q] ? rturn_q : !rturn_q;
  assign rpush      = (|req_valid_i) && !arvalid_o && (reads != 3'(MaxReads));
  assign rnew.chan  = rchan;
  assign rnew.ptr   = req_ptr_i[rchan];

  always_comb begin
    req_ready_o        = '0;
    req_ready_o[rchan] = rpush;
  end

  always_ff @(posedge clk_i) begin
    if (rpush) araddr_o <= {rnew.ptr, 6'd0};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      arvalid_o <= 1'b0;
      rturn_q   <= 1'b0;
    end else begin
      if (rpush) begin
        arvalid_o <= 1'b1;
        rturn_q   <= !rchan;
      end else if (arready_i) begin
        arvalid_o <= 1'b0;
      end
    end
  end

  // The channels reserve room for what they ask, so words are always taken.
  assign rready_o   = 1'b1;
  assign rpop       = rvalid_i && rlast_i;
  assign word_o     = rdata_i;
  assign word_err_o = resp_err(rresp_i);
  assign word_ptr_o = rhead.ptr;

  always_comb begin
    word_valid_o             = '0;
    word_valid_o[rhead.chan] = rvalid_i;
  end

  logic rhead_valid, whead_valid;

  ws_dma_fifo #(
    .Width($bits(read_t)),
    .Depth(MaxReads)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (rpush),
    .data_i (rnew),
    .pop_i  (rpop),
    .valid_o(rhead_valid),
    .data_o (rhead),
    .count_o(reads)
  );

  // ---------------------------------------------------------------------------------------------
  // Write-backs of the STATUS word
  // ---------------------------------------------------------------------------------------------
  logic                           wturn_q, wchan, wpush, wpop;
  logic [$clog2(MaxWrites+1)-1:0] writes;
  update_t                        wupdate;
  write_t                         whead, wnew;

  assign wchan    = update_valid_i[wturn_q] ? wturn_q : !wturn_q;
  assign wpush    = (|update_valid_i) && !awvalid_o && !wvalid_o && (writes != 4'(MaxWrites));
  assign wupdate  = update_i[wchan];
  assign wnew.chan = wchan;
  assign wnew.eof  = wupdate.eof;
  assign wnew.ptr  = wupdate.ptr;

  always_comb begin
    update_ready_o        = '0;
    update_ready_o[wchan] = wpush;
  end

  always_ff @(posedge clk_i) begin
    if (wpush) begin
      awaddr_o <= {wupdate.ptr, DescStatus[5:0]};
      wdata_o  <= wupdate.status;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      awvalid_o <= 1'b0;
      wvalid_o  <= 1'b0;
      wturn_q   <= 1'b0;
    end else if (wpush) begin
      awvalid_o <= 1'b1;
      wvalid_o  <= 1'b1;
      wturn_q   <= !wchan;
    end else begin
      if (awready_i) awvalid_o <= 1'b0;
      if (wready_i) wvalid_o <= 1'b0;
    end
  end

  assign bready_o     = 1'b1;
  assign wpop         = bvalid_i;
  assign retire_ptr_o = whead.ptr;
  assign retire_eof_o = whead.eof;
  assign retire_err_o = resp_err(bresp_i);

  always_comb begin
    retire_o             = '0;
    retire_o[whead.chan] = wpop;
  end

  ws_dma_fifo #(
    .Width($bits(write_t)),
    .Depth(MaxWrites)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .clear_i(1'b0),
    .push_i (wpush),
    .data_i (wnew),
    .pop_i  (wpop),
    .valid_o(whead_valid),
    .data_o (whead),
    .count_o(writes)
  );

  assert property (@(posedge clk_i) disable iff (!rst_ni)
    rvalid_i |-> rhead_valid) else $error("read data that nothing asked for");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    bvalid_i |-> whead_valid) else $error("a write response without a write");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    arvalid_o && !arready_i |=> arvalid_o && $stable(araddr_o))
    else $error("AR changed before ARREADY");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    awvalid_o && !awready_i |=> awvalid_o && $stable(awaddr_o))
    else $error("AW changed before AWREADY");

endmodule
