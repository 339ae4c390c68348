//! The kernel's registers, as `docs/registers.md` has them.

use std::{collections::HashMap, fmt};

use proptest::prelude::*;
use weightstream_leaf::{Leaf, LeafError};

use crate::axi_lite::{Around, Delays, Write, delays, transfer};

const CTRL: u32 = 0x18;
const STATUS: u32 = 0x1C;
const ERROR: u32 = 0x20;
const CYCLES: u32 = 0x40;
const COUNTERS: usize = 7;

/// Cycles that the stream side is held in reset.
const RESET: usize = 4;

/// The registers that never change, of the module's own parameters.
const FIXED: [(u32, u32); 6] = [
    (0x00, 0x4B53_5757),
    (0x04, 0x0001_0000),
    (0x08, 1 << 16 | 128),
    (0x0C, 16384),
    (0x10, 4),
    (0x14, 0b0111_1101_1100_1100),
];

/// What the two streams do in a cycle.
#[derive(Clone, Copy, Default)]
struct Event {
    in_valid: bool,
    in_ready: bool,
    in_last: bool,
    out_valid: bool,
    out_ready: bool,
    out_last: bool,
    /// A footer is formed, with this status.
    status: Option<u32>,
}

/// In one line, such as `in VR- out V-- status 0x1`.
impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stream = |valid, ready, last| {
            let level = |on, letter| if on { letter } else { '-' };
            [level(valid, 'V'), level(ready, 'R'), level(last, 'L')]
                .iter()
                .collect::<String>()
        };
        write!(
            f,
            "in {} out {}",
            stream(self.in_valid, self.in_ready, self.in_last),
            stream(self.out_valid, self.out_ready, self.out_last)
        )?;
        self.status
            .map_or(Ok(()), |status| write!(f, " status {status:#x}"))
    }
}

fn event() -> impl Strategy<Value = Event> {
    let status = prop::option::weighted(0.2, (0u32..20).prop_map(|bit| 1 << bit));
    (any::<[bool; 6]>(), status).prop_map(|(b, status)| Event {
        in_valid: b[0],
        in_ready: b[1],
        in_last: b[2],
        out_valid: b[3],
        out_ready: b[4],
        out_last: b[5],
        status,
    })
}

#[derive(Debug, Clone)]
enum Op {
    /// Cycles without a transfer.
    Traffic(Vec<Event>),
    /// The streams go on, over and over, while a read is under way.
    Read(u32, Delays, Vec<Event>),
    Write(Write, Delays),
}

fn op() -> impl Strategy<Value = Op> {
    let events = || prop::collection::vec(event(), 1..12);
    let address = || {
        prop_oneof![
            6 => prop::sample::select((0..0x78 / 4).map(|n| 4 * n).collect::<Vec<u32>>()),
            1 => (0u32..0x400).prop_map(|word| 4 * word),
        ]
    };
    let written = prop_oneof![3 => Just(CTRL), 3 => Just(ERROR), 2 => address()];
    let data = prop_oneof![Just(1u32), Just(2), Just(3), any::<u32>()];
    let strobe = prop_oneof![3 => Just(0xFu8), 1 => 0u8..16];
    let write = (written, data, strobe).prop_map(|(address, data, strobe)| Write {
        address,
        data,
        strobe,
    });
    prop_oneof![
        2 => events().prop_map(Op::Traffic),
        3 => (address(), delays(), events()).prop_map(|(a, d, e)| Op::Read(a, d, e)),
        2 => (write, delays()).prop_map(|(write, delays)| Op::Write(write, delays)),
    ]
}

/// The registers, one snapshot a cycle.
#[derive(Default)]
struct Reference {
    events: Vec<Event>,
    n: usize,
    now: Event,
    jobs: u32,
    within: bool,
    error: u32,
    counters: [u64; COUNTERS],
    /// Cycles of reset to come, of the stream side.
    reset: usize,
    pulses: usize,
    /// Registers that change, in each cycle so far.
    history: HashMap<u64, (u32, u32, [u64; COUNTERS])>,
}

