//! The DMA engine's register port, and its soft reset.

use proptest::prelude::*;
use weightstream_leaf::{Leaf, LeafError};

use crate::axi_lite::{Around, LOWRISC, Write, delays, transfer};

const CHANNELS: [(&str, u32); 2] = [("mm2s", 0), ("s2mm", 0x30)];
const REGISTERS: u32 = 0x18;
const RESET: u32 = 1 << 2;

/// The channels' registers: a value for each, and what is written.
#[derive(Default)]
struct Channels {
    /// The channel and offset that were asked for in the last cycle.
    asked: Option<(usize, u32)>,
    /// Channel, offset, data.
    writes: Vec<(usize, u32, u32)>,
    settled: bool,
    /// Cycles since `Reset` was written, while it lasts.
    resetting: Option<u64>,
    resets: u32,
}

fn value(channel: usize, offset: u32) -> u32 {
    0x1357_0000 * (channel as u32 + 1) + offset
}

impl Around for Channels {
    fn drive(&mut self, leaf: &mut Leaf) -> Result<(), LeafError> {
        for (c, (name, _)) in CHANNELS.iter().enumerate() {
            let word = match self.asked {
                Some((asked, offset)) if asked == c => value(c, offset),
                // Only the channel that was asked, and only then.
                _ => 0xDEAD_BEEF,
            };
            leaf.set(&format!("{name}_rdata_i"), word)?;
        }
        leaf.set("settled_i", self.settled)
    }

    fn sample(&mut self, leaf: &Leaf) -> Result<(), TestCaseError> {
        self.asked = None;
        for (c, (name, _)) in CHANNELS.iter().enumerate() {
            if leaf.is(&format!("{name}_re_o"))? {
                prop_assert!(self.asked.is_none(), "both channels are asked");
                self.asked = Some((c, leaf.get("raddr_o")? as u32));
            }
            if leaf.is(&format!("{name}_we_o"))? {
                let (offset, data) = (leaf.get("waddr_o")? as u32, leaf.get("wdata_o")? as u32);
                self.writes.push((c, offset, data));
            }
        }
        let soft = leaf.is("soft_rst_o")?;
        prop_assert_eq!(leaf.is("resetting_o")?, self.resetting.is_some());
        if soft {
            prop_assert!(self.resetting.is_some_and(|cycles| cycles > 0));
            self.resets += 1;
            self.resetting = None;
        } else if self.resetting.is_some() {
            self.resetting = self.resetting.map(|cycles| cycles + 1);
        } else if self
            .writes
            .last()
            .is_some_and(|w| w.1 == 0 && w.2 & RESET != 0)
        {
            // Taken up a cycle after the write.
            self.writes.last_mut().unwrap().2 &= !RESET;
            self.resetting = Some(0);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Write(Write),
    Read(u32),
    Both(Write, u32),
}

fn op() -> impl Strategy<Value = Op> {
    let address = || prop_oneof![4 => (0u32..0x14).prop_map(|n| 4 * n), 1 => (0u32..0x400).prop_map(|n| 4 * n)];
    let strobe = prop_oneof![3 => Just(0xFu8), 1 => 0u8..16];
    let write = (address(), any::<u32>(), strobe).prop_map(|(address, data, strobe)| Write {
        address,
        data: data & !RESET,
        strobe,
    });
    prop_oneof![
        3 => write.clone().prop_map(Op::Write),
        3 => address().prop_map(Op::Read),
        1 => (write, address()).prop_map(|(write, address)| Op::Both(write, address)),
    ]
}

/// The channel and offset of an address, if there is a register.
fn register(address: u32) -> Option<(usize, u32)> {
    let at = |&(c, (_, base)): &(usize, (&str, u32))| {
        (base..base + REGISTERS).contains(&address) && c < 2
    };
    let (c, (_, base)) = CHANNELS.into_iter().enumerate().find(at)?;
    Some((c, address - base))
}

proptest! {
    #[test]
    fn each_address_to_its_register(ops in prop::collection::vec((op(), delays()), 1..30)) {
        let mut leaf = Leaf::new("ws_dma_regs")?;
        leaf.reset()?;
        let mut channels = Channels::default();
        for (op, delays) in ops {
            let (write, read) = match op {
                Op::Write(write) => (Some(write), None),
                Op::Read(address) => (None, Some(address)),
                Op::Both(write, address) => (Some(write), Some(address)),
            };
            channels.writes.clear();
            let (wrote, got) = transfer(&mut leaf, LOWRISC, write, read, delays, &mut channels)?;
            prop_assert!(wrote.is_none_or(|reply| reply.response == 0));
            let expected: Vec<_> = write
                .filter(|write| write.strobe == 0xF)
                .and_then(|write| register(write.address).map(|(c, at)| (c, at, write.data)))
                .into_iter()
                .collect();
            prop_assert_eq!(&channels.writes, &expected, "{:?}", op);
            if let (Some(address), Some(got)) = (read, got) {
                let right = register(address).map_or(0, |(c, offset)| value(c, offset));
                prop_assert_eq!((got.data, got.response), (right, 0), "{:?}", op);
            }
        }
    }

    #[test]
    fn a_soft_reset_waits_until_all_is_settled(
        channel in 0usize..2,
        wait in 0u64..50,
        rest in any::<u32>(),
        delays in delays(),
    ) {
        let mut leaf = Leaf::new("ws_dma_regs")?;
        leaf.reset()?;
        let mut channels = Channels::default();
        let write = |data| Write { address: CHANNELS[channel].1, data, strobe: 0xF };
        transfer(&mut leaf, LOWRISC, Some(write(rest | RESET)), None, delays, &mut channels)?;
        let cycle = |leaf: &mut Leaf, channels: &mut Channels| -> Result<(), TestCaseError> {
            channels.drive(leaf)?;
            leaf.eval()?;
            channels.sample(leaf)?;
            Ok(leaf.tick()?)
        };
        for _ in 0..wait + 3 {
            cycle(&mut leaf, &mut channels)?;
            prop_assert_eq!(channels.resets, 0);
        }
        prop_assert!(leaf.is("resetting_o")?);
        channels.settled = true;
        for _ in 0..4 {
            cycle(&mut leaf, &mut channels)?;
        }
        prop_assert_eq!(channels.resets, 1);
        prop_assert!(!leaf.is("resetting_o")?);
    }
}
