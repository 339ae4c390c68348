//! A host on an AXI4-Lite port: one transfer a call, every channel with a delay of its own.

use std::fmt;

use proptest::prelude::*;
use weightstream_leaf::{Leaf, LeafError};

/// What goes on around the port, cycle by cycle: inputs before outputs settle, then a look at them.
pub trait Around {
    fn drive(&mut self, leaf: &mut Leaf) -> Result<(), LeafError>;
    fn sample(&mut self, leaf: &Leaf) -> Result<(), TestCaseError>;
}

/// Cycles until a VALID of the host rises (AW, W, AR) and until its READY does (B, R).
#[derive(Clone, Copy)]
pub struct Delays {
    pub aw: usize,
    pub w: usize,
    pub b: usize,
    pub ar: usize,
    pub r: usize,
}

impl fmt::Debug for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Delays { aw, w, b, ar, r } = self;
        write!(f, "delays aw {aw} w {w} b {b} ar {ar} r {r}")
    }
}

pub fn delays() -> impl Strategy<Value = Delays> {
    let delay = || prop_oneof![2 => Just(0usize), 1 => 0usize..8];
    (delay(), delay(), delay(), delay(), delay()).prop_map(|(aw, w, b, ar, r)| Delays {
        aw,
        w,
        b,
        ar,
        r,
    })
}

#[derive(Clone, Copy)]
pub struct Write {
    pub address: u32,
    pub data: u32,
    pub strobe: u8,
}

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Write {
            address,
            data,
            strobe,
        } = self;
        write!(f, "write {address:#x} = {data:#x}, strobe {strobe:#x}")
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Reply {
    pub data: u32,
    pub response: u64,
    /// Cycle in which the request's last part was accepted.
    pub accepted: u64,
    /// Cycle in which the reply was first there.
    pub replied: u64,
}

/// A reply channel: where VALID once is, it stays until READY, and what it carries with it.
#[derive(Default)]
struct Wait {
    seen: Option<(u64, Vec<u64>)>,
}

impl Wait {
    /// Whether the reply is taken in this cycle.
    fn cycle(
        &mut self,
        cycle: u64,
        valid: bool,
        ready: bool,
        payload: Vec<u64>,
    ) -> Result<bool, TestCaseError> {
        if let Some((_, before)) = &self.seen {
            prop_assert!(valid, "VALID fell before READY");
            prop_assert_eq!(before, &payload, "a reply changed before READY");
        } else if valid {
            self.seen = Some((cycle, payload));
        }
        Ok(valid && ready)
    }
}

/// The port of a module inside, whose signals have the directions for a suffix and no prefix.
pub const LOWRISC: &str = "";

fn signal_name(port: &str, signal: &str) -> String {
    if port != LOWRISC {
        return format!("{port}_{signal}");
    }
    let ours = ["awaddr", "awvalid", "wdata", "wstrb", "wvalid", "bready"];
    let ours = ours.contains(&signal) || ["araddr", "arvalid", "rready"].contains(&signal);
    format!("{signal}{}", if ours { "_i" } else { "_o" })
}

/// One write and one read, either or both, over the port with the prefix `port`.
pub fn transfer(
    leaf: &mut Leaf,
    port: &str,
    write: Option<Write>,
    read: Option<u32>,
    delays: Delays,
    around: &mut impl Around,
) -> Result<(Option<Reply>, Option<Reply>), TestCaseError> {
    let name = |signal: &str| signal_name(port, signal);
    let (mut aw_done, mut w_done) = (write.is_none(), write.is_none());
    let mut ar_done = read.is_none();
    let (mut write_accepted, mut read_accepted) = (0, 0);
    let (mut b_wait, mut r_wait) = (Wait::default(), Wait::default());
    let (mut write_reply, mut read_reply) = (None, None);
    if let Some(write) = write {
        leaf.set(&name("awaddr"), write.address)?;
        leaf.set(&name("wdata"), write.data)?;
        leaf.set(&name("wstrb"), write.strobe)?;
    }
    if let Some(address) = read {
        leaf.set(&name("araddr"), address)?;
    }
    for n in 0.. {
        let aw = !aw_done && n >= delays.aw;
        let w = !w_done && n >= delays.w;
        let ar = !ar_done && n >= delays.ar;
        let b = write.is_some() && write_reply.is_none() && n >= delays.b;
        let r = read.is_some() && read_reply.is_none() && n >= delays.r;
        for (signal, level) in [
            ("awvalid", aw),
            ("wvalid", w),
            ("arvalid", ar),
            ("bready", b),
            ("rready", r),
        ] {
            leaf.set(&name(signal), level)?;
        }
        around.drive(leaf)?;
        leaf.eval()?;
        let cycle = leaf.cycle();
        let bvalid = leaf.is(&name("bvalid"))?;
        let rvalid = leaf.is(&name("rvalid"))?;
        prop_assert!(
            !bvalid || (aw_done && w_done && write_reply.is_none()),
            "a response without a write"
        );
        prop_assert!(
            !rvalid || (ar_done && read_reply.is_none()),
            "data without a read"
        );
        if write.is_some()
            && write_reply.is_none()
            && b_wait.cycle(cycle, bvalid, b, vec![leaf.get(&name("bresp"))?])?
        {
            write_reply = Some(Reply {
                data: 0,
                response: leaf.get(&name("bresp"))?,
                accepted: write_accepted,
                replied: b_wait.seen.as_ref().map_or(0, |seen| seen.0),
            });
        }
        let payload = vec![leaf.get(&name("rdata"))?, leaf.get(&name("rresp"))?];
        if read.is_some()
            && read_reply.is_none()
            && r_wait.cycle(cycle, rvalid, r, payload.clone())?
        {
            read_reply = Some(Reply {
                data: payload[0] as u32,
                response: payload[1],
                accepted: read_accepted,
                replied: r_wait.seen.as_ref().map_or(0, |seen| seen.0),
            });
        }
        if aw && leaf.is(&name("awready"))? {
            aw_done = true;
            write_accepted = cycle;
        }
        if w && leaf.is(&name("wready"))? {
            w_done = true;
            write_accepted = cycle;
        }
        if ar && leaf.is(&name("arready"))? {
            ar_done = true;
            read_accepted = cycle;
        }
        around.sample(leaf)?;
        leaf.tick()?;
        if write.is_some() == write_reply.is_some() && read.is_some() == read_reply.is_some() {
            break;
        }
        prop_assert!(n < 500, "no reply to write {:?}, read {:?}", write, read);
    }
    for signal in ["awvalid", "wvalid", "arvalid", "bready", "rready"] {
        leaf.set(&name(signal), false)?;
    }
    Ok((write_reply, read_reply))
}