impl Reference {
    /// Whether a read of `address` in that cycle gives `data`.
    fn gives(&self, address: u32, cycle: u64, data: u32) -> bool {
        let (busy, error, counters) = self.history[&cycle];
        let expected = match address {
            STATUS => busy,
            ERROR => error,
            CTRL => 0,
            _ => {
                let counter = address
                    .checked_sub(CYCLES)
                    .map(|offset| offset as usize / 8);
                match counter.and_then(|n| counters.get(n)) {
                    Some(count) => (count >> (8 * (address & 4))) as u32,
                    None => FIXED
                        .iter()
                        .find(|fixed| fixed.0 == address)
                        .map_or(0, |fixed| fixed.1),
                }
            }
        };
        expected == data
    }
}

impl Around for Reference {
    fn drive(&mut self, leaf: &mut Leaf) -> Result<(), LeafError> {
        self.now = self
            .events
            .get(self.n % self.events.len().max(1))
            .copied()
            .unwrap_or_default();
        self.n += 1;
        let now = &mut self.now;
        if self.reset > 0 {
            *now = Event::default();
        }
        // No more jobs than fit, and no end of a job that has not begun.
        now.in_valid &= self.jobs < 100;
        now.out_last &= self.jobs > 0;
        leaf.set("in_reset_i", self.reset > 0)?;
        leaf.set("in_valid_i", now.in_valid)?;
        leaf.set("in_ready_i", now.in_ready)?;
        leaf.set("in_last_i", now.in_last)?;
        leaf.set("out_valid_i", now.out_valid)?;
        leaf.set("out_ready_i", now.out_ready)?;
        leaf.set("out_last_i", now.out_last)?;
        leaf.set("footer_i", now.status.is_some())?;
        leaf.set("status_i", now.status.unwrap_or(u32::MAX))
    }

    fn sample(&mut self, leaf: &Leaf) -> Result<(), TestCaseError> {
        let busy = self.jobs > 0;
        self.history
            .insert(leaf.cycle(), (busy.into(), self.error, self.counters));
        let now = self.now;
        let taken = now.in_valid && now.in_ready;
        let sent = now.out_valid && now.out_ready;
        let ended = sent && now.out_last;
        let counts = [
            true,
            busy,
            busy && now.in_ready && !now.in_valid,
            now.out_valid && !now.out_ready,
            taken,
            sent,
            ended,
        ];
        for (counter, counts) in self.counters.iter_mut().zip(counts) {
            *counter += u64::from(counts);
        }
        if taken {
            self.jobs += u32::from(!self.within);
            self.within = !now.in_last;
        }
        self.jobs -= u32::from(ended);
        self.error |= now.status.unwrap_or(0);
        if self.reset > 0 {
            self.reset -= 1;
            (self.jobs, self.within) = (0, false);
        }
        if leaf.is("soft_reset_o")? {
            self.pulses += 1;
            self.reset = RESET;
            self.error = 0;
        }
        Ok(())
    }
}

