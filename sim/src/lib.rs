//! The accelerator's RTL, simulated cycle by cycle with Verilator.
//!
//! The clock loop, the memory behind the AXI ports and the protocol checks are C++, reached in
//! calls that run many cycles. Every error of the RTL or the run is a [`SimError`]; nothing ends
//! the process.

mod bridge;
mod channel;
pub mod dut;
mod error;
mod options;
mod sim;
mod verilate;

#[cfg(feature = "testbench")]
#[doc(hidden)]
pub mod probe;

// Links the runtime.
use weightstream_verilated as _;

pub use channel::Channel;
pub use error::SimError;
pub use options::{DeviceMemory, SimOptions};
pub use sim::{Beat, ErrorResponse, Lines, Sim, configs};
