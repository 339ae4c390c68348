//! The protocol checkers by themselves (`cpp/probe.h`), for this crate's tests.

#[cxx::bridge(namespace = "ws")]
mod ffi {
    unsafe extern "C++" {
        include!("weightstream-sim/cpp/probe.h");

        type Probe;

        /// Checkers of an address, a write data and a response channel, `bytes` wide.
        fn make_probe(bytes: u32) -> UniquePtr<Probe>;

        /// A cycle of the address channel. Returns the broken rule, or nothing.
        #[allow(clippy::too_many_arguments)]
        fn addr(
            self: Pin<&mut Probe>,
            reset: bool,
            valid: bool,
            ready: bool,
            addr: u64,
            len: u8,
            size: u8,
            burst: u8,
        ) -> String;
        /// An address whose data is to come on the write data channel.
        fn data_address(self: Pin<&mut Probe>, addr: u64, len: u8) -> String;
        /// A cycle of the write data channel.
        fn data(
            self: Pin<&mut Probe>,
            reset: bool,
            valid: bool,
            ready: bool,
            fill: u8,
            strb: u64,
            last: bool,
        ) -> String;
        /// A response of `len` + 1 beats is due.
        fn reply_due(self: Pin<&mut Probe>, len: u8) -> String;
        /// A cycle of the response channel.
        fn reply(
            self: Pin<&mut Probe>,
            valid: bool,
            ready: bool,
            last: bool,
            payload: u64,
        ) -> String;
    }
}

pub use ffi::{Probe, make_probe};
