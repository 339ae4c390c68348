//! An engine at a chain of jobs: driver, DMA engine, kernel.

use std::collections::VecDeque;

use super::config::{Config, Kind};
use super::dma::{MM2S, Moves, Reader, Region, S2MM, ScatterGather, Writer};
use super::kernel::{Hold, Kernel, Packet};
use super::memory::Memory;
use super::ports::{ReadPort, WritePort};
use super::{Causes, Job};
use crate::dma::GRANULE;
use crate::quant::{WeightType, q8_0_row_bytes};
use crate::regs::axi_dma::DESCRIPTOR_BYTES;
use crate::regs::job::{FOOTER_BYTES, HEADER_BYTES, PART_ALIGN};
use crate::target::Conditions;

/// Cycles of a register access without stalls: `ws_axil_demux` and `ws_dma_regs`, from the request
/// to the response, for a write as for a read.
const ACCESS: u64 = 6;
/// From a write's first cycle to its effect: the register behind `ws_axil_demux` and `ws_dma_regs`
/// is written in the fifth, `ws_dma_chan_regs` passes it on in the sixth, `ws_dma_fetch` acts in the
/// seventh.
const EFFECT: u64 = 6;
/// From the cycle in which a status is in memory to the one in which the host sees the interrupt:
/// `ws_dma_irq`, the status bit and the line in `ws_dma_chan_regs`.
const INTERRUPT: u64 = 3;

/// Width of the descriptor port.
const SG_BYTES: u32 = 4;

/// Cycles of a chain's register accesses, in the driver's order.
pub(super) struct Doorbells {
    s2mm: u64,
    mm2s: u64,
    /// After the interrupt: of each channel the status is read and the event bit cleared.
    after: f64,
}

impl Doorbells {
    pub fn new(conditions: &Conditions) -> Doorbells {
        // The wait for the first success at a chance of 1 - q.
        let mean = |q: f64| q / (1.0 - q);
        let [aw, w, b, ar, r] = [0, 1, 2, 3, 4].map(|n| stall(conditions, n));
        // Address and data of a write are raised apart; the later counts.
        let request = mean(aw) + mean(w) - mean(aw * w);
        let write = ACCESS as f64 + request + mean(b);
        let read = ACCESS as f64 + mean(ar) + mean(r);
        Doorbells {
            // DMACR's threshold, TAILDESC_MSB, then TAILDESC.
            s2mm: (2.0 * write + request).round() as u64 + EFFECT,
            mm2s: (4.0 * write + request).round() as u64 + EFFECT,
            after: 2.0 * (read + write),
        }
    }
}

fn stall(conditions: &Conditions, channel: usize) -> f64 {
    f64::from(conditions.stalls.0[channel]) / 100.0
}

/// Rows of a job that are gone through one by one: those up to `settled`, then a window from which
/// the rest is extrapolated.
#[derive(Clone, Copy, Debug)]
struct Window {
    rows: u64,
    settled: u64,
    cut: u64,
}

/// Cycles until the FIFOs are as full as they stay.
const SETTLE: u64 = 4_000;

impl Window {
    fn new(job: &Job, packet: &Packet, config: &Config, window: u64) -> Window {
        let rows = job.rows as u64;
        let row_bytes = job.ty.row_bytes(job.k).unwrap_or(0) as u64;
        let slots = u64::from(packet.weights.groups * packet.weights.slots);
        let row_cycles = (row_bytes / config.bus_bytes as u64).max(slots).max(1);
        let settled = SETTLE.div_ceil(row_cycles);
        let simulated = settled + (window.div_ceil(row_cycles)).max(2);
        if simulated >= rows {
            return Window {
                rows,
                settled: rows,
                cut: 0,
            };
        }
        Window {
            rows: simulated,
            settled,
            cut: rows - simulated,
        }
    }
}

