//! From C++ to a shared object, by make: what is up to date is left alone.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use weightstream_verilated::toolchain::{COVERAGE_RUNTIME, DEFINES, RUNTIME, Toolchain};

use super::{Dut, DutError, Folder, HARNESS, io_error, verilate};
use crate::verilate::runs_once;

const MAIN: &str = include_str!("../../dut/dut.cpp.in");

/// Compiles `model/`, the harness and Verilator's runtime, and puts the object where it is wanted.
pub fn compile(dut: &Dut, toolchain: &Toolchain, folder: &Folder) -> Result<(), DutError> {
    let main = MAIN.replace("@HARNESS@", HARNESS);
    folder.write(Path::new("dut.cpp"), main.as_bytes())?;
    let rules = makefile(dut, toolchain, folder)?;
    folder.write(Path::new("Makefile"), rules.as_bytes())?;
    let status = Command::new("make")
        .arg("-s")
        .arg(format!("-j{}", dut.jobs.max(1)))
        .arg("-C")
        .arg(&folder.0)
        .stdout(Stdio::null())
        .status()
        .map_err(io_error(Path::new("make")))?;
    if !status.success() {
        return Err(DutError::Compile {
            top: dut.top.into(),
            status,
        });
    }
    // A process may have the old one mapped: put the new one beside it and rename.
    let beside = PathBuf::from(format!("{}.new", dut.output.display()));
    fs::copy(folder.path(OBJECT), &beside).map_err(io_error(&beside))?;
    fs::rename(&beside, dut.output).map_err(io_error(dut.output))
}

const OBJECT: &str = "dut.so";

/// The rules, and in a file of their own the flags, on which everything depends.
fn makefile(dut: &Dut, toolchain: &Toolchain, folder: &Folder) -> Result<String, DutError> {
    let include = &toolchain.include;
    let mut defines: Vec<String> = DEFINES.iter().map(|d| format!("-D{d}")).collect();
    let mut runtime = RUNTIME.to_vec();
    if dut.coverage {
        // The last definition counts.
        defines.push("-UVM_COVERAGE -DVM_COVERAGE=1".into());
        runtime.push(COVERAGE_RUNTIME);
    }
    let flags = format!(
        "CXX ?= c++\n\
         FLAGS = -std=c++17 -w -fPIC -fvisibility=hidden -pthread {defines} \
         -Imodel -Iharness -I{include} -I{include}/vltstd -include harness/hooks.h\n\
         FAST = {fast}\n\
         SLOW = -O0\n",
        defines = defines.join(" "),
        include = include.display(),
        fast = if dut.quick { "-O1" } else { "-O3" },
    );
    folder.write(Path::new("flags.mk"), flags.as_bytes())?;

    let local = ["harness/hooks.cpp", "dut.cpp"].map(PathBuf::from);
    let mut sources: Vec<PathBuf> = runtime.iter().map(|file| include.join(file)).collect();
    sources.extend(local);
    for file in verilate::generated(&folder.path("model"))? {
        if file.extension().is_some_and(|e| e == "cpp") {
            sources.push(Path::new("model").join(file.file_name().unwrap_or_default()));
        }
    }
    let mut rules = String::new();
    let mut objects = Vec::new();
    for source in &sources {
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        let level = if runs_once(source) { "SLOW" } else { "FAST" };
        writeln!(
            rules,
            "{name}.o: {source} flags.mk\n\t$(CXX) $(FLAGS) $({level}) -MMD -MP -c -o $@ $<",
            source = source.display()
        )
        .expect("a string takes all");
        objects.push(format!("{name}.o"));
    }
    let objects = objects.join(" ");
    let libraries: Vec<String> = (toolchain.libraries().iter())
        .map(|l| format!("-l{l}"))
        .collect();
    // What the object needs of the runtime is its own, not what else the process holds.
    Ok(format!(
        "include flags.mk\n\
         {OBJECT}: {objects}\n\
         \t$(CXX) -shared -pthread -Wl,-Bsymbolic -Wl,--no-undefined -o $@ {objects} {libraries}\n\
         {rules}-include *.d\n",
        libraries = libraries.join(" "),
    ))
}
