//! What can go wrong in a simulation.

use std::path::{Path, PathBuf};

use crate::{Channel, bridge::ffi::FaultData};

/// An error of a simulation. Cycles are those of [`crate::Sim::now`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// This binary holds no such model.
    #[error("no configuration {name:?} in this build; it has {}", known.join(", "))]
    UnknownConfig { name: String, known: Vec<String> },

    /// A shared object holds no model that this binary can run.
    #[error("{}: {message}", file.display())]
    Dut { file: PathBuf, message: String },

    /// An option is out of its range.
    #[error("simulation option {option} is {value}: {rule}")]
    Option {
        option: &'static str,
        value: String,
        rule: &'static str,
    },

    /// Nothing moved for [`crate::SimOptions::watchdog`] cycles. `channel` is where a transfer
    /// waits or a response is missing; none where nothing is under way at all.
    #[error("{}", watchdog_message(.channel, .cycle, .cycles))]
    Watchdog {
        channel: Option<Channel>,
        cycle: u64,
        cycles: u64,
    },

    /// The RTL broke a rule of AXI. The simulation cannot go on.
    #[error("AXI protocol violated on {channel} in cycle {cycle}: {message}")]
    Protocol {
        channel: Channel,
        cycle: u64,
        message: String,
    },

    /// The RTL stopped itself: a failed assertion, `$fatal`, `$stop` or `$finish`. The simulation
    /// cannot go on.
    #[error("{file}:{line}: the RTL stopped in cycle {cycle}: {message}")]
    Assertion {
        file: String,
        line: u32,
        cycle: u64,
        message: String,
    },

    /// The trace file cannot be written.
    #[error("cannot trace to {}: {message}", path.display())]
    Trace { path: PathBuf, message: String },

    /// The harness failed, for want of memory for instance.
    #[error("the simulation harness failed in cycle {cycle}: {message}")]
    Internal { cycle: u64, message: String },
}

fn watchdog_message(channel: &Option<Channel>, cycle: &u64, cycles: &u64) -> String {
    match channel {
        Some(channel) => {
            format!("no progress for {cycles} cycles, in cycle {cycle}: stuck at {channel}")
        }
        None => {
            format!("no interrupt and no transfer under way for {cycles} cycles, in cycle {cycle}")
        }
    }
}

impl SimError {
    pub(crate) fn from_fault(fault: FaultData, watchdog: u64, trace: &Path) -> SimError {
        let FaultData {
            kind,
            channel,
            cycle,
            line,
            file,
            message,
        } = fault;
        let channel = Channel::from_index(channel);
        // The order is that of `FaultKind` in cpp/fault.h.
        match (kind, channel) {
            (0, channel) => SimError::Watchdog {
                channel,
                cycle,
                cycles: watchdog,
            },
            (1, Some(channel)) => SimError::Protocol {
                channel,
                cycle,
                message,
            },
            (2, _) => SimError::Assertion {
                file,
                line,
                cycle,
                message,
            },
            (3, _) => SimError::Trace {
                path: trace.to_owned(),
                message,
            },
            _ => SimError::Internal { cycle, message },
        }
    }
}
