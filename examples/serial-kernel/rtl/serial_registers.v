// The kernel's registers on AXI4-Lite (docs/registers.md, "Streaming kernel"), one access at a time.
module serial_registers #(
  parameter BUS      = 128,
  parameter MAX_COLS = 2,
  parameter MAX_K    = 2048
) (
  input  wire        aclk,
  input  wire        aresetn,
  output reg         soft_reset,
  output wire [63:0] cycles,

  input  wire [11:0] s_axi_ctrl_awaddr,
  input  wire        s_axi_ctrl_awvalid,
  output wire        s_axi_ctrl_awready,
  input  wire [31:0] s_axi_ctrl_wdata,
  input  wire [3:0]  s_axi_ctrl_wstrb,
  input  wire        s_axi_ctrl_wvalid,
  output wire        s_axi_ctrl_wready,
  output wire [1:0]  s_axi_ctrl_bresp,
  output reg         s_axi_ctrl_bvalid,
  input  wire        s_axi_ctrl_bready,
  input  wire [11:0] s_axi_ctrl_araddr,
  input  wire        s_axi_ctrl_arvalid,
  output wire        s_axi_ctrl_arready,
  output reg  [31:0] s_axi_ctrl_rdata,
  output wire [1:0]  s_axi_ctrl_rresp,
  output reg         s_axi_ctrl_rvalid,
  input  wire        s_axi_ctrl_rready,

  // What is counted
  input  wire        beat_in,
  input  wire        stall_in,
  input  wire        beat_out,
  input  wire        stall_out,
  input  wire        last_out,
  input  wire        footer,
  input  wire [31:0] status
);

  reg         busy;
  reg  [31:0] error;
  reg  [63:0] now;
  reg  [63:0] counters [0:6];
  reg         holds;  // the high word of counter `which`, read with its low word
  reg  [2:0]  which;
  reg  [31:0] high;
  integer     j;

  assign cycles = now;

  wire       write = s_axi_ctrl_awvalid && s_axi_ctrl_wvalid && !s_axi_ctrl_bvalid;
  wire       read  = s_axi_ctrl_arvalid && !s_axi_ctrl_rvalid;
  wire       whole = write && &s_axi_ctrl_wstrb;
  wire       clear = whole && s_axi_ctrl_awaddr == 12'h018 && s_axi_ctrl_wdata[1];
  wire [2:0] counter = s_axi_ctrl_araddr[5:3];
  wire       counts = s_axi_ctrl_araddr[11:6] == 6'd1 && counter != 7;
  wire [6:0] more = {footer, beat_out, beat_in, stall_out, busy && stall_in, busy, 1'b1};

  assign s_axi_ctrl_awready = write;
  assign s_axi_ctrl_wready  = write;
  assign s_axi_ctrl_bresp   = 2'b00;
  assign s_axi_ctrl_arready = !s_axi_ctrl_rvalid && aresetn;
  assign s_axi_ctrl_rresp   = 2'b00;

  reg [31:0] value;
  always @* begin
    value = 0;
    case (s_axi_ctrl_araddr)
      12'h000: value = 32'h4B535757;
      12'h004: value = 32'h00010000;
      12'h008: value = {8'd0, 8'd1, 16'(BUS)};
      12'h00C: value = MAX_K;
      12'h010: value = MAX_COLS;
      12'h014: value = 32'h00000104;  // Q8_0, Q4_0
      12'h01C: value = {31'd0, busy};
      12'h020: value = error;
      default: if (counts) begin
        if (!s_axi_ctrl_araddr[2]) value = counters[counter][31:0];
        else value = holds && which == counter ? high : counters[counter][63:32];
      end
    endcase
  end

  always @(posedge aclk) begin
    now        <= now + 64'd1;
    soft_reset <= whole && s_axi_ctrl_awaddr == 12'h018 && s_axi_ctrl_wdata[0];
    if (write) s_axi_ctrl_bvalid <= 1;
    else if (s_axi_ctrl_bready) s_axi_ctrl_bvalid <= 0;
    if (read) begin
      s_axi_ctrl_rvalid <= 1;
      s_axi_ctrl_rdata  <= value;
      if (counts) begin
        holds <= !s_axi_ctrl_araddr[2];
        which <= counter;
        high  <= counters[counter][63:32];
      end
    end else if (s_axi_ctrl_rready) s_axi_ctrl_rvalid <= 0;

    for (j = 0; j < 7; j = j + 1) counters[j] <= clear ? 64'd0 : counters[j] + {63'd0, more[j]};
    if (beat_in) busy <= 1;
    else if (beat_out && last_out) busy <= 0;
    if (whole && s_axi_ctrl_awaddr == 12'h020) error <= error & ~s_axi_ctrl_wdata;
    if (footer) error <= error | status;

    if (!aresetn || soft_reset) begin
      busy  <= 0;
      error <= 0;
    end
    if (!aresetn) begin
      now               <= 0;
      soft_reset        <= 0;
      holds             <= 0;
      s_axi_ctrl_bvalid <= 0;
      s_axi_ctrl_rvalid <= 0;
      for (j = 0; j < 7; j = j + 1) counters[j] <= 64'd0;
    end
  end

endmodule
