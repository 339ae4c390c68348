//! The registers of a DMA channel, as `docs/registers.md` has them.

use proptest::prelude::*;
use weightstream_leaf::{Leaf, LeafError};

const DMACR: u64 = 0x00;
const DMASR: u64 = 0x04;
const CURDESC: u64 = 0x08;
const CURDESC_MSB: u64 = 0x0C;
const TAILDESC: u64 = 0x10;
const TAILDESC_MSB: u64 = 0x14;

const IDLE: u32 = 1 << 1;
const IOC: u32 = 1 << 12;
const ERR: u32 = 1 << 14;
const INTERRUPTS: u32 = 7 << 12;
/// `IRQDelaySts`, which is the business of `ws_dma_irq`.
const DELAY_STS: u32 = 0xFF << 24;

#[derive(Debug, Clone, Copy)]
enum Op {
    Write {
        address: u64,
        data: u32,
    },
    /// A descriptor is done, and whether it was the last of a packet.
    Retire {
        pointer: u64,
        packet: bool,
    },
    /// Errors of the data mover and of the descriptors, 3 bits each: internal, slave, decode.
    Error {
        dma: u32,
        sg: u32,
    },
    /// Whether all up to the tail is done, and nothing is out on AXI.
    Engine {
        idle: bool,
        quiet: bool,
    },
    /// A soft reset of the engine, up to its end.
    Reset,
}

fn op() -> impl Strategy<Value = Op> {
    let data = prop_oneof![
        2 => any::<u32>(),
        2 => (0u32..2, 0u32..8, 0u32..4).prop_map(|(rs, enables, threshold)| {
            rs | enables << 12 | threshold << 16
        }),
        1 => Just(INTERRUPTS),
    ];
    let address = prop_oneof![3 => Just(DMACR), 5 => (0u64..8).prop_map(|n| 4 * n)];
    prop_oneof![
        10 => (address, data).prop_map(|(address, data)| Op::Write { address, data }),
        4 => (0..1u64 << 58, any::<bool>()).prop_map(|(pointer, packet)| Op::Retire { pointer, packet }),
        1 => (0u32..8, 0u32..8).prop_map(|(dma, sg)| Op::Error { dma, sg }),
        3 => any::<(bool, bool)>().prop_map(|(idle, quiet)| Op::Engine { idle, quiet }),
        1 => Just(Op::Reset),
    ]
}

struct Reference {
    control: u32,
    current: u64,
    tail: u64,
    halted: bool,
    /// On its way to halted; a new RS counts only from there.
    stopping: bool,
    tail_written: bool,
    errors: u32,
    interrupts: u32,
    missing: u32,
    idle: bool,
    quiet: bool,
}

impl Reference {
    fn new() -> Reference {
        Reference {
            control: 0x0001_0002,
            current: 0,
            tail: 0,
            halted: true,
            stopping: false,
            tail_written: false,
            errors: 0,
            interrupts: 0,
            missing: 1,
            idle: false,
            quiet: true,
        }
    }

    fn running(&self) -> bool {
        self.control & 1 == 1 && !self.halted && !self.stopping
    }

    fn write(&mut self, address: u64, data: u32) {
        let high = |old: u64| u64::from(data) << 32 | old & 0xFFFF_FFFF;
        let low = |old: u64| old & !0xFFFF_FFFF | u64::from(data & !63);
        match address {
            DMACR => {
                let mut new = data & 0xFFFF_7001 | 2;
                if new & 0xFF_0000 == 0 {
                    new |= self.control & 0xFF_0000;
                }
                if (new ^ self.control) & 0xFF_0000 != 0 {
                    self.missing = new >> 16 & 0xFF;
                }
                self.control = new;
            }
            DMASR => self.interrupts &= !data,
            CURDESC if self.halted => self.current = low(self.current),
            CURDESC_MSB if self.halted => self.current = high(self.current),
            TAILDESC => {
                self.tail = low(self.tail);
                self.tail_written |= self.running();
            }
            TAILDESC_MSB => self.tail = high(self.tail),
            _ => {}
        }
    }

    /// What follows by itself within a few cycles: errors stop, RS starts, a quiet channel halts.
    fn settle(&mut self) {
        if self.errors != 0 {
            self.control &= !1;
        }
        self.stopping |= self.control & 1 == 0 && !self.halted;
        if self.stopping && self.quiet {
            (self.stopping, self.halted, self.tail_written) = (false, true, false);
        }
        if self.control & 1 == 1 && !self.stopping {
            self.halted = false;
        }
    }

