//! Verilates the leaf modules, each by itself, and compiles them behind one C++ interface.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, exit},
};

/// A model in this crate: the name a testbench asks for, the module, its parameters, and registers
/// that a testbench may set as if they were inputs, with their widths.
struct Model {
    name: &'static str,
    module: &'static str,
    parameters: &'static [(&'static str, u32)],
    registers: &'static [(&'static str, u32)],
}

/// A model named as its module, with the module's own parameters.
const fn plain(module: &'static str) -> Model {
    with(module, module, &[])
}

const fn with(
    name: &'static str,
    module: &'static str,
    parameters: &'static [(&'static str, u32)],
) -> Model {
    Model {
        name,
        module,
        parameters,
        registers: &[],
    }
}

/// One line a model.
#[rustfmt::skip]
const MODELS: &[Model] = &[
    // Kernel.
    with("ws_realign_8", "ws_realign", &[("BusBytes", 8), ("ExtBytes", 34), ("UserWidth", 8)]),
    with("ws_realign_16", "ws_realign", &[("BusBytes", 16), ("ExtBytes", 34), ("UserWidth", 8)]),
    with("ws_realign_64", "ws_realign", &[("BusBytes", 64), ("ExtBytes", 96), ("UserWidth", 8)]),
    with("ws_group_1", "ws_group", &[("ExtBytes", 4), ("Pieces", 1), ("UserWidth", 8)]),
    with("ws_group_3", "ws_group", &[("ExtBytes", 4), ("Pieces", 3), ("UserWidth", 8)]),
    with("ws_issue", "ws_issue", &[("MaxCols", 3), ("Stride", 16), ("Credits", 8)]),
    with("ws_decode_lane0of1", "ws_decode", &[("ExtBytes", 34), ("Lanes", 1), ("Lane", 0)]),
    with("ws_decode_lane1of2", "ws_decode", &[("ExtBytes", 48), ("Lanes", 2), ("Lane", 1)]),
    with("ws_decode_lane3of4", "ws_decode", &[("ExtBytes", 96), ("Lanes", 4), ("Lane", 3)]),
    plain("ws_act_bank"),
    plain("ws_dot"),
    plain("ws_scale"),
    with("ws_mul_shift_20", "ws_mul_shift", &[("ValueWidth", 20)]),
    with("ws_mul_shift_26", "ws_mul_shift", &[("ValueWidth", 26)]),
    with("ws_acc_1", "ws_acc", &[("Lanes", 1), ("MaxCols", 1)]),
    with("ws_acc_2", "ws_acc", &[("Lanes", 2), ("MaxCols", 4)]),
    with("ws_acc_4", "ws_acc", &[("Lanes", 4), ("MaxCols", 5)]),
    plain("ws_round"),
    plain("ws_footer"),
    with("ws_result_8", "ws_result", &[("BusBytes", 8), ("Depth", 8)]),
    with("ws_result_16", "ws_result", &[("BusBytes", 16), ("Depth", 64)]),
    with("ws_result_64", "ws_result", &[("BusBytes", 64), ("Depth", 16)]),
    with("ws_job_header_8", "ws_job_header", &[("BusBytes", 8), ("MaxCols", 4), ("MaxK", 4096)]),
    with("ws_job_header_16", "ws_job_header", &[("BusBytes", 16), ("MaxCols", 4), ("MaxK", 4096)]),
    with("ws_job_header_64", "ws_job_header", &[("BusBytes", 64), ("MaxCols", 4), ("MaxK", 4096)]),
    plain("ws_kernel_csr"),
    Model { registers: &[("count_q", 64)], ..plain("ws_counter64") },
    with("ws_kernel_w64b1", "ws_kernel", &[("BusWidth", 64), ("BlocksPerCycle", 1), ("MaxCols", 3), ("MaxK", 512)]),
    with("ws_kernel_w128b1", "ws_kernel", &[("BusWidth", 128), ("BlocksPerCycle", 1), ("MaxCols", 3), ("MaxK", 512)]),
    with("ws_kernel_w128b2", "ws_kernel", &[("BusWidth", 128), ("BlocksPerCycle", 2), ("MaxCols", 3), ("MaxK", 512)]),
    with("ws_kernel_w256b2", "ws_kernel", &[("BusWidth", 256), ("BlocksPerCycle", 2), ("MaxCols", 3), ("MaxK", 512)]),
    with("ws_kernel_w512b4", "ws_kernel", &[("BusWidth", 512), ("BlocksPerCycle", 4), ("MaxCols", 3), ("MaxK", 512)]),
    // DMA engine.
    with("ws_dma_mm2s_64", "ws_dma_mm2s", &[("BusWidth", 64), ("MaxBurst", 8), ("FifoDepth", 16)]),
    with("ws_dma_mm2s_128", "ws_dma_mm2s", &[("BusWidth", 128)]),
    with("ws_dma_mm2s_512", "ws_dma_mm2s", &[("BusWidth", 512)]),
    with("ws_dma_s2mm_64", "ws_dma_s2mm", &[("BusWidth", 64), ("MaxBurst", 4), ("FifoDepth", 8)]),
    with("ws_dma_s2mm_128", "ws_dma_s2mm", &[("BusWidth", 128)]),
    with("ws_dma_s2mm_512", "ws_dma_s2mm", &[("BusWidth", 512)]),
    plain("ws_dma_regs"),
    plain("ws_dma_chan_regs"),
    plain("ws_dma_irq"),
    with("ws_dma_fetch", "ws_dma_fetch", &[("BusWidth", 128), ("LengthWidth", 14), ("Depth", 4)]),
    plain("ws_dma_sg"),
    with("ws_dma_fifo", "ws_dma_fifo", &[("Width", 8), ("Depth", 4)]),
    with("ws_dma_stream_fifo", "ws_dma_stream_fifo", &[("BusWidth", 64), ("Depth", 4)]),
    plain("ws_axil_demux"),
];

