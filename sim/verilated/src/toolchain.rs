//! Which Verilator there is, and what its models need.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// The oldest Verilator that the RTL and the harness are kept working with.
pub const OLDEST: (u32, u32) = (5, 6);

/// What runtime and models must agree on.
pub const DEFINES: [&str; 11] = [
    "VERILATOR=1",
    "VM_COVERAGE=0",
    "VM_SC=0",
    "VM_TRACE=1",
    "VM_TRACE_FST=1",
    "VM_TRACE_VCD=0",
    "VL_TIME_CONTEXT=1",
    "VL_USER_FINISH=1",
    "VL_USER_STOP=1",
    "VL_USER_FATAL=1",
    "VL_USER_WARN=1",
];

/// The files of the runtime that single-threaded models with FST traces need.
pub const RUNTIME: [&str; 3] = [
    "verilated.cpp",
    "verilated_fst_c.cpp",
    "verilated_threads.cpp",
];

/// And that of models that count coverage.
#[allow(
    dead_code,
    reason = "the build script, which shares this file, builds none"
)]
pub const COVERAGE_RUNTIME: &str = "verilated_cov.cpp";

/// An installed Verilator.
pub struct Toolchain {
    /// The program, as it is called.
    pub program: String,
    /// Major and minor.
    pub version: (u32, u32),
    /// The folder of `verilated.h` and of the runtime's sources.
    pub include: PathBuf,
}

impl Toolchain {
    /// The Verilator that the environment variable `VERILATOR` names, or the one on the `PATH`.
    ///
    /// # Errors
    /// A message for the user: there is none, it is too old, or its runtime is missing.
    pub fn find() -> Result<Toolchain, String> {
        let program = env::var("VERILATOR").unwrap_or_else(|_| "verilator".into());
        let banner = run(&program, &["--version"])?;
        let version = parse_version(&banner)
            .ok_or_else(|| format!("`{program} --version` says {banner:?}, not a version"))?;
        if version < OLDEST {
            return Err(format!(
                "`{program}` is version {}.{:03}; weightstream needs Verilator {}.{:03} or newer. Name another with the environment variable VERILATOR",
                version.0, version.1, OLDEST.0, OLDEST.1
            ));
        }
        let root = run(&program, &["--getenv", "VERILATOR_ROOT"])?;
        let include = Path::new(root.trim()).join("include");
        if !include.join("verilated.cpp").is_file() {
            return Err(format!(
                "`{program} --getenv VERILATOR_ROOT` says {:?}, but {} is not there",
                root.trim(),
                include.join("verilated.cpp").display()
            ));
        }
        Ok(Toolchain {
            program,
            version,
            include,
        })
    }

    /// What the runtime is linked with.
    pub fn libraries(&self) -> &'static [&'static str] {
        if self.version >= (5, 40) {
            &["z", "lz4"]
        } else {
            &["z"]
        }
    }
}

fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output().map_err(|e| {
        format!("cannot run `{program}` ({e}); weightstream's RTL target needs Verilator 5.006 or newer (Debian: apt-get install verilator), or build without the feature `rtl`")
    })?;
    if !output.status.success() {
        return Err(format!(
            "`{program} {}` failed: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `Verilator 5.006 2023-01-22 …` to (5, 6).
fn parse_version(banner: &str) -> Option<(u32, u32)> {
    let number = banner.strip_prefix("Verilator ")?.split(' ').next()?;
    let (major, minor) = number.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
