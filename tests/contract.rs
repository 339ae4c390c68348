//! Holds the languages together: what Rust and SystemVerilog say of registers, descriptors, the job
//! header, the footer and the weight types.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weightstream::quant::WeightType;
use weightstream::regs::axi_dma::{self, cr, desc, sr};
use weightstream::regs::job::{self, header, status};
use weightstream::regs::kernel;

type Constants = BTreeMap<String, u32>;

/// The `localparam logic [31:0] Name = 32'…;` lines of a package.
fn constants(file: &str) -> Constants {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let line = r"(?m)^\s*localparam logic \[31:0\] (\w+)\s*=\s*32'([hd])([0-9A-Fa-f_]+);";
    let parse = |radix: &str, digits: &str| {
        let radix = if radix == "h" { 16 } else { 10 };
        u32::from_str_radix(&digits.replace('_', ""), radix).unwrap()
    };
    let line = regex::Regex::new(line).unwrap();
    line.captures_iter(&text)
        .map(|c| (c[1].to_string(), parse(&c[2], &c[3])))
        .collect()
}

/// Compares both ways: every entry of ours stands in the package with its value, and every entry
/// of the package is one of ours.
fn assert_same(theirs: &Constants, ours: &Constants) {
    assert!(theirs.len() > 30, "the package was parsed");
    for (name, value) in theirs {
        match ours.get(name) {
            Some(our) => assert_eq!(value, our, "{name}"),
            None => panic!("{name} = 0x{value:x} is in SystemVerilog only"),
        }
    }
    for name in ours.keys() {
        assert!(theirs.contains_key(name), "{name} is in Rust only");
    }
}

fn named<const N: usize>(entries: [(&str, u32); N]) -> Constants {
    entries
        .map(|(name, value)| (name.to_string(), value))
        .into()
}

#[test]
fn the_jobs_and_the_kernels_contract_is_one() {
    let mut ours = named([
        ("JobMagic", job::MAGIC),
        ("JobVersion", job::VERSION),
        ("JobHeaderBytes", job::HEADER_BYTES as u32),
        ("JobPartAlign", job::PART_ALIGN as u32),
        ("JobOffMagic", header::MAGIC as u32),
        ("JobOffVersion", header::VERSION as u32),
        ("JobOffType", header::TYPE as u32),
        ("JobOffK", header::K as u32),
        ("JobOffRows", header::ROWS as u32),
        ("JobOffCols", header::COLS as u32),
        ("JobOffSkip", header::SKIP as u32),
        ("JobOffFlags", header::FLAGS as u32),
        ("JobOffTag", header::TAG as u32),
        ("JobOffReserved", header::RESERVED as u32),
        ("JobMaxRows", job::MAX_ROWS),
        ("JobFlagReuseActivations", job::REUSE_ACTIVATIONS),
        ("FooterBytes", job::FOOTER_BYTES as u32),
        ("FooterOffTag", 0),
        ("FooterOffStatus", 4),
        ("FooterOffCycles", 8),
        ("StatusNonfinite", status::NONFINITE),
        ("StatusBadMagic", status::BAD_MAGIC),
        ("StatusBadVersion", status::BAD_VERSION),
        ("StatusBadType", status::BAD_TYPE),
        ("StatusBadK", status::BAD_K),
        ("StatusBadRows", status::BAD_ROWS),
        ("StatusBadCols", status::BAD_COLS),
        ("StatusBadSkip", status::BAD_SKIP),
        ("StatusBadFlags", status::BAD_FLAGS),
        ("StatusNoActivations", status::NO_ACTIVATIONS),
        ("StatusShort", status::SHORT),
        ("StatusLong", status::LONG),
        ("StatusBadKeep", status::BAD_KEEP),
        ("ResultNan", 0x7FC0_0000),
        ("KernelWindow", kernel::WINDOW),
        ("KernelRegId", kernel::ID),
        ("KernelRegVersion", kernel::VERSION),
        ("KernelRegCapBus", kernel::CAP_BUS),
        ("KernelRegCapMaxK", kernel::CAP_MAX_K),
        ("KernelRegCapMaxCols", kernel::CAP_MAX_COLS),
        ("KernelRegCapTypes", kernel::CAP_TYPES),
        ("KernelRegCtrl", kernel::CTRL),
        ("KernelRegStatus", kernel::STATUS),
        ("KernelRegError", kernel::ERROR),
        ("KernelRegCycles", kernel::CYCLES),
        ("KernelRegBusyCycles", kernel::BUSY_CYCLES),
        ("KernelRegStallIn", kernel::STALL_IN),
        ("KernelRegStallOut", kernel::STALL_OUT),
        ("KernelRegBeatsIn", kernel::BEATS_IN),
        ("KernelRegBeatsOut", kernel::BEATS_OUT),
        ("KernelRegJobs", kernel::JOBS),
        ("KernelId", kernel::ID_VALUE),
        (
            "KernelVersion",
            kernel::VERSION_MAJOR << 16 | kernel::VERSION_MINOR,
        ),
        ("KernelCtrlSoftReset", kernel::CTRL_SOFT_RESET),
        ("KernelCtrlClear", kernel::CTRL_CLEAR),
        ("KernelStatusBusy", kernel::STATUS_BUSY),
    ]);
    for ty in WeightType::all() {
        let name = ty.name().replace("_K", "K");
        ours.insert(format!("Type{name}"), ty.ggml());
        ours.insert(format!("Weights{name}"), ty.block_len() as u32);
        ours.insert(format!("Bytes{name}"), ty.block_bytes() as u32);
    }
    assert_same(&constants("rtl/ws_pkg.sv"), &ours);
}