    fn read(&self, address: u64) -> u32 {
        match address {
            DMACR => self.control,
            DMASR => {
                let idle = self.idle && self.tail_written && !self.halted;
                u32::from(self.halted)
                    | if idle { IDLE } else { 0 }
                    | 1 << 3
                    | self.errors
                    | self.interrupts
                    | self.missing << 16
            }
            CURDESC => self.current as u32,
            CURDESC_MSB => (self.current >> 32) as u32,
            TAILDESC => self.tail as u32,
            TAILDESC_MSB => (self.tail >> 32) as u32,
            _ => 0,
        }
    }
}

/// A register's value, which comes a cycle after it is asked for.
fn read(leaf: &mut Leaf, address: u64) -> Result<u32, LeafError> {
    leaf.set("re_i", true)?;
    leaf.set("raddr_i", address)?;
    leaf.tick()?;
    leaf.set("re_i", false)?;
    Ok(leaf.get("rdata_o")? as u32)
}

proptest! {
    #[test]
    fn registers(ops in prop::collection::vec(op(), 1..40)) {
        let mut leaf = Leaf::new("ws_dma_chan_regs")?;
        let mut r = Reference::new();
        leaf.set("quiet_i", true)?;
        leaf.reset()?;
        for (n, op) in ops.iter().enumerate() {
            match *op {
                Op::Write { address, mut data } => {
                    if address == DMACR {
                        // A delay that the run is too short to reach.
                        data |= 0x4000_0000;
                    }
                    let tail = address == TAILDESC && r.running();
                    leaf.set("we_i", true)?;
                    leaf.set("waddr_i", address)?;
                    leaf.set("wdata_i", data)?;
                    leaf.tick()?;
                    leaf.set("we_i", false)?;
                    r.write(address, data);
                    prop_assert_eq!(leaf.is("tail_o")?, tail, "op {}", n);
                    prop_assert_eq!(leaf.get("taildesc_o")?, r.tail >> 6);
                    let start = r.halted && r.control & 1 == 1 && r.errors == 0;
                    prop_assert_eq!(leaf.is("start_o")?, start, "op {}", n);
                }
                Op::Reset => {
                    leaf.set("resetting_i", true)?;
                    for _ in 0..3 {
                        leaf.tick()?;
                    }
                    r.control &= !1;
                    r.settle();
                    prop_assert_eq!(read(&mut leaf, DMACR)?, r.control | 4);
                    prop_assert_eq!(leaf.is("halted_o")?, r.halted);
                    // It ends when both channels are halted, which here may be before this one is.
                    leaf.set("resetting_i", false)?;
                    leaf.reset()?;
                    let (idle, quiet) = (r.idle, r.quiet);
                    r = Reference { idle, quiet, ..Reference::new() };
                }
                Op::Retire { pointer, packet } => {
                    leaf.set("retire_i", true)?;
                    leaf.set("retire_ptr_i", pointer)?;
                    leaf.set("packet_i", packet)?;
                    leaf.tick()?;
                    leaf.set("retire_i", false)?;
                    leaf.set("packet_i", false)?;
                    r.current = pointer << 6;
                    if packet {
                        r.missing -= 1;
                    }
                    if r.missing == 0 {
                        r.missing = r.control >> 16 & 0xFF;
                        r.interrupts |= IOC;
                    }
                }
                Op::Error { dma, sg } => {
                    leaf.set("dma_err_i", dma)?;
                    leaf.set("sg_err_i", sg)?;
                    leaf.tick()?;
                    leaf.set("dma_err_i", 0u64)?;
                    leaf.set("sg_err_i", 0u64)?;
                    r.errors |= dma << 4 | sg << 8;
                    if dma | sg != 0 {
                        r.interrupts |= ERR;
                    }
                }
                Op::Engine { idle, quiet } => {
                    leaf.set("idle_i", idle)?;
                    leaf.set("quiet_i", quiet)?;
                    (r.idle, r.quiet) = (idle, quiet);
                }
            }
            for _ in 0..4 {
                leaf.tick()?;
            }
            r.settle();
            for address in (0..0x20).step_by(4) {
                let ignored = if address == DMASR { DELAY_STS } else { 0 };
                prop_assert_eq!(
                    format!("{:#x}", read(&mut leaf, address)? & !ignored),
                    format!("{:#x}", r.read(address)),
                    "register {:#x} after op {}", address, n
                );
            }
            prop_assert_eq!(leaf.is("run_o")?, r.running(), "op {}", n);
            prop_assert_eq!(leaf.is("halted_o")?, r.halted, "op {}", n);
            prop_assert_eq!(leaf.get("curdesc_o")?, r.current >> 6);
            prop_assert_eq!(leaf.is("introut_o")?, r.interrupts & r.control & INTERRUPTS != 0);
        }
    }
}
