//! The memory behind an accelerator's ports.

use crate::target::Conditions;

/// What it is like.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// A fixed latency, with the limits and stalls given.
    Fixed(Conditions),
}
