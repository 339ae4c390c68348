//! Plays scenarios: lays jobs into DMA memory, sends them, and collects what came back.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::dma::{Buffer, DmaError, Heap};
use crate::driver::{Capabilities, DriverError, Engine, Packet, Part};
use crate::regs::job::{self, FOOTER_BYTES, Footer, HEADER_BYTES, Header, PART_ALIGN};
use crate::regs::kernel;
use crate::target::{
    Activity, Beat, Device, DeviceError, Fault, Interrupts, Target, TargetError, TargetOptions,
    Window,
};
use crate::vectors::{Answer, BusResponse, Chain, Event, Flaw, Job, Outcome, PartKind, Scenario};

/// Opens a target with these options: for a scenario, each time a fresh one.
pub type Opener<'a> = dyn Fn(&TargetOptions) -> Result<Target, TargetError> + Sync + 'a;

/// Bytes after a job's parts that keep their addresses apart.
const GAP: usize = PART_ALIGN;

/// One engine of a fresh target.
pub struct Player {
    heap: Heap,
    engine: Engine,
    /// Device addresses that answer SLVERR and that answer DECERR.
    slave_error: u64,
    decode_error: u64,
    /// Reads after which the next wait ends in a reset; [`Interrupter::NEVER`].
    reset_after: Arc<AtomicU32>,
}

/// A chain that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub outcome: Outcome,
    /// In this cycle, on a target that has cycles.
    pub cycle: Option<u64>,
    /// The data beats that moved since the chain before, where the options asked for them.
    pub beats: Vec<Beat>,
    /// Where each job's parts lay. The next chain may use the same addresses.
    pub layouts: Vec<Layout>,
}

/// Where a job's parts lie: device addresses from the first byte to behind the last.
#[derive(Clone, Debug)]
pub struct Layout(pub Vec<(PartKind, Range<u64>)>);

/// A job in memory, and where its answer goes.
struct Placed {
    buffer: Buffer,
    at: usize,
}

impl Player {
    /// The options under which `scenario` is played, and everything else as in `base`.
    pub fn options(scenario: &Scenario, base: &TargetOptions) -> TargetOptions {
        let mut options = TargetOptions {
            seed: scenario.stall_seed,
            conditions: scenario.conditions.clone(),
            length_width: scenario.length_width,
            ..base.clone()
        };
        if scenario.has_slave_error() {
            let end = options.heap_base + options.heap_bytes as u64;
            options
                .faults
                .push(Fault::SlaveError(slave_error(&options)..end));
        }
        options
    }

    /// Takes over engine `number` of a target opened with `options`.
    pub fn new(
        target: Target,
        options: &TargetOptions,
        number: usize,
    ) -> Result<Player, DriverError> {
        let Target {
            heap,
            devices,
            length_width,
            ..
        } = target;
        let device = devices
            .into_iter()
            .nth(number)
            .ok_or(DriverError::NoEngine)?;
        let reset_after = Arc::new(AtomicU32::new(Interrupter::NEVER));
        let device = Box::new(Interrupter {
            device,
            reset_after: reset_after.clone(),
        });
        Ok(Player {
            engine: Engine::new(&heap, device, length_width)?,
            slave_error: slave_error(options),
            decode_error: heap.device_base() + heap.total(),
            heap,
            reset_after,
        })
    }

    pub fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    pub fn activity(&self) -> Option<Activity> {
        self.engine.activity()
    }

    /// Plays all chains. An outcome is what happened, good or bad.
    ///
    /// # Errors
    /// If the jobs do not fit DMA memory.
    pub fn play(&mut self, scenario: &Scenario) -> Result<Vec<Ended>, DmaError> {
        let mut tag = 0;
        let mut ended = Vec::new();
        for chain in &scenario.chains {
            let (outcome, layouts) = self.play_chain(chain, &mut tag)?;
            ended.push(Ended {
                outcome,
                cycle: self.activity().map(|a| a.cycles),
                beats: self.engine.take_beats(),
                layouts,
            });
        }
        Ok(ended)
    }