/// A write and what it does, with the streams silent.
fn write(
    leaf: &mut Leaf,
    r: &mut Reference,
    mut write: Write,
    delays: Delays,
) -> Result<(), TestCaseError> {
    if write.address == CTRL && r.jobs > 0 && write.data & 3 == 3 {
        // Which of the two comes first is the module's own.
        write.data &= !2;
    }
    r.events.clear();
    let pulses = r.pulses;
    let before = leaf.cycle();
    let (reply, _) = transfer(leaf, "s_axi_ctrl", Some(write), None, delays, r)?;
    let reply = reply.expect("a write is answered");
    prop_assert_eq!(reply.response, 0);
    prop_assert_eq!(
        reply.replied,
        reply.accepted + 2,
        "{:?} from cycle {}",
        write,
        before
    );
    let mask = (0..4)
        .filter(|i| write.strobe >> i & 1 == 1)
        .fold(0, |mask, i| mask | 0xFF << (8 * i));
    let bits = write.data & mask;
    let soft_reset = write.address == CTRL && bits & 1 == 1;
    if write.address == ERROR {
        r.error &= !bits;
    }
    // The pulse may still be to come; the kernel then resets its streams.
    for _ in 0..2 + RESET {
        r.drive(leaf)?;
        leaf.eval()?;
        r.sample(leaf)?;
        leaf.tick()?;
    }
    prop_assert_eq!(
        r.pulses - pulses,
        usize::from(soft_reset),
        "soft reset pulses after {:?}",
        write
    );
    if write.address == CTRL && bits & 2 != 0 {
        // In which cycle the count of cycles began again is the module's own; the next read of it
        // says, between the two that are possible.
        let (_, read) = transfer(leaf, "s_axi_ctrl", None, Some(CYCLES), delays, r)?;
        let read = read.expect("a read is answered");
        let cycles = u64::from(read.data);
        let since = read.accepted - reply.accepted;
        prop_assert!(
            (since - 3..=since + 1).contains(&cycles),
            "{} cycles, {} after CLEAR",
            cycles,
            since
        );
        r.counters = [0; COUNTERS];
        r.counters[0] = cycles + leaf.cycle() - (read.replied - 1);
        if r.jobs > 0 {
            r.counters[1] = r.counters[0];
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn registers(ops in prop::collection::vec(op(), 1..30)) {
        let mut leaf = Leaf::new("ws_kernel_csr")?;
        leaf.reset()?;
        let mut r = Reference::default();
        for op in ops {
            match op {
                Op::Traffic(events) => {
                    r.n = 0;
                    let count = events.len();
                    r.events = events;
                    for _ in 0..count {
                        r.drive(&mut leaf)?;
                        leaf.eval()?;
                        r.sample(&leaf)?;
                        leaf.tick()?;
                    }
                }
                Op::Read(address, delays, events) => {
                    r.events = events;
                    let (_, reply) = transfer(&mut leaf, "s_axi_ctrl", None, Some(address), delays, &mut r)?;
                    let reply = reply.expect("a read is answered");
                    prop_assert_eq!(reply.response, 0);
                    prop_assert_eq!(reply.replied, reply.accepted + 2);
                    let right = (reply.accepted..=reply.replied).any(|cycle| r.gives(address, cycle, reply.data));
                    prop_assert!(right, "{:#x} reads {:#x}; now {:?}", address, reply.data, r.history[&reply.accepted]);
                }
                Op::Write(w, delays) => write(&mut leaf, &mut r, w, delays)?,
            }
        }
    }
}

/// CTRL reads 1 for as long as the stream side is in reset.
#[test]
fn soft_reset_reads_until_done() -> Result<(), TestCaseError> {
    struct InReset;
    impl Around for InReset {
        fn drive(&mut self, leaf: &mut Leaf) -> Result<(), LeafError> {
            leaf.set("in_reset_i", true)
        }
        fn sample(&mut self, _: &Leaf) -> Result<(), TestCaseError> {
            Ok(())
        }
    }
    let mut leaf = Leaf::new("ws_kernel_csr")?;
    leaf.reset()?;
    let at_once = Delays {
        aw: 0,
        w: 0,
        b: 0,
        ar: 0,
        r: 0,
    };
    let (_, reply) = transfer(
        &mut leaf,
        "s_axi_ctrl",
        None,
        Some(CTRL),
        at_once,
        &mut InReset,
    )?;
    assert_eq!(reply.map(|reply| reply.data), Some(1));
    let (_, reply) = transfer(
        &mut leaf,
        "s_axi_ctrl",
        None,
        Some(CTRL),
        at_once,
        &mut Reference::default(),
    )?;
    assert_eq!(reply.map(|reply| reply.data), Some(0));
    Ok(())
}