const PACKAGES: [&str; 3] = ["ws_pkg.sv", "kernel/ws_kernel_pkg.sv", "dma/ws_dma_pkg.sv"];
const FOLDERS: [&str; 3] = [".", "kernel", "dma"];

fn main() {
    if let Err(message) = build() {
        println!("cargo::error={message}");
        exit(1);
    }
}

fn build() -> Result<(), String> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let rtl = here.join("../../rtl");
    for path in ["build.rs", "cpp", "src/bridge.rs", "../../rtl"] {
        println!("cargo::rerun-if-changed={path}");
    }

    let mut cc = cxx_build::bridge("src/bridge.rs");
    configure(&mut cc, &here)?;
    cc.include(&out).file(here.join("cpp/model.cpp"));
    let template = read(&here.join("cpp/leaf.cpp.in"))?;
    let mut list = String::new();
    for model in MODELS {
        let folder = out.join(model.name);
        verilate(model, &rtl, &folder)?;
        let source = out.join(format!("{}.cpp", model.name));
        write(&source, &wrapper(model, &folder, &template)?)?;
        cc.file(source);
        list += &format!("WS_LEAF({})\n", model.name);
    }
    write(&out.join("models.inc"), &list)?;
    cc.try_compile("weightstream_leaf")
        .map_err(|e| format!("cannot compile the models: {e}"))
}

/// What the runtime's crate found out (see `../verilated/build.rs`).
fn runtime(name: &str) -> Result<String, String> {
    let name = format!("DEP_WEIGHTSTREAM_VERILATED_{name}");
    env::var(&name).map_err(|_| format!("{name} is not set: weightstream-verilated was not built"))
}

fn configure(cc: &mut cc::Build, here: &Path) -> Result<(), String> {
    let include = runtime("INCLUDE")?;
    let hooks = env::split_paths(&include)
        .map(|dir| dir.join("hooks.h"))
        .find(|file| file.is_file())
        .ok_or("hooks.h of weightstream-verilated is not there")?;
    cc.std("c++17").warnings(false).opt_level(1).debug(false);
    cc.includes(env::split_paths(&include))
        .include(here.join("cpp"));
    cc.flag("-include").flag(hooks);
    for define in runtime("DEFINES")?.split(' ') {
        let (name, value) = define.split_once('=').unwrap_or((define, "1"));
        cc.define(name, value);
    }
    Ok(())
}

fn verilate(model: &Model, rtl: &Path, folder: &Path) -> Result<(), String> {
    // Files of an earlier run that this one does not make must not be compiled.
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let mut command = Command::new(runtime("VERILATOR")?);
    command.args(["--cc", "--assert", "-O3", "-Wno-fatal"]);
    command.args(["--x-assign", "unique", "--x-initial", "unique"]);
    command.args(["--top-module", model.module, "--prefix"]);
    command
        .arg(format!("V{}", model.name))
        .arg("-Mdir")
        .arg(folder);
    for (name, value) in model.parameters {
        command.arg(format!("-G{name}={value}"));
    }
    if !model.registers.is_empty() {
        command.arg("--public-flat-rw");
    }
    for path in FOLDERS {
        command.arg("-y").arg(rtl.join(path));
    }
    command.arg(rtl.join("lint.vlt"));
    command.args(PACKAGES.map(|file| rtl.join(file)));
    command.arg(format!("{}.sv", model.module));
    let output = command
        .output()
        .map_err(|e| format!("cannot run {:?}: {e}", command.get_program()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!(
            "Verilator refuses {}:\\n{}",
            model.name,
            text.replace('\n', "\\n")
        ));
    }
    for line in text.lines().filter(|l| l.starts_with("%Warning")) {
        println!("cargo::warning={}: {line}", model.name);
    }
    Ok(())
}

/// The C++ that holds the model and names its ports.
fn wrapper(model: &Model, folder: &Path, template: &str) -> Result<String, String> {
    let mut sources: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "cpp"))
        .collect();
    sources.sort();
    let sources: Vec<String> = sources
        .iter()
        .map(|path| format!("#include {path:?}"))
        .collect();

    let header = read(&folder.join(format!("V{}.h", model.name)))?;
    let mut slots: Vec<String> = header.lines().filter_map(slot).collect();
    if slots.is_empty() {
        return Err(format!("{}: no ports in Verilator's header", model.name));
    }
    for (register, width) in model.registers {
        slots.push(format!(
            r#"{{"{register}", {width}, true, &top_->rootp->{}__DOT__{register}}},"#,
            model.module
        ));
    }
    Ok(template
        .replace("@SOURCES@", &sources.join("\n"))
        .replace("@SLOTS@", &slots.join("\n"))
        .replace("@NAME@", model.name)
        .replace("@TOP@", model.module))
}

/// `VL_IN8(&name,msb,lsb);` and its like, as an entry of the table of ports.
fn slot(line: &str) -> Option<String> {
    let (kind, rest) = line.trim().strip_prefix("VL_")?.split_once("(&")?;
    let input = kind.starts_with("IN");
    if !input && !kind.starts_with("OUT") {
        return None;
    }
    let mut fields = rest.split(')').next()?.split(',');
    let name = fields.next()?;
    let msb: u32 = fields.next()?.parse().ok()?;
    let lsb: u32 = fields.next()?.parse().ok()?;
    let width = msb - lsb + 1;
    Some(format!(
        r#"            {{"{name}", {width}, {input}, &top_->{name}}},"#
    ))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