    fn play_chain(
        &mut self,
        chain: &Chain,
        tag: &mut u32,
    ) -> Result<(Outcome, Vec<Layout>), DmaError> {
        let mut packets = Vec::new();
        let mut layouts = Vec::new();
        let mut placed = Vec::new();
        let first_tag = tag.wrapping_add(1);
        for (index, job) in chain.jobs.iter().enumerate() {
            *tag = tag.wrapping_add(1);
            let error = match chain.event {
                Some(Event::BusError {
                    job,
                    part,
                    response,
                }) if job == index => Some((part, response)),
                _ => None,
            };
            let (packet, layout, answer) = self.place(job, *tag, error)?;
            packets.push(packet);
            layouts.push(layout);
            placed.push(answer);
        }
        let reset = match chain.event {
            Some(Event::Reset { reads }) => Some(reads),
            _ => None,
        };
        let reads = reset.unwrap_or(Interrupter::NEVER);
        self.reset_after.store(reads, Ordering::Relaxed);
        let ended = self.engine.run(&packets);
        self.reset_after
            .store(Interrupter::NEVER, Ordering::Relaxed);
        let outcome = match ended {
            Ok(answers) => {
                let answers = answers.iter().zip(&placed).zip(&chain.jobs).enumerate();
                let read = answers.map(|(n, ((answer, placed), job))| {
                    let tag = first_tag.wrapping_add(n as u32);
                    placed.read(answer.len, tag, job)
                });
                match read.collect::<Result<Vec<_>, DriverError>>() {
                    Ok(answers) => Outcome::Answers(answers),
                    Err(error) => Outcome::Failed(error.to_string()),
                }
            }
            Err(DriverError::Unanswered { .. }) if reset.is_some() => Outcome::Reset,
            Err(DriverError::Halted {
                channel,
                errors,
                curdesc,
                ..
            }) => Outcome::Halted {
                channel: channel.into(),
                errors,
                descriptor: Some(curdesc),
            },
            Err(error) => Outcome::Failed(error.to_string()),
        };
        Ok((outcome, layouts))
    }

    /// Lays out a job and room for its answer.
    fn place(
        &self,
        job: &Job,
        tag: u32,
        error: Option<(PartKind, BusResponse)>,
    ) -> Result<(Packet, Layout, Placed), DmaError> {
        let bus_bytes = self.capabilities().bus_bytes;
        let skip = job.offset % bus_bytes;
        let word = job.offset - skip;
        let after = match job.flaw {
            Some(Flaw::Long(bytes)) => bytes,
            _ => 0,
        };
        let activations_at = HEADER_BYTES + GAP;
        let activations_len = match job.reuse {
            true => 0,
            false => padded(job.activations.len()),
        };
        let weights_at = padded(activations_at + activations_len + GAP);
        let weights_len = skip + job.weights.len() + after;
        let answer_at = padded(weights_at + word + weights_len + GAP);
        let answer_len = job.rows * job.cols * 4 + FOOTER_BYTES;
        let buffer = self.heap.alloc(answer_at + padded(answer_len))?;
        buffer.write(0, &self.header(job, skip, tag).to_bytes())?;
        if job.flaw == Some(Flaw::Reserved) {
            buffer.write(job::header::RESERVED, &[1])?;
        }
        if !job.reuse {
            buffer.write(activations_at, &job.activations)?;
        }
        buffer.write(weights_at + job.offset, &job.weights)?;
        buffer.sync_for_device(0, answer_at)?;

        let at = |offset: usize| buffer.device_addr() + offset as u64;
        let mut parts = vec![(PartKind::Header, at(0), HEADER_BYTES)];
        if !job.reuse {
            parts.push((PartKind::Activations, at(activations_at), activations_len));
        }
        parts.push((PartKind::Weights, at(weights_at + word), weights_len));
        if let Some(Flaw::Short(bytes)) = job.flaw {
            shorten(&mut parts, bytes);
        }
        let mut answer = Part {
            addr: at(answer_at),
            len: answer_len,
        };
        if let Some((kind, response)) = error {
            let addr = match response {
                BusResponse::Slave => self.slave_error,
                BusResponse::Decode => self.decode_error,
            };
            match parts.iter_mut().find(|part| part.0 == kind) {
                Some(part) => part.1 = addr,
                None if kind == PartKind::Answer => answer.addr = addr,
                None => parts[0].1 = addr,
            }
        }
        let answer_range = (
            PartKind::Answer,
            answer.addr..answer.addr + answer.len as u64,
        );
        let ranges = parts.iter();
        let ranges = ranges.map(|&(kind, addr, len)| (kind, addr..addr + len as u64));
        let layout = Layout(ranges.chain([answer_range]).collect());
        let parts = parts.into_iter();
        let packet = Packet {
            parts: parts.map(|(_, addr, len)| Part { addr, len }).collect(),
            answer,
        };
        let placed = Placed {
            buffer,
            at: answer_at,
        };
        Ok((packet, layout, placed))
    }

