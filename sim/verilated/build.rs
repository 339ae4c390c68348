//! Finds Verilator and compiles its runtime.

use std::{env, path::PathBuf, process::exit};

#[path = "src/toolchain.rs"]
mod toolchain;

use toolchain::{DEFINES, RUNTIME, Toolchain};

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

    let found = Toolchain::find()?;
    let hooks = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("cpp");
    let include = &found.include;
    let includes = [include.clone(), include.join("vltstd"), hooks.clone()];

    let mut cc = cc::Build::new();
    cc.cpp(true).std("c++17").opt_level(3).warnings(false);
    cc.includes(&includes);
    cc.flag("-include").flag(hooks.join("hooks.h"));
    for define in DEFINES {
        let (name, value) = define.split_once('=').unwrap();
        cc.define(name, value);
    }
    for file in RUNTIME {
        cc.file(include.join(file));
    }
    cc.file(hooks.join("hooks.cpp"));
    cc.try_compile("weightstream_verilated").map_err(|e| {
        format!("cannot compile the runtime of Verilator {}.{:03} (FST tracing needs zlib's header, newer versions lz4's too): {e}", found.version.0, found.version.1)
    })?;

    for library in found.libraries() {
        println!("cargo::rustc-link-lib={library}");
    }
    println!("cargo::metadata=verilator={}", found.program);
    println!(
        "cargo::metadata=version={}.{:03}",
        found.version.0, found.version.1
    );
    println!(
        "cargo::metadata=include={}",
        env::join_paths(&includes)
            .map_err(|e| e.to_string())?
            .to_string_lossy()
    );
    println!("cargo::metadata=defines={}", DEFINES.join(" "));
    Ok(())
}
