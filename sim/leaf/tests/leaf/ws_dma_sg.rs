//! The scatter-gather port: both channels' descriptor reads and status writes on one AXI master.

use std::collections::VecDeque;

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf};

use crate::channel::{DEC_ERR, Pattern, SLV_ERR, pattern};

const CHANNELS: [&str; 2] = ["mm2s", "s2mm"];
const STATUS: u64 = 0x1C;

/// A status word for a descriptor, and whether it ends a packet.
#[derive(Debug, Clone, Copy)]
struct Update {
    pointer: u64,
    status: u32,
    eof: bool,
}

fn pointer() -> impl Strategy<Value = u64> {
    0..1u64 << 58
}

#[derive(Debug, Clone)]
struct Work {
    reads: Vec<u64>,
    updates: Vec<Update>,
    ask: Pattern,
    tell: Pattern,
}

fn work() -> impl Strategy<Value = Work> {
    let update =
        (pointer(), any::<u32>(), any::<bool>()).prop_map(|(pointer, status, eof)| Update {
            pointer,
            status,
            eof,
        });
    (
        prop::collection::vec(pointer(), 0..20),
        prop::collection::vec(update, 0..20),
        pattern(),
        pattern(),
    )
        .prop_map(|(reads, updates, ask, tell)| Work {
            reads,
            updates,
            ask,
            tell,
        })
}

#[derive(Debug, Clone)]
struct Timing {
    ar: Pattern,
    r: Pattern,
    aw: Pattern,
    w: Pattern,
    b: Pattern,
    latency: u64,
    /// One address in so many answers with an error.
    errors: u64,
}

fn timing() -> impl Strategy<Value = Timing> {
    let patterns = (pattern(), pattern(), pattern(), pattern(), pattern());
    (patterns, 0u64..40, 2u64..12).prop_map(|((ar, r, aw, w, b), latency, errors)| Timing {
        ar,
        r,
        aw,
        w,
        b,
        latency,
        errors,
    })
}

