//! From SystemVerilog to C++.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use weightstream_verilated::toolchain::Toolchain;

use super::{Dut, DutError, Folder, Part, io_error};
use crate::verilate::ARGUMENTS;

const SHIM: &str = include_str!("../../dut/ws_dut_shim.sv.in");
const SHIM_NAME: &str = "ws_dut_shim";

/// Verilates the design into `model/` of the build folder.
pub fn verilate(
    dut: &Dut,
    toolchain: &Toolchain,
    folder: &Folder,
    say: &mut impl FnMut(&str),
) -> Result<(), DutError> {
    // Verilator writes all files anew; those that are as before keep their time.
    let fresh = folder.path("fresh");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(io_error(&fresh))?;
    }
    let mut command = Command::new(&toolchain.program);
    command
        .args(ARGUMENTS)
        .args(["--top-module", "weightstream", "--prefix", "Vdut", "-Mdir"])
        .arg(&fresh);
    if dut.coverage {
        command.args(["--coverage-line", "--coverage-toggle"]);
    }
    match dut.part {
        Part::Kernel { bus_width } => {
            let shim = format!("{SHIM_NAME}.sv");
            folder.write(Path::new(&shim), shim_source(dut).as_bytes())?;
            let rtl = folder.path("rtl");
            command
                .arg(format!("-GBusWidth={bus_width}"))
                .arg(format!("-DWS_KERNEL={SHIM_NAME}"))
                .arg("-F")
                .arg(rtl.join("dma.f"))
                .arg(rtl.join("ws_axil_demux.sv"))
                .arg(rtl.join("weightstream.sv"))
                .arg(folder.path(&shim));
        }
        Part::Accelerator => {
            for (name, value) in dut.parameters {
                command.arg(format!("-G{name}={value}"));
            }
        }
    }
    for filelist in dut.filelists {
        command.arg("-F").arg(filelist);
    }
    let output = command
        .output()
        .map_err(io_error(Path::new(&toolchain.program)))?;
    let text = String::from_utf8_lossy(&output.stderr);
    say(&text);
    if !output.status.success() {
        return Err(DutError::Refused {
            top: dut.top.into(),
        });
    }
    if let Part::Kernel { bus_width } = dut.part {
        let shim = format!("{SHIM_NAME}.sv");
        let of_port = |line: &&str| line.starts_with("%Warning-WIDTH") && line.contains(&shim);
        if let Some(line) = text.lines().find(of_port) {
            return Err(DutError::Port {
                top: dut.top.into(),
                bus_width,
                message: line.split_once(": ").map_or(line, |l| l.1).into(),
            });
        }
    }
    update(&fresh, &folder.path("model"))
}

fn shim_source(dut: &Dut) -> String {
    let parameters: Vec<String> = dut
        .parameters
        .iter()
        .map(|(name, value)| format!(".{name}({value})"))
        .collect();
    SHIM.replace("@TOP@", dut.top)
        .replace("@PARAMETERS@", &parameters.join(", "))
}

/// Makes the C++ in `to` that of `from`, and touches what differs alone.
fn update(from: &Path, to: &Path) -> Result<(), DutError> {
    fs::create_dir_all(to).map_err(io_error(to))?;
    let new = generated(from)?;
    for old in generated(to)? {
        if !from.join(old.file_name().unwrap_or_default()).exists() {
            fs::remove_file(&old).map_err(io_error(&old))?;
        }
    }
    for file in new {
        let target = to.join(file.file_name().unwrap_or_default());
        let contents = fs::read(&file).map_err(io_error(&file))?;
        if fs::read(&target).is_ok_and(|old| old == contents) {
            continue;
        }
        fs::write(&target, contents).map_err(io_error(&target))?;
    }
    Ok(())
}

/// The C++ sources and headers in a folder, sorted.
pub fn generated(dir: &Path) -> Result<Vec<PathBuf>, DutError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(io_error(dir))? {
        let path = entry.map_err(io_error(dir))?.path();
        if path.extension().is_some_and(|e| e == "cpp" || e == "h") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