pub(super) struct Engine {
    reader: Reader,
    writer: Writer,
    sg: ScatterGather,
    kernel: Kernel,
    doorbells: Doorbells,
    windows: Vec<Window>,
    rows_done: u64,
    job: usize,
    /// At the end of the settled rows of the present job.
    mark: Causes,
    beats_left: u64,
    answers_left: u64,
    retired: [bool; 2],
    pub causes: Causes,
    /// What the rows left out take.
    pub beyond: [f64; Causes::COUNT],
    pub done: bool,
}

impl Engine {
    /// `number` engines with their buffers lie before this one's in memory.
    pub fn new(
        config: &Config,
        conditions: &Conditions,
        jobs: &[Job],
        number: u64,
        window: u64,
    ) -> Engine {
        let layout = Layout::new(config, number);
        let bus = config.bus_bytes as u64;
        let mut regions = VecDeque::new();
        let mut answers = VecDeque::new();
        let mut packets = Vec::new();
        let mut windows = Vec::new();
        let (mut activations_at, mut answers_at, mut weights_at) =
            (layout.activations, layout.answers, layout.weights);
        for (index, job) in jobs.iter().enumerate() {
            let skip = job.weights % bus;
            let mut packet = Packet {
                beats: 0,
                last_bytes: 0,
                activations: (!job.reuse)
                    .then(|| config.walk(WeightType::Q8_0, job.k, Kind::Activations, 1)),
                weights: config.walk(job.ty, job.k, Kind::Weights, job.cols),
                rows: job.rows as u64,
                cols: job.cols as u32,
                skip: skip as u32,
            };
            let window = Window::new(job, &packet, config, window);
            packet.rows = window.rows;
            windows.push(window);

            let first = regions.len();
            let header = layout.headers + (index * HEADER_BYTES) as u64;
            config.split(&mut regions, header, HEADER_BYTES as u64);
            if !job.reuse {
                let len = padded(job.cols * q8_0_row_bytes(job.k)) as u64;
                config.split(&mut regions, activations_at, len);
                activations_at += len;
            }
            let row_bytes = job.ty.row_bytes(job.k).unwrap_or(0) as u64;
            let weights = skip + window.rows * row_bytes;
            let place = weights_at + job.weights % GRANULE as u64 - skip;
            config.split(&mut regions, place, weights);
            weights_at += (weights + GRANULE as u64).next_multiple_of(GRANULE as u64);
            packet.last_bytes = ((weights - 1) % bus + 1) as u32;
            packet.beats = regions.range(first..).map(|r: &Region| r.beats).sum();
            packets.push(packet);

            let answer = window.rows * job.cols as u64 * 4 + FOOTER_BYTES as u64;
            config.split(&mut answers, answers_at, answer);
            answers_at += padded(answer as usize) as u64;
        }
        let most = conditions.max_outstanding;
        let stall = |n| stall(conditions, n);
        let totals = [regions.len() as u64, answers.len() as u64];
        let width = config.bus_bytes as u32;
        let read = |bytes, ar, r| ReadPort::new(bytes, most, stall(ar), stall(r));
        let write = |bytes, aw: usize| WritePort::new(bytes, most, [aw, aw + 1, aw + 2].map(stall));
        Engine {
            sg: ScatterGather::new(
                layout.rings,
                totals,
                read(SG_BYTES, 8, 9),
                write(SG_BYTES, 5),
            ),
            reader: Reader::new(regions, bus, read(width, 10, 11)),
            writer: Writer::new(answers, bus, write(width, 12)),
            kernel: Kernel::new(config, &packets),
            doorbells: Doorbells::new(conditions),
            windows,
            rows_done: 0,
            job: 0,
            mark: Causes::default(),
            beats_left: packets.iter().map(|p| p.beats).sum(),
            answers_left: totals[S2MM],
            retired: [false; 2],
            causes: Causes::default(),
            beyond: [0.0; Causes::COUNT],
            done: false,
        }
    }

