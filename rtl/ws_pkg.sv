// The constants of docs/stream.md and docs/registers.md that RTL and software share.
//
// One plain 32-bit constant a line, so that the software's test can read this file and compare.
package ws_pkg;

  // Software reads some that the RTL does not.
  /* verilator lint_off UNUSEDPARAM */

  // ------------------------------------------------ job header (stream.md)
  localparam logic [31:0] JobMagic = 32'h314A5357;
  localparam logic [31:0] JobVersion = 32'h00000001;
  localparam logic [31:0] JobHeaderBytes = 32'h00000040;
  localparam logic [31:0] JobPartAlign = 32'h00000040;
  localparam logic [31:0] JobOffMagic = 32'h00000000;
  localparam logic [31:0] JobOffVersion = 32'h00000004;
  localparam logic [31:0] JobOffType = 32'h00000008;
  localparam logic [31:0] JobOffK = 32'h0000000C;
  localparam logic [31:0] JobOffRows = 32'h00000010;
  localparam logic [31:0] JobOffCols = 32'h00000014;
  localparam logic [31:0] JobOffSkip = 32'h00000018;
  localparam logic [31:0] JobOffFlags = 32'h0000001C;
  localparam logic [31:0] JobOffTag = 32'h00000020;
  localparam logic [31:0] JobOffReserved = 32'h00000024;
  localparam logic [31:0] JobMaxRows = 32'h00FFFFFF;
  localparam logic [31:0] JobFlagReuseActivations = 32'h00000001;

  // ------------------------------------------------ result footer (stream.md)
  localparam logic [31:0] FooterBytes = 32'h00000010;
  localparam logic [31:0] FooterOffTag = 32'h00000000;
  localparam logic [31:0] FooterOffStatus = 32'h00000004;
  localparam logic [31:0] FooterOffCycles = 32'h00000008;

  // Status bits, as masks. The same masks are used by the ERROR register.
  localparam logic [31:0] StatusNonfinite = 32'h00000001;
  localparam logic [31:0] StatusBadMagic = 32'h00000100;
  localparam logic [31:0] StatusBadVersion = 32'h00000200;
  localparam logic [31:0] StatusBadType = 32'h00000400;
  localparam logic [31:0] StatusBadK = 32'h00000800;
  localparam logic [31:0] StatusBadRows = 32'h00001000;
  localparam logic [31:0] StatusBadCols = 32'h00002000;
  localparam logic [31:0] StatusBadSkip = 32'h00004000;
  localparam logic [31:0] StatusBadFlags = 32'h00008000;
  localparam logic [31:0] StatusNoActivations = 32'h00010000;
  localparam logic [31:0] StatusShort = 32'h00020000;
  localparam logic [31:0] StatusLong = 32'h00040000;
  localparam logic [31:0] StatusBadKeep = 32'h00080000;

  // A NaN result.
  localparam logic [31:0] ResultNan = 32'h7FC00000;

  // ------------------------------------------------ weight types (ggml_type)
  localparam logic [31:0] TypeQ4_0 = 32'h00000002;
  localparam logic [31:0] TypeQ4_1 = 32'h00000003;
  localparam logic [31:0] TypeQ5_0 = 32'h00000006;
  localparam logic [31:0] TypeQ5_1 = 32'h00000007;
  localparam logic [31:0] TypeQ8_0 = 32'h00000008;
  localparam logic [31:0] TypeQ2K = 32'h0000000A;
  localparam logic [31:0] TypeQ3K = 32'h0000000B;
  localparam logic [31:0] TypeQ4K = 32'h0000000C;
  localparam logic [31:0] TypeQ5K = 32'h0000000D;
  localparam logic [31:0] TypeQ6K = 32'h0000000E;

  // Weights in a block.
  localparam logic [31:0] WeightsQ4_0 = 32'h00000020;
  localparam logic [31:0] WeightsQ4_1 = 32'h00000020;
  localparam logic [31:0] WeightsQ5_0 = 32'h00000020;
  localparam logic [31:0] WeightsQ5_1 = 32'h00000020;
  localparam logic [31:0] WeightsQ8_0 = 32'h00000020;
  localparam logic [31:0] WeightsQ2K = 32'h00000100;
  localparam logic [31:0] WeightsQ3K = 32'h00000100;
  localparam logic [31:0] WeightsQ4K = 32'h00000100;
  localparam logic [31:0] WeightsQ5K = 32'h00000100;
  localparam logic [31:0] WeightsQ6K = 32'h00000100;

  // Bytes in a block.
  localparam logic [31:0] BytesQ4_0 = 32'h00000012;
  localparam logic [31:0] BytesQ4_1 = 32'h00000014;
  localparam logic [31:0] BytesQ5_0 = 32'h00000016;
  localparam logic [31:0] BytesQ5_1 = 32'h00000018;
  localparam logic [31:0] BytesQ8_0 = 32'h00000022;
  localparam logic [31:0] BytesQ2K = 32'h00000054;
  localparam logic [31:0] BytesQ3K = 32'h0000006E;
  localparam logic [31:0] BytesQ4K = 32'h00000090;
  localparam logic [31:0] BytesQ5K = 32'h000000B0;
  localparam logic [31:0] BytesQ6K = 32'h000000D2;

  // ------------------------------------------------ kernel registers (registers.md)
  localparam logic [31:0] KernelWindow = 32'h00001000;
  localparam logic [31:0] KernelRegId = 32'h00000000;
  localparam logic [31:0] KernelRegVersion = 32'h00000004;
  localparam logic [31:0] KernelRegCapBus = 32'h00000008;
  localparam logic [31:0] KernelRegCapMaxK = 32'h0000000C;
  localparam logic [31:0] KernelRegCapMaxCols = 32'h00000010;
  localparam logic [31:0] KernelRegCapTypes = 32'h00000014;
  localparam logic [31:0] KernelRegCtrl = 32'h00000018;
  localparam logic [31:0] KernelRegStatus = 32'h0000001C;
  localparam logic [31:0] KernelRegError = 32'h00000020;
  localparam logic [31:0] KernelRegCycles = 32'h00000040;
  localparam logic [31:0] KernelRegBusyCycles = 32'h00000048;
  localparam logic [31:0] KernelRegStallIn = 32'h00000050;
  localparam logic [31:0] KernelRegStallOut = 32'h00000058;
  localparam logic [31:0] KernelRegBeatsIn = 32'h00000060;
  localparam logic [31:0] KernelRegBeatsOut = 32'h00000068;
  localparam logic [31:0] KernelRegJobs = 32'h00000070;

  localparam logic [31:0] KernelId = 32'h4B535757;
  localparam logic [31:0] KernelVersion = 32'h00010000;
  localparam logic [31:0] KernelCtrlSoftReset = 32'h00000001;
  localparam logic [31:0] KernelCtrlClear = 32'h00000002;
  localparam logic [31:0] KernelStatusBusy = 32'h00000001;

  /* verilator lint_on UNUSEDPARAM */

endpackage
