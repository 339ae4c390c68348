//! One engine: packets in, answers out.

use std::time::{Duration, Instant};

use super::DriverError;
use super::log::{Counters, Moment, Sent};
use super::ring::Ring;
use crate::dma::Heap;
use crate::quant::WeightType;
use crate::regs::axi_dma::{self, cr, desc, sr};
use crate::regs::job::PART_ALIGN;
use crate::regs::kernel;
use crate::target::{Activity, Beat, Device, DeviceError, Window};

/// Descriptors of the MM2S ring: a job takes three and one more for each split.
const MM2S_DESCRIPTORS: usize = 1024;
/// Descriptors of the S2MM ring.
const S2MM_DESCRIPTORS: usize = 512;
/// Most packets in flight: what the 8-bit interrupt threshold can count.
pub(super) const MAX_CHAIN: usize = 255;
/// More columns a job than any kernel has.
const MAX_COLS: u32 = 1 << 16;
/// Register reads to wait for a reset to end or a channel to go idle. PG021 gives no bound; both
/// take as long as the transfers under way.
const POLLS: u32 = 100_000;

/// The two channels: base, name.
const MM2S: (u32, &str) = (axi_dma::MM2S, "MM2S");
const S2MM: (u32, &str) = (axi_dma::S2MM, "S2MM");

/// Bytes in DMA memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Device address, a multiple of the bus word.
    pub addr: u64,
    pub len: usize,
}

/// A packet to send, and where its answer goes.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Joined into one packet in this order; all but the last are multiples of 64 bytes.
    pub parts: Vec<Part>,
    pub answer: Part,
}

/// An answer that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Bytes written to the packet's answer part, from its start.
    pub len: usize,
}

/// What a kernel says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Bytes of a bus word.
    pub bus_bytes: usize,
    pub blocks_per_cycle: usize,
    /// Largest k of a job.
    pub max_k: usize,
    /// Most columns of a job.
    pub max_cols: usize,
    /// Bit n is set for ggml's type number n.
    pub types: u32,
}

impl Capabilities {
    /// Whether rows of `k` weights of type `ty` can be streamed.
    pub fn supports(&self, ty: WeightType, k: usize) -> bool {
        self.types & ty.mask() != 0 && k > 0 && k <= self.max_k && k.is_multiple_of(ty.block_len())
    }
}

/// Drives one DMA engine and the kernel behind it.
pub struct Engine {
    device: Box<dyn Device>,
    capabilities: Capabilities,
    mm2s: Ring,
    s2mm: Ring,
    /// Longest region one descriptor carries, a multiple of [`PART_ALIGN`].
    max_descriptor: usize,
    /// The last reset did not end: nothing may run before one has.
    stuck: bool,
    work: Work,
    /// The chains since the last call of `take_log`, while they are asked for.
    log: Option<Vec<Sent>>,
}

/// What an engine did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Chains of descriptors; each is waited for once.
    pub chains: u64,
    /// From the doorbell to the last answer of each chain.
    pub kernel_time: Duration,
}

impl Engine {
    /// Checks the kernel's identity, resets engine and kernel and makes the rings in `heap`.
    /// `length_width` is the width of the DMA's length fields in bits.
    pub fn new(
        heap: &Heap,
        mut device: Box<dyn Device>,
        length_width: u32,
    ) -> Result<Engine, DriverError> {
        let capabilities = probe(device.as_mut())?;
        let longest = (1usize << length_width) - 1;
        let mut engine = Engine {
            device,
            capabilities,
            mm2s: Ring::new(heap, MM2S_DESCRIPTORS)?,
            s2mm: Ring::new(heap, S2MM_DESCRIPTORS)?,
            max_descriptor: longest / PART_ALIGN * PART_ALIGN,
            stuck: false,
            work: Work::default(),
            log: None,
        };
        engine.reset()?;
        Ok(engine)
    }

    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    pub fn activity(&self) -> Option<Activity> {
        self.device.activity()
    }

    /// What was sent so far and how long it took.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Keeps a log of the chains from now on, or ends it. It takes some register reads a chain.
    pub(super) fn set_log(&mut self, on: bool) {
        self.log = on.then(Vec::new);
    }

