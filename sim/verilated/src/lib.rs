//! Verilator's C++ runtime, compiled once.
//!
//! Its build script finds Verilator and hands on what a crate with
//! Verilated models needs to compile them against the same runtime: `DEP_WEIGHTSTREAM_VERILATED_*`
//! with `VERILATOR` (the program), `VERSION`, `INCLUDE` (the include folders, joined as in `PATH`)
//! and `DEFINES` (space-separated). The hooks in `cpp/hooks.h` turn `$stop`, `$fatal` and failed
//! assertions into a C++ exception instead of the end of the process.

pub mod toolchain;
