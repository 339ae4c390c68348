// Constants and types of the AXI DMA engine. Registers, bits and descriptor words are those of
// docs/registers.md (AMD/Xilinx PG021, scatter-gather mode, 64-bit addresses). A host-side test
// parses the constants, so each stays on one line.
package ws_dma_pkg;

  // This table is complete on purpose: it is the contract, whether or not the RTL uses an entry.
  /* verilator lint_off UNUSEDPARAM */

  // ---------------------------------------------------------------------------------------------
  // Register offsets in the DMA window
  // ---------------------------------------------------------------------------------------------
  localparam logic [31:0] Mm2sDmacr       = 32'h0000_0000;
  localparam logic [31:0] Mm2sDmasr       = 32'h0000_0004;
  localparam logic [31:0] Mm2sCurdesc     = 32'h0000_0008;
  localparam logic [31:0] Mm2sCurdescMsb  = 32'h0000_000C;
  localparam logic [31:0] Mm2sTaildesc    = 32'h0000_0010;
  localparam logic [31:0] Mm2sTaildescMsb = 32'h0000_0014;
  localparam logic [31:0] S2mmDmacr       = 32'h0000_0030;
  localparam logic [31:0] S2mmDmasr       = 32'h0000_0034;
  localparam logic [31:0] S2mmCurdesc     = 32'h0000_0038;
  localparam logic [31:0] S2mmCurdescMsb  = 32'h0000_003C;
  localparam logic [31:0] S2mmTaildesc    = 32'h0000_0040;
  localparam logic [31:0] S2mmTaildescMsb = 32'h0000_0044;

  // ---------------------------------------------------------------------------------------------
  // DMACR bits
  // ---------------------------------------------------------------------------------------------
  localparam logic [31:0] DmacrRs             = 32'h0000_0001;
  localparam logic [31:0] DmacrReset          = 32'h0000_0004;
  localparam logic [31:0] DmacrIocIrqEn       = 32'h0000_1000;
  localparam logic [31:0] DmacrDlyIrqEn       = 32'h0000_2000;
  localparam logic [31:0] DmacrErrIrqEn       = 32'h0000_4000;
  localparam logic [31:0] DmacrIrqThreshold   = 32'h00FF_0000;
  localparam logic [31:0] DmacrIrqDelay       = 32'hFF00_0000;
  localparam logic [31:0] DmacrResetValue     = 32'h0001_0002;
  localparam logic [31:0] DmacrDelayUnit      = 32'd125;

  // ---------------------------------------------------------------------------------------------
  // DMASR bits
  // ---------------------------------------------------------------------------------------------
  localparam logic [31:0] DmasrHalted          = 32'h0000_0001;
  localparam logic [31:0] DmasrIdle            = 32'h0000_0002;
  localparam logic [31:0] DmasrSgIncld         = 32'h0000_0008;
  localparam logic [31:0] DmasrDmaIntErr       = 32'h0000_0010;
  localparam logic [31:0] DmasrDmaSlvErr       = 32'h0000_0020;
  localparam logic [31:0] DmasrDmaDecErr       = 32'h0000_0040;
  localparam logic [31:0] DmasrSgIntErr        = 32'h0000_0100;
  localparam logic [31:0] DmasrSgSlvErr        = 32'h0000_0200;
  localparam logic [31:0] DmasrSgDecErr        = 32'h0000_0400;
  localparam logic [31:0] DmasrIocIrq          = 32'h0000_1000;
  localparam logic [31:0] DmasrDlyIrq          = 32'h0000_2000;
  localparam logic [31:0] DmasrErrIrq          = 32'h0000_4000;
  localparam logic [31:0] DmasrIrqThresholdSts = 32'h00FF_0000;
  localparam logic [31:0] DmasrIrqDelaySts     = 32'hFF00_0000;
  localparam logic [31:0] DmasrResetValue      = 32'h0001_0009;

  // ---------------------------------------------------------------------------------------------
  // Descriptor: byte offsets, and bits of CONTROL and STATUS
  // ---------------------------------------------------------------------------------------------
  localparam logic [31:0] DescNxtdesc          = 32'h0000_0000;
  localparam logic [31:0] DescNxtdescMsb       = 32'h0000_0004;
  localparam logic [31:0] DescBufferAddress    = 32'h0000_0008;
  localparam logic [31:0] DescBufferAddressMsb = 32'h0000_000C;
  localparam logic [31:0] DescControl          = 32'h0000_0018;
  localparam logic [31:0] DescStatus           = 32'h0000_001C;
  localparam logic [31:0] DescAlign            = 32'h0000_0040;
  localparam logic [31:0] ControlLength        = 32'h03FF_FFFF;
  localparam logic [31:0] ControlTxeof         = 32'h0400_0000;
  localparam logic [31:0] ControlTxsof         = 32'h0800_0000;
  localparam logic [31:0] StatusLength         = 32'h03FF_FFFF;
  localparam logic [31:0] StatusRxeof          = 32'h0400_0000;
  localparam logic [31:0] StatusRxsof          = 32'h0800_0000;
  localparam logic [31:0] StatusDmaIntErr      = 32'h1000_0000;
  localparam logic [31:0] StatusDmaSlvErr      = 32'h2000_0000;
  localparam logic [31:0] StatusDmaDecErr      = 32'h4000_0000;
  localparam logic [31:0] StatusCmplt          = 32'h8000_0000;

  /* verilator lint_on UNUSEDPARAM */

  // ---------------------------------------------------------------------------------------------
  // Types
  // ---------------------------------------------------------------------------------------------
  // Descriptors are aligned to 64 bytes, so their addresses are held without the low six bits.
  typedef logic [57:0] desc_ptr_t;

  // Something that went wrong on an AXI port or in a descriptor. All zero: nothing did.
  typedef struct packed {
    logic dec;
    logic slv;
    logic int_err;
  } err_t;

  // A fetched descriptor. With an error in it, it is only a marker that keeps the error in order.
  typedef struct packed {
    logic [63:0] addr;
    desc_ptr_t   ptr;
    logic [25:0] length;
    logic        eof;
    logic        bad;  // cannot be carried out: length 0, or an address off the bus word
    err_t        err;
  } desc_t;

  // A status word on its way to memory. `err` is what the channel halts with once it is written.
  typedef struct packed {
    desc_ptr_t   ptr;
    logic        eof;
    logic [31:0] status;
  } update_t;

  // The errors an AXI response stands for.
  function automatic err_t resp_err(input logic [1:0] resp);
    resp_err = err_t'({resp == 2'b11, resp == 2'b10, 1'b0});
  endfunction

endpackage