    /// The chains since the last call, while a log is kept.
    pub(super) fn take_log(&mut self) -> Vec<Sent> {
        self.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn moment(&self) -> Moment {
        Moment::now(self.activity())
    }

    fn counters(&mut self) -> Result<Counters, DriverError> {
        Ok(Counters {
            cycles: self.counter(kernel::CYCLES)?,
            busy: self.counter(kernel::BUSY_CYCLES)?,
            stall_in: self.counter(kernel::STALL_IN)?,
            stall_out: self.counter(kernel::STALL_OUT)?,
            beats_in: self.counter(kernel::BEATS_IN)?,
            beats_out: self.counter(kernel::BEATS_OUT)?,
        })
    }

    /// The data beats since the last call ([`Device::take_beats`]).
    pub fn take_beats(&mut self) -> Vec<Beat> {
        self.device.take_beats()
    }

    /// Reads one of the kernel's 64-bit counters (`regs::kernel`).
    pub fn counter(&mut self, offset: u32) -> Result<u64, DriverError> {
        let low = self.device.read32(Window::Kernel, offset)?;
        let high = self.device.read32(Window::Kernel, offset + 4)?;
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    /// Stops whatever is under way and brings engine and kernel to their first state.
    ///
    /// The DMA goes first: once its reset has ended no old transfer can reach memory.
    pub fn reset(&mut self) -> Result<(), DriverError> {
        self.stuck = true;
        self.write_dma(axi_dma::MM2S + axi_dma::DMACR, cr::RESET)?;
        self.poll(
            Window::Dma,
            axi_dma::MM2S + axi_dma::DMACR,
            cr::RESET,
            "the DMA's reset",
        )?;
        self.device
            .write32(Window::Kernel, kernel::CTRL, kernel::CTRL_SOFT_RESET)?;
        self.poll(
            Window::Kernel,
            kernel::CTRL,
            kernel::CTRL_SOFT_RESET,
            "the kernel's reset",
        )?;
        let first = [(MM2S.0, self.mm2s.restart()), (S2MM.0, self.s2mm.restart())];
        for (base, curdesc) in first {
            self.write_dma(base + axi_dma::CURDESC_MSB, (curdesc >> 32) as u32)?;
            self.write_dma(base + axi_dma::CURDESC, curdesc as u32)?;
            self.write_dma(base + axi_dma::DMACR, run_bits(base, 1))?;
        }
        self.stuck = false;
        Ok(())
    }

    fn poll(
        &mut self,
        window: Window,
        offset: u32,
        bit: u32,
        what: &'static str,
    ) -> Result<(), DriverError> {
        for _ in 0..POLLS {
            if self.device.read32(window, offset)? & bit == 0 {
                return Ok(());
            }
        }
        Err(DriverError::ResetStuck { what, polls: POLLS })
    }

    fn write_dma(&mut self, offset: u32, value: u32) -> Result<(), DriverError> {
        Ok(self.device.write32(Window::Dma, offset, value)?)
    }

    fn read_dma(&mut self, offset: u32) -> Result<u32, DriverError> {
        Ok(self.device.read32(Window::Dma, offset)?)
    }

    /// Descriptors that a region of `len` bytes takes.
    fn pieces(&self, len: usize) -> usize {
        len.div_ceil(self.max_descriptor).max(1)
    }

    /// Most descriptors that a chain may take: of the MM2S ring, of the S2MM ring.
    fn needs(&self, packet: &Packet) -> (usize, usize) {
        let mm2s = packet.parts.iter().map(|p| self.pieces(p.len)).sum();
        (mm2s, self.pieces(packet.answer.len))
    }

    /// Sends packets that do not depend on each other as one chain (several, where they do not
    /// all fit the rings) and waits for all answers, which come in the order of the packets.
    ///
    /// The caller has synced what the packets refer to, and syncs the answers before reading
    /// them. After an error engine and kernel are reset, so that no old transfer reaches memory, and
    /// the next call starts afresh.
    pub fn run(&mut self, packets: &[Packet]) -> Result<Vec<Answer>, DriverError> {
        if self.stuck {
            self.reset()?;
        }
        let mut answers = Vec::with_capacity(packets.len());
        let mut rest = packets;
        while !rest.is_empty() {
            let (chain, later) = rest.split_at(self.chain_len(rest)?);
            rest = later;
            if let Err(error) = self.run_chain(chain, &mut answers) {
                self.recover();
                return Err(error);
            }
        }
        Ok(answers)
    }

    /// Resets after an error. That the reset fails too must not hide the error; the next call
    /// tries again and tells.
    pub(super) fn recover(&mut self) {
        if let Err(error) = self.reset() {
            log::error!("reset after an error: {error}");
        }
    }

    /// How many of `packets`, from the first, fit the rings.
    fn chain_len(&self, packets: &[Packet]) -> Result<usize, DriverError> {
        let (mut mm2s, mut s2mm) = (self.mm2s.size(), self.s2mm.size());
        let mut fit = 0;
        for packet in packets.iter().take(MAX_CHAIN) {
            let needs = self.needs(packet);
            if needs.0 > mm2s || needs.1 > s2mm {
                break;
            }
            (mm2s, s2mm, fit) = (mm2s - needs.0, s2mm - needs.1, fit + 1);
        }
        if fit == 0 {
            let needs = self.needs(&packets[0]);
            let (channel, needed, size) = match needs.0 > mm2s {
                true => (MM2S.1, needs.0, mm2s),
                false => (S2MM.1, needs.1, s2mm),
            };
            return Err(DriverError::RingTooSmall {
                channel,
                needed,
                size,
            });
        }
        Ok(fit)
    }

    fn run_chain(
        &mut self,
        chain: &[Packet],
        answers: &mut Vec<Answer>,
    ) -> Result<(), DriverError> {
        for packet in chain {
            let max = self.max_descriptor;
            queue(
                &mut self.s2mm,
                std::slice::from_ref(&packet.answer),
                max,
                0,
                0,
            )?;
            queue(&mut self.mm2s, &packet.parts, max, desc::TXSOF, desc::TXEOF)?;
        }
        let wanted = answers.len() + chain.len();
        // One interrupt when the whole chain has answered. The threshold is written first because
        // changing it restarts its count.
        self.write_dma(
            S2MM.0 + axi_dma::DMACR,
            run_bits(S2MM.0, chain.len() as u32),
        )?;
        let before = match self.log {
            Some(_) => Some((self.counters()?, self.moment())),
            None => None,
        };
        let start = Instant::now();
        self.ring_doorbell(S2MM.0, self.s2mm.tail())?;
        self.ring_doorbell(MM2S.0, self.mm2s.tail())?;

        let mut partial = 0;
        while answers.len() < wanted {
            match self.device.wait_interrupt() {
                Ok(_) => self.acknowledge()?,
                Err(DeviceError::Timeout { stuck }) => {
                    return Err(self.unanswered(
                        answers.len() + chain.len() - wanted,
                        chain.len(),
                        stuck,
                    ));
                }
                Err(other) => return Err(other.into()),
            }
            while let Some(done) = self.s2mm.reap()? {
                partial += done.transferred;
                if done.end_of_packet {
                    answers.push(Answer {
                        len: std::mem::take(&mut partial),
                    });
                }
            }
        }
        self.work.chains += 1;
        self.work.kernel_time += start.elapsed();
        let answered = self.moment();
        self.retire()?;
        if let Some((counters, doorbell)) = before {
            let sent = Sent {
                packets: chain.len(),
                doorbell,
                answered,
                counters: self.counters()?.since(&counters),
            };
            self.log.get_or_insert_default().push(sent);
        }
        Ok(())
    }

    /// Writes `TAILDESC`, the high word first because the low one starts the channel.
    fn ring_doorbell(&mut self, base: u32, tail: u64) -> Result<(), DriverError> {
        self.write_dma(base + axi_dma::TAILDESC_MSB, (tail >> 32) as u32)?;
        self.write_dma(base + axi_dma::TAILDESC, tail as u32)
    }

    /// Clears the interrupts that are there and looks for errors.
    fn acknowledge(&mut self) -> Result<(), DriverError> {
        for channel in [MM2S, S2MM] {
            let dmasr = self.read_dma(channel.0 + axi_dma::DMASR)?;
            if dmasr & sr::IRQS != 0 {
                self.write_dma(channel.0 + axi_dma::DMASR, dmasr & sr::IRQS)?;
            }
            self.check_halted(channel, dmasr)?;
        }
        Ok(())
    }

    fn check_halted(
        &mut self,
        (base, channel): (u32, &'static str),
        dmasr: u32,
    ) -> Result<(), DriverError> {
        let errors: Vec<&str> = sr::ERRORS
            .iter()
            .filter(|(bit, _)| dmasr & bit != 0)
            .map(|(_, name)| *name)
            .collect();
        if errors.is_empty() {
            return Ok(());
        }
        let low = self.read_dma(base + axi_dma::CURDESC)?;
        let high = self.read_dma(base + axi_dma::CURDESC_MSB)?;
        Err(DriverError::Halted {
            channel,
            errors: errors.join(" | "),
            dmasr,
            curdesc: u64::from(low) | u64::from(high) << 32,
        })
    }

    /// Takes back the MM2S descriptors of a chain that has answered. The kernel may answer before
    /// the DMA has written the last status, so this waits for it.
    fn retire(&mut self) -> Result<(), DriverError> {
        for _ in 0..POLLS {
            while self.mm2s.reap()?.is_some() {}
            if self.mm2s.is_empty() {
                return Ok(());
            }
            self.acknowledge()?;
        }
        Err(DriverError::ResetStuck {
            what: "the MM2S channel's last transfer",
            polls: POLLS,
        })
    }

    /// Describes a chain that ended without all its answers. An error that halted a channel
    /// without an interrupt explains it better than the silence does.
    fn unanswered(&mut self, answered: usize, jobs: usize, stuck: String) -> DriverError {
        let look = |engine: &mut Engine| -> Result<(u32, u32, u32), DriverError> {
            let mm2s = engine.read_dma(MM2S.0 + axi_dma::DMASR)?;
            let s2mm = engine.read_dma(S2MM.0 + axi_dma::DMASR)?;
            engine.check_halted(MM2S, mm2s)?;
            engine.check_halted(S2MM, s2mm)?;
            Ok((
                mm2s,
                s2mm,
                engine.device.read32(Window::Kernel, kernel::STATUS)?,
            ))
        };
        match look(self) {
            Ok((mm2s, s2mm, kernel)) => {
                let source = DeviceError::Timeout { stuck };
                DriverError::Unanswered {
                    answered,
                    jobs,
                    source,
                    mm2s,
                    s2mm,
                    kernel,
                }
            }
            Err(error) => error,
        }
    }
}

/// `DMACR` of a running channel: only the answers' channel interrupts when it completes packets.
fn run_bits(base: u32, threshold: u32) -> u32 {
    let complete = if base == S2MM.0 { cr::IOC_IRQ_EN } else { 0 };
    cr::RS | cr::ERR_IRQ_EN | complete | threshold << cr::IRQ_THRESHOLD_SHIFT
}

/// Queues `parts` as one packet, splitting what is longer than a descriptor carries; the first
/// and last descriptor get the flags `first` and `last`.
fn queue(
    ring: &mut Ring,
    parts: &[Part],
    max: usize,
    first: u32,
    last: u32,
) -> Result<(), DriverError> {
    let mut flags = first;
    for (index, part) in parts.iter().enumerate() {
        let mut at = 0;
        loop {
            let len = (part.len - at).min(max);
            let ends = at + len == part.len;
            if ends && index + 1 == parts.len() {
                flags |= last;
            }
            ring.push(part.addr + at as u64, len, flags)?;
            flags = 0;
            at += len;
            if ends {
                break;
            }
        }
    }
    Ok(())
}

/// Reads the kernel's identity and capabilities.
fn probe(device: &mut dyn Device) -> Result<Capabilities, DriverError> {
    let id = device.read32(Window::Kernel, kernel::ID)?;
    if id != kernel::ID_VALUE {
        return Err(DriverError::NoKernel {
            found: id,
            expected: kernel::ID_VALUE,
        });
    }
    let version = device.read32(Window::Kernel, kernel::VERSION)?;
    if version >> 16 != kernel::VERSION_MAJOR {
        return Err(DriverError::Version {
            found_major: version >> 16,
            found_minor: version & 0xFFFF,
            driven: kernel::VERSION_MAJOR,
        });
    }
    let bus = device.read32(Window::Kernel, kernel::CAP_BUS)?;
    let width = (bus & 0xFFFF) as usize;
    if !matches!(width, 64 | 128 | 256 | 512) {
        return Err(DriverError::Capability {
            register: "CAP_BUS",
            value: bus,
            expected: "a stream width of 64, 128, 256 or 512 bits",
        });
    }
    let max_cols = device.read32(Window::Kernel, kernel::CAP_MAX_COLS)?;
    if !(1..=MAX_COLS).contains(&max_cols) {
        return Err(DriverError::Capability {
            register: "CAP_MAX_COLS",
            value: max_cols,
            expected: "1 to 65536",
        });
    }
    Ok(Capabilities {
        bus_bytes: width / 8,
        blocks_per_cycle: (bus >> 16 & 0xFF) as usize,
        max_k: device.read32(Window::Kernel, kernel::CAP_MAX_K)? as usize,
        max_cols: max_cols as usize,
        types: device.read32(Window::Kernel, kernel::CAP_TYPES)?,
    })
}