    /// One cycle.
    pub fn step(&mut self, now: u64, memory: &mut Memory) {
        if now == self.doorbells.s2mm {
            self.sg.start(S2MM);
        }
        if now == self.doorbells.mm2s {
            self.sg.start(MM2S);
        }
        let out_ready = self.writer.ready();
        let out = self.kernel.out.filter(|_| out_ready);
        let offered = self.reader.valid;
        let step = self.kernel.step(now, offered, out_ready);
        let pop = offered && step.ready;
        self.count(now, offered, pop);
        if step.row_done {
            self.row_done();
        }
        let described = [MM2S, S2MM].map(|channel| self.sg.has_descriptor(channel));
        let retired = self.retired;
        let w: Moves = self
            .writer
            .step(now, described[S2MM], out, retired[S2MM], memory);
        let r = self
            .reader
            .step(now, described[MM2S], pop, retired[MM2S], memory);
        let taken = [r.taken, w.taken];
        let retired = self.sg.step(now, taken, [r.complete, w.complete], memory);
        self.retired = [MM2S, S2MM].map(|channel| retired == Some(channel));
        if self.retired[S2MM] {
            self.answers_left -= 1;
            if self.answers_left == 0 {
                // This cycle is counted; the interrupt's are still to come.
                self.causes.drain += INTERRUPT - 1;
                self.causes.registers += self.doorbells.after.round() as u64;
                self.done = true;
            }
        }
    }

    fn count(&mut self, now: u64, offered: bool, pop: bool) {
        let causes = &mut self.causes;
        let cause = if pop {
            self.beats_left -= 1;
            &mut causes.beats
        } else if offered {
            match self.kernel.hold() {
                Hold::Parser => &mut causes.parser,
                Hold::Lanes => &mut causes.lanes,
                Hold::Output => &mut causes.output,
            }
        } else if self.beats_left == 0 {
            &mut causes.drain
        } else if now < self.doorbells.mm2s {
            &mut causes.registers
        } else if self.reader.idle() {
            &mut causes.descriptors
        } else {
            &mut causes.memory
        };
        *cause += 1;
    }

    /// Marks where a job's rows have settled, and at its last extrapolates to those left out.
    fn row_done(&mut self) {
        let window = self.windows[self.job];
        self.rows_done += 1;
        if self.rows_done == window.settled {
            self.mark = self.causes;
        }
        if self.rows_done == window.rows {
            if window.cut > 0 {
                let rows = (window.rows - window.settled) as f64;
                let causes = self.causes.array().into_iter().zip(self.mark.array());
                for (beyond, (end, start)) in self.beyond.iter_mut().zip(causes) {
                    *beyond += (end - start) as f64 / rows * window.cut as f64;
                }
            }
            self.rows_done = 0;
            self.job += 1;
        }
    }
}

/// Where the driver's buffers lie, allocated as it does (`driver::shard`), engine after engine, the
/// weights behind them.
struct Layout {
    rings: [u64; 2],
    headers: u64,
    activations: u64,
    answers: u64,
    weights: u64,
}

impl Layout {
    fn new(config: &Config, number: u64) -> Layout {
        let granules = |bytes: usize| (bytes.next_multiple_of(GRANULE)) as u64;
        let mm2s = 1024 * DESCRIPTOR_BYTES;
        let s2mm = 512 * DESCRIPTOR_BYTES;
        let headers = granules(255 * HEADER_BYTES);
        let largest = padded(config.max_cols * q8_0_row_bytes(config.max_k));
        let activations = granules(largest.max(1 << 20));
        let answers = 4 << 20;
        let all = mm2s + s2mm + headers + activations + answers;
        let base = number * all;
        Layout {
            rings: [base, base + mm2s],
            headers: base + mm2s + s2mm,
            activations: base + mm2s + s2mm + headers,
            answers: base + all - answers,
            weights: (1 << 28) * (number + 1),
        }
    }
}

fn padded(len: usize) -> usize {
    len.next_multiple_of(PART_ALIGN)
}
