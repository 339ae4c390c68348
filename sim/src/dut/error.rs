//! Why no shared object was made.

use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum DutError {
    #[error("{option} is {value:?}: it {rule}")]
    Option {
        option: &'static str,
        value: String,
        rule: &'static str,
    },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// No Verilator, or one that is too old.
    #[error("{0}")]
    Verilator(String),
    /// Verilator's own messages went before.
    #[error("Verilator refuses module {top}")]
    Refused { top: String },
    /// A warning about a width in the shim.
    #[error("a port of {top} does not fit a stream of {bus_width} bits: {message}")]
    Port {
        top: String,
        bus_width: u32,
        message: String,
    },
    /// The compiler's messages went before.
    #[error("the C++ of module {top} could not be compiled (make ended with {status})")]
    Compile {
        top: String,
        status: std::process::ExitStatus,
    },
}
