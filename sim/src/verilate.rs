//! How the models are made, in the build of this crate and of a design under test.

use std::path::Path;

/// Verilator's arguments but for the design's.
pub const ARGUMENTS: [&str; 9] = [
    "--cc",
    "--assert",
    "--trace-fst",
    "-O3",
    "-Wno-fatal",
    "--x-assign",
    "fast",
    "--x-initial",
    "unique",
];

/// Whether a generated file holds what runs once, construction and the set-up of traces, which is
/// half of the code and not worth the optimiser's time.
pub fn runs_once(file: &Path) -> bool {
    let name = file.to_string_lossy();
    name.contains("__Slow") || name.contains("__Syms")
}
