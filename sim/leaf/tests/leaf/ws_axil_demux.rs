//! One AXI4-Lite port to two windows of 4 KiB.

use std::collections::HashMap;

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf, LeafError};

use crate::axi_lite::{Around, Delays, Write, delays, transfer};

/// Readiness and delay of a window's channels, cycle by cycle, over and over.
#[derive(Debug, Clone)]
struct Timing {
    ready: Vec<[bool; 3]>,
    reply: usize,
}

fn timing() -> impl Strategy<Value = Timing> {
    (prop::collection::vec(any::<[bool; 3]>(), 1..6), 0usize..4).prop_map(|(mut ready, reply)| {
        ready[0] = [true; 3];
        Timing { ready, reply }
    })
}

/// A memory behind one window; answers with a response of its own.
struct Window {
    timing: Timing,
    response: u64,
    words: HashMap<u64, u32>,
    address: Option<u64>,
    data: Option<(u32, u64)>,
    write_reply: Option<usize>,
    read_reply: Option<(usize, u32)>,
    writes: usize,
    reads: usize,
}

struct Windows {
    cycle: usize,
    windows: Vec<Window>,
}

impl Windows {
    fn each(&self, level: impl Fn(&Window) -> bool) -> u64 {
        let bits = self.windows.iter().enumerate();
        bits.map(|(i, window)| u64::from(level(window)) << i).sum()
    }
}

impl Around for Windows {
    fn drive(&mut self, leaf: &mut Leaf) -> Result<(), LeafError> {
        self.cycle += 1;
        let ready = |window: &Window, channel| {
            window.timing.ready[self.cycle % window.timing.ready.len()][channel]
        };
        leaf.set(
            "m_axi_awready",
            self.each(|w| w.address.is_none() && ready(w, 0)),
        )?;
        leaf.set(
            "m_axi_wready",
            self.each(|w| w.data.is_none() && ready(w, 1)),
        )?;
        leaf.set(
            "m_axi_arready",
            self.each(|w| w.read_reply.is_none() && ready(w, 2)),
        )?;
        leaf.set("m_axi_bvalid", self.each(|w| w.write_reply == Some(0)))?;
        leaf.set(
            "m_axi_rvalid",
            self.each(|w| matches!(w.read_reply, Some((0, _)))),
        )?;
        let mut data = Bits::zero(64);
        let mut response = 0;
        for (i, window) in self.windows.iter_mut().enumerate() {
            response |= window.response << (2 * i);
            // Data while nothing is valid is not 0.
            let word = window.read_reply.map_or(0xDEAD_BEEF, |(_, word)| word);
            data = data.with(32 * i, 32, word.into());
            if let Some(left) = &mut window.write_reply {
                *left = left.saturating_sub(1);
            }
            if let Some((left, _)) = &mut window.read_reply {
                *left = left.saturating_sub(1);
            }
        }
        leaf.set_bits("m_axi_rdata", &data)?;
        leaf.set("m_axi_bresp", response)?;
        leaf.set("m_axi_rresp", response)
    }

    fn sample(&mut self, leaf: &Leaf) -> Result<(), TestCaseError> {
        let fire = |channel: &str| -> Result<u64, LeafError> {
            Ok(leaf.get(&format!("m_axi_{channel}valid"))?
                & leaf.get(&format!("m_axi_{channel}ready"))?)
        };
        let (aw, w, b, ar, r) = (fire("aw")?, fire("w")?, fire("b")?, fire("ar")?, fire("r")?);
        for (i, window) in self.windows.iter_mut().enumerate() {
            let here = |mask: u64| mask >> i & 1 == 1;
            if here(b) {
                window.write_reply = None;
                (window.address, window.data) = (None, None);
            }
            if here(r) {
                window.read_reply = None;
            }
            if here(aw) {
                window.address = Some(leaf.get("m_axi_awaddr")?);
            }
            if here(w) {
                window.data = Some((leaf.get("m_axi_wdata")? as u32, leaf.get("m_axi_wstrb")?));
            }
            if (here(aw) || here(w))
                && let (Some(address), Some((data, strobe))) = (window.address, window.data)
            {
                prop_assert_eq!(strobe, 0xF);
                window.words.insert(address, data);
                window.writes += 1;
                window.write_reply = Some(1 + window.timing.reply);
            }
            if here(ar) {
                let address = leaf.get("m_axi_araddr")?;
                let word = window
                    .words
                    .get(&address)
                    .copied()
                    .unwrap_or(address as u32);
                window.reads += 1;
                window.read_reply = Some((1 + window.timing.reply, word));
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
struct Op {
    write: Option<(u32, u32)>,
    read: Option<u32>,
    delays: Delays,
}

/// A write, a read, or both at once, in a window, just outside, or anywhere.
fn op() -> impl Strategy<Value = Op> {
    let address = || {
        prop_oneof![
            4 => (0u32..2, 0u32..4).prop_map(|(window, word)| 0x1000 * window + 4 * word),
            1 => prop::sample::select(vec![0xFFCu32, 0x1FFC, 0x2000, 0xF004]),
            1 => (0u32..0x4000).prop_map(|word| 4 * word),
        ]
    };
    (
        prop::option::of((address(), any::<u32>())),
        prop::option::of(address()),
        delays(),
    )
        .prop_map(|(write, read, delays)| {
            // Both at once must not meet in one word: either order is right.
            let read = read.filter(|&read| write.is_none_or(|write| write.0 != read));
            Op {
                write,
                read,
                delays,
            }
        })
}

proptest! {
    #[test]
    fn each_address_to_its_window(
        ops in prop::collection::vec(op(), 1..20),
        timings in [timing(), timing()],
    ) {
        let mut leaf = Leaf::new("ws_axil_demux")?;
        leaf.reset()?;
        // OKAY from window 0, SLVERR from window 1: each answer is that of its window.
        let windows = timings.into_iter().zip([0, 2]).map(|(timing, response)| Window {
            timing, response, words: HashMap::new(), address: None, data: None,
            write_reply: None, read_reply: None, writes: 0, reads: 0,
        });
        let mut around = Windows { cycle: 0, windows: windows.collect() };
        let mut words: HashMap<u32, u32> = HashMap::new();
        let response = |address: u32| if address >> 12 == 1 { 2 } else { 0 };
        let mut counts = [[0; 2]; 2];
        for op in ops {
            let write = op.write.map(|(address, data)| Write { address, data, strobe: 0xF });
            let (written, read) = transfer(&mut leaf, "s_axi", write, op.read, op.delays, &mut around)?;
            if let (Some((address, data)), Some(reply)) = (op.write, written) {
                prop_assert_eq!(reply.response, response(address), "write of {:#x}", address);
                words.insert(address, data);
                if address < 0x2000 {
                    counts[address as usize >> 12][0] += 1;
                }
            }
            if let (Some(address), Some(reply)) = (op.read, read) {
                let own = if address < 0x2000 { address & 0xFFF } else { 0 };
                let expected = words.get(&address).copied().filter(|_| address < 0x2000).unwrap_or(own);
                prop_assert_eq!(reply.data, expected, "read of {:#x}", address);
                prop_assert_eq!(reply.response, response(address), "read of {:#x}", address);
                if address < 0x2000 {
                    counts[address as usize >> 12][1] += 1;
                }
            }
        }
        // Nothing arrived twice, or where it does not belong.
        let seen: Vec<[usize; 2]> = around.windows.iter().map(|w| [w.writes, w.reads]).collect();
        prop_assert_eq!(seen, counts);
    }
}