/// What memory holds and answers, made from the address.
fn memory(address: u64) -> u32 {
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

impl Timing {
    fn response(&self, address: u64) -> u64 {
        match memory(!address) as u64 % self.errors {
            0 => 2,
            1 => 3,
            _ => 0,
        }
    }
}

fn error(response: u64) -> u64 {
    [0, 0, SLV_ERR, DEC_ERR][response as usize]
}

/// An AXI request channel: what is there stays until it is taken.
#[derive(Default)]
struct Held(Option<Bits>);

impl Held {
    fn cycle(&mut self, valid: bool, ready: bool, payload: Bits) -> Result<bool, TestCaseError> {
        if let Some(held) = self.0.take() {
            prop_assert!(valid, "VALID fell before READY");
            prop_assert_eq!(held, payload.clone(), "the payload changed before READY");
        }
        if valid && !ready {
            self.0 = Some(payload);
        }
        Ok(valid && ready)
    }
}

fn update_bits(update: Update) -> Bits {
    Bits::zero(91)
        .with(0, 32, update.status.into())
        .with(32, 1, update.eof.into())
        .with(33, 58, update.pointer.into())
}

proptest! {
    #[test]
    fn both_channels_are_served(mm2s in work(), s2mm in work(), t in timing()) {
        let work = [mm2s, s2mm];
        let mut leaf = Leaf::new("ws_dma_sg")?;
        leaf.reset()?;
        let (mut ar, mut aw, mut w) = (Held::default(), Held::default(), Held::default());
        let (mut asked, mut told) = ([0; 2], [0; 2]);
        // Reads under way: address, next word, when it may come.
        let mut reads: VecDeque<(u64, u64, u64)> = VecDeque::new();
        let (mut addresses, mut words) = (VecDeque::new(), VecDeque::new());
        let mut replies: VecDeque<(u64, u64)> = VecDeque::new();
        let mut memory_writes = Vec::new();
        let (mut came, mut retired) = ([0; 2], [0; 2]);
        let (mut r_valid, mut b_valid) = (false, false);
        let mut idle = 0;
        while idle < 60 {
            let now = leaf.cycle();
            prop_assert!(now < 20_000, "stuck: {:?} {:?} {:?} {:?}", asked, came, told, retired);
            for (c, name) in CHANNELS.iter().enumerate() {
                let ask = work[c].reads.get(asked[c]).filter(|_| work[c].ask.at(now));
                leaf.set(&format!("{name}_req_valid_i"), ask.is_some())?;
                if let Some(&pointer) = ask {
                    leaf.set(&format!("{name}_req_ptr_i"), pointer)?;
                }
                let tell = work[c].updates.get(told[c]).filter(|_| work[c].tell.at(now));
                leaf.set(&format!("{name}_update_valid_i"), tell.is_some())?;
                if let Some(&update) = tell {
                    leaf.set_bits(&format!("{name}_update_i"), &update_bits(update))?;
                }
            }
            leaf.set("arready_i", t.ar.at(now))?;
            leaf.set("awready_i", t.aw.at(now))?;
            leaf.set("wready_i", t.w.at(now))?;
            r_valid |= reads.front().is_some_and(|read| read.2 <= now) && t.r.at(now);
            leaf.set("rvalid_i", r_valid)?;
            if let Some(&(address, word, _)) = reads.front().filter(|_| r_valid) {
                let address = address + 4 * word;
                leaf.set("rdata_i", memory(address))?;
                leaf.set("rresp_i", t.response(address))?;
                leaf.set("rlast_i", word == 7)?;
            }
            b_valid |= replies.front().is_some_and(|reply| reply.1 <= now) && t.b.at(now);
            leaf.set("bvalid_i", b_valid)?;
            if let Some(&(response, _)) = replies.front().filter(|_| b_valid) {
                leaf.set("bresp_i", response)?;
            }
            leaf.eval()?;

            // What the channels see.
            for (c, name) in CHANNELS.iter().enumerate() {
                let port = |signal: &str| format!("{name}_{signal}");
                let ask = leaf.is(&port("req_valid_i"))? && leaf.is(&port("req_ready_o"))?;
                asked[c] += usize::from(ask);
                let tell = leaf.is(&port("update_valid_i"))? && leaf.is(&port("update_ready_o"))?;
                told[c] += usize::from(tell);
                if leaf.is(&port("word_valid_o"))? {
                    let pointer = work[c].reads[came[c] / 8];
                    let address = (pointer << 6) + 4 * (came[c] as u64 % 8);
                    prop_assert_eq!(leaf.get("word_ptr_o")?, pointer);
                    prop_assert_eq!(leaf.get("word_o")?, u64::from(memory(address)));
                    prop_assert_eq!(leaf.get("word_err_o")?, error(t.response(address)));
                    came[c] += 1;
                }
                if leaf.is(&port("retire_o"))? {
                    let update = work[c].updates[retired[c]];
                    let address = (update.pointer << 6) + STATUS;
                    prop_assert_eq!(leaf.get("retire_ptr_o")?, update.pointer);
                    prop_assert_eq!(leaf.is("retire_eof_o")?, update.eof);
                    prop_assert_eq!(leaf.get("retire_err_o")?, error(t.response(address)));
                    retired[c] += 1;
                }
            }

            // The memory.
            let mut moved = false;
            let payload = leaf.get_bits("araddr_o")?;
            if ar.cycle(leaf.is("arvalid_o")?, leaf.is("arready_i")?, payload)? {
                reads.push_back((leaf.get("araddr_o")?, 0, now + 1 + t.latency));
                moved = true;
            }
            let payload = leaf.get_bits("awaddr_o")?;
            if aw.cycle(leaf.is("awvalid_o")?, leaf.is("awready_i")?, payload)? {
                addresses.push_back(leaf.get("awaddr_o")?);
                moved = true;
            }
            let payload = leaf.get_bits("wdata_o")?;
            if w.cycle(leaf.is("wvalid_o")?, leaf.is("wready_i")?, payload)? {
                words.push_back(leaf.get("wdata_o")? as u32);
                moved = true;
            }
            while !addresses.is_empty() && !words.is_empty() {
                let (address, word) = (addresses.pop_front().unwrap(), words.pop_front().unwrap());
                memory_writes.push((address, word));
                replies.push_back((t.response(address), now + 1 + t.latency));
            }
            if r_valid && leaf.is("rready_o")? {
                reads[0].1 += 1;
                if reads[0].1 == 8 {
                    reads.pop_front();
                }
                r_valid = false;
                moved = true;
            }
            if b_valid && leaf.is("bready_o")? {
                replies.pop_front();
                b_valid = false;
                moved = true;
            }
            let waits = (0..2).any(|c| {
                asked[c] < work[c].reads.len() || told[c] < work[c].updates.len()
            }) || !reads.is_empty() || !replies.is_empty();
            idle = if moved || waits { 0 } else { idle + 1 };
            leaf.tick()?;
        }
        for c in 0..2 {
            prop_assert_eq!(came[c], 8 * work[c].reads.len(), "words of channel {}", c);
            prop_assert_eq!(retired[c], work[c].updates.len(), "statuses of channel {}", c);
        }
        let mut expected: Vec<(u64, u32)> = work
            .iter()
            .flat_map(|work| &work.updates)
            .map(|update| ((update.pointer << 6) + STATUS, update.status))
            .collect();
        expected.sort_unstable();
        memory_writes.sort_unstable();
        prop_assert_eq!(memory_writes, expected);
    }
}

/// A channel that always asks does not keep the other from being served.
#[test]
fn the_channels_take_turns() {
    let mut leaf = Leaf::new("ws_dma_sg").unwrap();
    leaf.reset().unwrap();
    let mut asked = [0u32; 2];
    let mut told = [0u32; 2];
    let (mut reads, mut replies) = (0u32, 0u32);
    let mut word = 0;
    for name in CHANNELS {
        leaf.set(&format!("{name}_req_valid_i"), true).unwrap();
        leaf.set(&format!("{name}_update_valid_i"), true).unwrap();
    }
    for port in ["arready_i", "awready_i", "wready_i"] {
        leaf.set(port, true).unwrap();
    }
    for _ in 0..800 {
        leaf.set("rvalid_i", reads > 0).unwrap();
        leaf.set("rlast_i", word == 7).unwrap();
        leaf.set("bvalid_i", replies > 0).unwrap();
        leaf.eval().unwrap();
        for (c, name) in CHANNELS.iter().enumerate() {
            let is = |signal: &str| leaf.is(&format!("{name}_{signal}")).unwrap();
            asked[c] += u32::from(is("req_ready_o"));
            told[c] += u32::from(is("update_ready_o"));
        }
        if reads > 0 {
            word = (word + 1) % 8;
            reads -= u32::from(word == 0);
        }
        replies -= replies.min(1);
        reads += u32::from(leaf.is("arvalid_o").unwrap());
        replies += u32::from(leaf.is("wvalid_o").unwrap());
        leaf.tick().unwrap();
    }
    assert!(
        asked[0] > 40 && asked[0].abs_diff(asked[1]) <= 1,
        "{asked:?}"
    );
    assert!(told[0] > 40 && told[0].abs_diff(told[1]) <= 1, "{told:?}");
}
