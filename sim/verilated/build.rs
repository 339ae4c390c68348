//! Finds Verilator and compiles its runtime.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, exit},
};

/// The oldest Verilator that the RTL and the harness are kept working with.
const OLDEST: (u32, u32) = (5, 6);

/// What runtime and models must agree on.
const DEFINES: [&str; 11] = [
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

fn main() {
    if let Err(message) = build() {
        println!("cargo::error={message}");
        exit(1);
    }
}

fn build() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed=VERILATOR");
    println!("cargo::rerun-if-changed=cpp");
    println!("cargo::rerun-if-changed=build.rs");

    let verilator = env::var("VERILATOR").unwrap_or_else(|_| "verilator".into());
    let banner = run(&verilator, &["--version"])?;
    let version = parse_version(&banner)
        .ok_or_else(|| format!("`{verilator} --version` says {banner:?}, not a version"))?;
    if version < OLDEST {
        return Err(format!(
            "`{verilator}` is version {}.{:03}; weightstream needs Verilator {}.{:03} or newer. Name another with the environment variable VERILATOR",
            version.0, version.1, OLDEST.0, OLDEST.1
        ));
    }

    let root = run(&verilator, &["--getenv", "VERILATOR_ROOT"])?;
    let include = Path::new(root.trim()).join("include");
    if !include.join("verilated.cpp").is_file() {
        return Err(format!(
            "`{verilator} --getenv VERILATOR_ROOT` says {:?}, but {} is not there",
            root.trim(),
            include.join("verilated.cpp").display()
        ));
    }
    let hooks = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("cpp");
    let includes = [include.clone(), include.join("vltstd"), hooks.clone()];

    let mut cc = cc::Build::new();
    cc.cpp(true).std("c++17").opt_level(3).warnings(false);
    cc.includes(&includes);
    cc.flag("-include").flag(hooks.join("hooks.h"));
    for define in DEFINES {
        let (name, value) = define.split_once('=').unwrap();
        cc.define(name, value);
    }
    for file in [
        "verilated.cpp",
        "verilated_fst_c.cpp",
        "verilated_threads.cpp",
    ] {
        cc.file(include.join(file));
    }
    cc.file(hooks.join("hooks.cpp"));
    cc.try_compile("weightstream_verilated").map_err(|e| {
        format!("cannot compile the runtime of Verilator {}.{:03} (FST tracing needs zlib's header, newer versions lz4's too): {e}", version.0, version.1)
    })?;

    println!("cargo::rustc-link-lib=z");
    if version >= (5, 40) {
        println!("cargo::rustc-link-lib=lz4");
    }
    println!("cargo::metadata=verilator={verilator}");
    println!("cargo::metadata=version={}.{:03}", version.0, version.1);
    println!(
        "cargo::metadata=include={}",
        env::join_paths(&includes)
            .map_err(|e| e.to_string())?
            .to_string_lossy()
    );
    println!("cargo::metadata=defines={}", DEFINES.join(" "));
    Ok(())
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
