//! Verilates the configurations and compiles the models with the harness.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, exit},
};

#[path = "src/verilate.rs"]
mod verilate;

/// A model in this binary: a name, the file list it is made of, and the top level's parameters.
struct Config {
    name: &'static str,
    files: &'static str,
    bus_width: u32,
    blocks_per_cycle: u32,
}

/// One line a configuration: the default one.
#[rustfmt::skip]
const DEFAULT_CONFIGS: &[Config] = &[
    Config { name: "w128b1", files: "weightstream.f", bus_width: 128, blocks_per_cycle: 1 },
];

/// The spread of parameters that the feature `configs` adds.
#[rustfmt::skip]
const MORE_CONFIGS: &[Config] = &[
    Config { name: "w64b1", files: "weightstream.f", bus_width: 64, blocks_per_cycle: 1 },
    Config { name: "w128b2", files: "weightstream.f", bus_width: 128, blocks_per_cycle: 2 },
    Config { name: "w256b2", files: "weightstream.f", bus_width: 256, blocks_per_cycle: 2 },
    Config { name: "w512b4", files: "weightstream.f", bus_width: 512, blocks_per_cycle: 4 },
];

/// With a loop in place of the kernel, for the DMA engine's own tests; and with a stand-in for all
/// of it that breaks the rules of AXI, for those of the protocol checkers.
#[rustfmt::skip]
const TESTBENCH_CONFIGS: &[Config] = &[
    Config { name: "loop128", files: "dma_tb.f", bus_width: 128, blocks_per_cycle: 1 },
    Config { name: "rules128", files: "rules_tb.f", bus_width: 128, blocks_per_cycle: 1 },
];

fn main() {
    if let Err(message) = build() {
        println!("cargo::error={message}");
        exit(1);
    }
}

fn build() -> Result<(), String> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let rtl = here
        .parent()
        .ok_or("no folder above this crate")?
        .join("rtl");
    // What `dut` embeds is among them: a change of it compiles the crate anew.
    let inputs = [
        "build.rs",
        "cpp",
        "dut",
        "src/bridge.rs",
        "src/probe.rs",
        "src/verilate.rs",
        "../rtl",
        "verilated/cpp",
    ];
    for path in inputs {
        println!("cargo::rerun-if-changed={path}");
    }
    println!(
        "cargo::rustc-env=WEIGHTSTREAM_SIM_HARNESS={:016x}",
        harness(&here)?
    );

    let testbench = env::var_os("CARGO_FEATURE_TESTBENCH").is_some();
    let mut configs: Vec<&Config> = DEFAULT_CONFIGS.iter().collect();
    if env::var_os("CARGO_FEATURE_CONFIGS").is_some() {
        configs.extend(MORE_CONFIGS);
    }
    // What users are offered; the tests name theirs.
    let names: Vec<&str> = configs.iter().map(|c| c.name).collect();
    println!(
        "cargo::rustc-env=WEIGHTSTREAM_SIM_CONFIGS={}",
        names.join(",")
    );
    if testbench {
        configs.extend(TESTBENCH_CONFIGS);
    }

    let verilator = runtime("VERILATOR")?;
    let mut fast = compiler(&here)?;
    let mut slow = compiler(&here)?;
    fast.opt_level(3);
    slow.opt_level(0);
    let mut inc = String::new();
    for config in &configs {
        let dir = out.join(config.name);
        verilate(&verilator, &rtl, config, &dir)?;
        for file in sources(&dir, "cpp")? {
            if verilate::runs_once(&file) {
                slow.file(file);
            } else {
                fast.file(file);
            }
        }
        let loop_source = out.join(format!("{}.cpp", config.name));
        let template = read(&here.join("cpp/config.cpp.in"))?;
        write(&loop_source, &template.replace('@', config.name))?;
        fast.file(loop_source).include(&dir);
        slow.include(&dir);
        inc += &format!("WS_CONFIG({}, {})\n", config.name, config.bus_width / 8);
    }
    write(&out.join("configs.inc"), &inc)?;

    let mut bridges = vec!["src/bridge.rs"];
    if testbench {
        bridges.push("src/probe.rs");
    }
    let mut glue = cxx_build::bridges(bridges);
    configure(&mut glue, &here)?;
    glue.opt_level(2).include(&out);
    glue.file(here.join("cpp/bridge.cpp"));
    glue.file(here.join("cpp/configs.cpp"));
    // Users of a library come before it: glue, then the fast part, then the slow part.
    for (cc, name) in [
        (&glue, "ws_glue"),
        (&fast, "ws_models"),
        (&slow, "ws_models_slow"),
    ] {
        cc.try_compile(name)
            .map_err(|e| format!("cannot compile {name}: {e}"))?;
    }
    Ok(())
}

/// What the runtime's crate found out (see `verilated/build.rs`).
fn runtime(name: &str) -> Result<String, String> {
    let name = format!("DEP_WEIGHTSTREAM_VERILATED_{name}");
    env::var(&name).map_err(|_| format!("{name} is not set: weightstream-verilated was not built"))
}

fn compiler(here: &Path) -> Result<cc::Build, String> {
    let mut cc = cc::Build::new();
    cc.cpp(true);
    configure(&mut cc, here)?;
    Ok(cc)
}

fn configure(cc: &mut cc::Build, here: &Path) -> Result<(), String> {
    cc.std("c++17").warnings(false).include(here.join("cpp"));
    cc.debug(false).force_frame_pointer(false);
    let include = runtime("INCLUDE")?;
    cc.includes(env::split_paths(&include));
    let hooks = env::split_paths(&include)
        .map(|dir| dir.join("hooks.h"))
        .find(|file| file.is_file())
        .ok_or("hooks.h of weightstream-verilated is not there")?;
    cc.flag("-include").flag(hooks);
    for define in runtime("DEFINES")?.split(' ') {
        let (name, value) = define.split_once('=').unwrap_or((define, "1"));
        cc.define(name, value);
    }
    Ok(())
}

fn verilate(verilator: &str, rtl: &Path, config: &Config, dir: &Path) -> Result<(), String> {
    // Files of an earlier run that this one does not make must not be compiled.
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let output = Command::new(verilator)
        .args(verilate::ARGUMENTS)
        .args(["--top-module", "weightstream", "--prefix"])
        .arg(format!("V{}", config.name))
        .arg("-Mdir")
        .arg(dir)
        .arg(format!("-GBusWidth={}", config.bus_width))
        .arg(format!("-GBlocksPerCycle={}", config.blocks_per_cycle))
        .arg("-F")
        .arg(rtl.join(config.files))
        .output()
        .map_err(|e| format!("cannot run `{verilator}`: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!(
            "Verilator refuses {}:\\n{}",
            config.name,
            text.replace('\n', "\\n")
        ));
    }
    for line in text.lines().filter(|l| l.starts_with("%Warning")) {
        println!("cargo::warning={}: {line}", config.name);
    }
    Ok(())
}

fn sources(dir: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .map_err(|e| format!("{}: {e}", dir.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    Ok(files)
}

/// Stands for what the classes of the harness are compiled from: FNV-1a of its headers.
fn harness(here: &Path) -> Result<u64, String> {
    let mut headers = sources(&here.join("cpp"), "h")?;
    headers.extend(sources(&here.join("verilated/cpp"), "h")?);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for header in headers {
        for byte in read(&header)?.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(hash)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