#[test]
fn the_dmas_contract_is_one() {
    let ours = named([
        ("DmacrRs", cr::RS),
        ("DmacrReset", cr::RESET),
        ("DmacrIocIrqEn", cr::IOC_IRQ_EN),
        ("DmacrDlyIrqEn", cr::DLY_IRQ_EN),
        ("DmacrErrIrqEn", cr::ERR_IRQ_EN),
        ("DmacrIrqThreshold", 0xFF << cr::IRQ_THRESHOLD_SHIFT),
        ("DmacrIrqDelay", 0xFF << cr::IRQ_DELAY_SHIFT),
        ("DmacrResetValue", cr::RESET_VALUE),
        ("DmacrDelayUnit", cr::DELAY_UNIT),
        ("DmasrHalted", sr::HALTED),
        ("DmasrIdle", sr::IDLE),
        ("DmasrSgIncld", sr::SG_INCLD),
        ("DmasrDmaIntErr", sr::DMA_INT_ERR),
        ("DmasrDmaSlvErr", sr::DMA_SLV_ERR),
        ("DmasrDmaDecErr", sr::DMA_DEC_ERR),
        ("DmasrSgIntErr", sr::SG_INT_ERR),
        ("DmasrSgSlvErr", sr::SG_SLV_ERR),
        ("DmasrSgDecErr", sr::SG_DEC_ERR),
        ("DmasrIocIrq", sr::IOC_IRQ),
        ("DmasrDlyIrq", sr::DLY_IRQ),
        ("DmasrErrIrq", sr::ERR_IRQ),
        ("DmasrIrqThresholdSts", 0xFF << cr::IRQ_THRESHOLD_SHIFT),
        ("DmasrIrqDelaySts", 0xFF << cr::IRQ_DELAY_SHIFT),
        ("DmasrResetValue", sr::RESET_VALUE),
        ("DescNxtdesc", desc::NXTDESC as u32),
        ("DescNxtdescMsb", desc::NXTDESC_MSB as u32),
        ("DescBufferAddress", desc::BUFFER_ADDRESS as u32),
        ("DescBufferAddressMsb", desc::BUFFER_ADDRESS_MSB as u32),
        ("DescControl", desc::CONTROL as u32),
        ("DescStatus", desc::STATUS as u32),
        ("DescAlign", axi_dma::DESCRIPTOR_BYTES as u32),
        ("ControlLength", desc::LENGTH_MASK),
        ("ControlTxeof", desc::TXEOF),
        ("ControlTxsof", desc::TXSOF),
        ("StatusLength", desc::LENGTH_MASK),
        ("StatusRxeof", desc::RXEOF),
        ("StatusRxsof", desc::RXSOF),
        ("StatusDmaIntErr", desc::DMA_INT_ERR),
        ("StatusDmaSlvErr", desc::DMA_SLV_ERR),
        ("StatusDmaDecErr", desc::DMA_DEC_ERR),
        ("StatusCmplt", desc::CMPLT),
    ]);
    let registers = [
        ("Dmacr", axi_dma::DMACR),
        ("Dmasr", axi_dma::DMASR),
        ("Curdesc", axi_dma::CURDESC),
        ("CurdescMsb", axi_dma::CURDESC_MSB),
        ("Taildesc", axi_dma::TAILDESC),
        ("TaildescMsb", axi_dma::TAILDESC_MSB),
    ];
    let of = |channel: &str, base: u32| {
        registers.map(|(n, offset)| (format!("{channel}{n}"), base + offset))
    };
    let ours = ours
        .into_iter()
        .chain(of("Mm2s", axi_dma::MM2S))
        .chain(of("S2mm", axi_dma::S2MM))
        .collect();
    assert_same(&constants("rtl/dma/ws_dma_pkg.sv"), &ours);
}