    fn header(&self, job: &Job, skip: usize, tag: u32) -> Header {
        let mut header = Header {
            magic: job::MAGIC,
            version: job::VERSION,
            ty: job.ty.ggml(),
            k: job.k as u32,
            rows: job.rows as u32,
            cols: job.cols as u32,
            skip: skip as u32,
            flags: if job.reuse { job::REUSE_ACTIVATIONS } else { 0 },
            tag,
        };
        match job.flaw {
            Some(Flaw::Magic) => header.magic ^= 0x2000,
            Some(Flaw::Version) => header.version += 1,
            Some(Flaw::Type) => header.ty |= 0x0100_0000,
            Some(Flaw::K) => header.k += 1,
            Some(Flaw::Rows) => header.rows = 0,
            Some(Flaw::Cols) => header.cols = 0,
            Some(Flaw::Skip) => header.skip = self.capabilities().bus_bytes as u32,
            Some(Flaw::Flags) => header.flags |= 1 << 31,
            Some(Flaw::Reserved | Flaw::Short(_) | Flaw::Long(_)) | None => {}
        }
        header
    }
}

/// Cuts `bytes` off the end of a packet; its first byte stays.
fn shorten(parts: &mut Vec<(PartKind, u64, usize)>, bytes: usize) {
    let total: usize = parts.iter().map(|part| part.2).sum();
    let mut left = total.saturating_sub(bytes).max(1);
    for part in parts.iter_mut() {
        part.2 = part.2.min(left);
        left -= part.2;
    }
    parts.retain(|part| part.2 > 0);
}

impl Placed {
    /// The answer of `len` bytes that has arrived.
    fn read(&self, len: usize, tag: u32, job: &Job) -> Result<Answer, DriverError> {
        let most = job.rows * job.cols * 4 + FOOTER_BYTES;
        let results_len = len.checked_sub(FOOTER_BYTES);
        let Some(results_len) = results_len.filter(|n| len <= most && n % 4 == 0) else {
            return Err(DriverError::AnswerLength {
                tag,
                expected: most,
                found: len,
            });
        };
        let mut bytes = vec![0; len];
        self.buffer.sync_for_cpu(self.at, len)?;
        self.buffer.read(self.at, &mut bytes)?;
        let (results, footer) = bytes.split_at(results_len);
        let footer = Footer::from_bytes(footer.try_into().expect("split off as long"));
        // A packet that ended before its tag is answered with tag 0.
        let headless = matches!(job.flaw, Some(Flaw::Short(_))) && footer.tag == 0;
        if footer.tag != tag && !headless {
            return Err(DriverError::WrongTag {
                expected: tag,
                found: footer.tag,
            });
        }
        let results = results.chunks_exact(4);
        Ok(Answer {
            status: footer.status.0,
            results: results
                .map(|b| u32::from_le_bytes(b.try_into().expect("chunks of 4 bytes")))
                .collect(),
            addr: self.buffer.device_addr() + self.at as u64,
        })
    }
}

fn padded(len: usize) -> usize {
    len.next_multiple_of(PART_ALIGN)
}

/// Where the last quarter of the memory begins, which answers SLVERR where that is asked for.
fn slave_error(options: &TargetOptions) -> u64 {
    let below = options.heap_bytes / 4 * 3 / PART_ALIGN * PART_ALIGN;
    options.heap_base + below as u64
}

/// A device whose driver does not always wait for an interrupt.
struct Interrupter {
    device: Box<dyn Device>,
    reset_after: Arc<AtomicU32>,
}

impl Interrupter {
    const NEVER: u32 = u32::MAX;
}

impl Device for Interrupter {
    fn read32(&mut self, window: Window, offset: u32) -> Result<u32, DeviceError> {
        self.device.read32(window, offset)
    }

    fn write32(&mut self, window: Window, offset: u32, value: u32) -> Result<(), DeviceError> {
        self.device.write32(window, offset, value)
    }

    fn wait_interrupt(&mut self) -> Result<Interrupts, DeviceError> {
        let reads = self.reset_after.load(Ordering::Relaxed);
        if reads == Interrupter::NEVER {
            return self.device.wait_interrupt();
        }
        for _ in 0..reads {
            self.device.read32(Window::Kernel, kernel::STATUS)?;
        }
        Err(DeviceError::Timeout {
            stuck: "a reset was to come".into(),
        })
    }

    fn activity(&self) -> Option<Activity> {
        self.device.activity()
    }

    fn take_beats(&mut self) -> Vec<Beat> {
        self.device.take_beats()
    }
}
