//! The streaming kernel's own registers (`docs/registers.md`), as offsets from its window's base.

/// Where the kernel's window starts in the address map of `rtl/weightstream.sv`; the DMA's is at 0.
pub const WINDOW: u32 = 0x1000;

pub const ID: u32 = 0x00;
pub const VERSION: u32 = 0x04;
pub const CAP_BUS: u32 = 0x08;
pub const CAP_MAX_K: u32 = 0x0C;
pub const CAP_MAX_COLS: u32 = 0x10;
pub const CAP_TYPES: u32 = 0x14;
pub const CTRL: u32 = 0x18;
pub const STATUS: u32 = 0x1C;
pub const ERROR: u32 = 0x20;

/// Counters: 64 bits, low word first.
pub const CYCLES: u32 = 0x40;
pub const BUSY_CYCLES: u32 = 0x48;
pub const STALL_IN: u32 = 0x50;
pub const STALL_OUT: u32 = 0x58;
pub const BEATS_IN: u32 = 0x60;
pub const BEATS_OUT: u32 = 0x68;
pub const JOBS: u32 = 0x70;

/// What `ID` reads: the bytes `WWSK`.
pub const ID_VALUE: u32 = 0x4B53_5757;
/// The major version this code drives (`VERSION` bits 31:16).
pub const VERSION_MAJOR: u32 = 1;
/// The minor version this code was written with (`VERSION` bits 15:0).
pub const VERSION_MINOR: u32 = 0;

pub const CTRL_SOFT_RESET: u32 = 1 << 0;
pub const CTRL_CLEAR: u32 = 1 << 1;
pub const STATUS_BUSY: u32 = 1 << 0;
