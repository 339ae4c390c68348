//! The streaming kernel: packets in, answers out, and its own registers (`docs/stream.md`,
//! `docs/registers.md`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::dot::Dot;
use super::packet::Packet;
use super::pool::SharedPool;
use super::{Fault, ModelConfig, flag};
use crate::quant::{WeightType, q8_0_row_bytes};
use crate::regs::job::{
    self, FOOTER_BYTES, Footer, HEADER_BYTES, Header, MAX_ROWS, PART_ALIGN, REUSE_ACTIVATIONS,
    Status, header, status,
};
use crate::regs::kernel as reg;

/// Where the counters end: the last one has 8 bytes as all have.
const COUNTERS_END: u32 = reg::JOBS + 8;

/// A job that passed the checks of its header.
struct Job {
    ty: WeightType,
    k: usize,
    rows: usize,
    cols: usize,
    skip: usize,
    /// Bytes of the activations, padded; `None` where those held are used.
    activations: Option<usize>,
}

impl Job {
    fn row_bytes(&self) -> usize {
        self.k / self.ty.block_len() * self.ty.block_bytes()
    }

    /// Where the first weight row begins in the packet.
    fn weights_at(&self) -> usize {
        HEADER_BYTES + self.activations.unwrap_or(0) + self.skip
    }

    /// Bytes of the packet.
    fn len(&self) -> u64 {
        self.weights_at() as u64 + self.rows as u64 * self.row_bytes() as u64
    }
}

/// The rows of a job that no thread has taken yet.
struct Parts<'a> {
    weights: &'a [u8],
    results: &'a mut [f32],
    row_bytes: usize,
    cols: usize,
    threads: usize,
}

impl<'a> Parts<'a> {
    /// Fewest and most weight bytes, times columns, that a thread takes at a time: enough that taking them costs
    /// nothing, few enough that the threads end together even if one is held up.
    const LEAST: usize = 1 << 12;
    const MOST: usize = 1 << 18;

    /// Some of the rows that are left, fewer and fewer; `None` when there are none.
    fn take(&mut self) -> Option<(&'a [u8], &'a mut [f32])> {
        let left = self.results.len() / self.cols;
        if left == 0 {
            return None;
        }
        let work = self.row_bytes * self.cols;
        let rows = (left / (2 * self.threads))
            .clamp(Self::LEAST.div_ceil(work), Self::MOST.div_ceil(work))
            .min(left);
        let (weights, rest) = self.weights.split_at(rows * self.row_bytes);
        self.weights = rest;
        let results = std::mem::take(&mut self.results);
        let (results, rest) = results.split_at_mut(rows * self.cols);
        self.results = rest;
        Some((weights, results))
    }
}

/// A result packet on its way out.
#[derive(Default)]
struct Answer {
    results: Vec<f32>,
    footer: [u8; FOOTER_BYTES],
    /// Bytes already sent.
    sent: usize,
    len: usize,
}

/// The counters that count without a clock.
#[derive(Clone, Copy, Default)]
struct Counters {
    beats_in: u64,
    beats_out: u64,
    jobs: u64,
}

pub struct Kernel {
    config: ModelConfig,
    silent: bool,
    packet: Packet,
    dot: Dot,
    pool: SharedPool,
    answer: Answer,
    /// Packets that a silent kernel did not answer.
    swallowed: u64,
    error: u32,
    counters: Counters,
    /// High words held since their low words were read, by counter.
    held_high: [Option<u32>; 7],
}

impl Kernel {
    pub fn new(config: ModelConfig) -> Kernel {
        Kernel {
            silent: config.faults.contains(&Fault::NoAnswer),
            dot: Dot::new(config.simd),
            pool: SharedPool::of(config.threads),
            config,
            packet: Packet::default(),
            answer: Answer::default(),
            swallowed: 0,
            error: 0,
            counters: Counters::default(),
            held_high: [None; 7],
        }
    }

    pub fn read(&mut self, offset: u32) -> u32 {
        match offset {
            reg::ID => reg::ID_VALUE,
            reg::VERSION => reg::VERSION_MAJOR << 16 | reg::VERSION_MINOR,
            reg::CAP_BUS => {
                let bits = self.config.bus_bytes as u32 * 8;
                bits | self.config.blocks_per_cycle << 16
            }
            reg::CAP_MAX_K => self.config.max_k,
            reg::CAP_MAX_COLS => self.config.max_cols,
            reg::CAP_TYPES => WeightType::all().fold(0, |mask, ty| mask | ty.mask()),
            reg::STATUS => flag(self.is_busy(), reg::STATUS_BUSY),
            reg::ERROR => self.error,
            reg::CYCLES..COUNTERS_END if offset.is_multiple_of(4) => self.read_counter(offset),
            _ => 0,
        }
    }

    fn read_counter(&mut self, offset: u32) -> u32 {
        let low = offset & !4;
        let value = match low {
            reg::BEATS_IN => self.counters.beats_in,
            reg::BEATS_OUT => self.counters.beats_out,
            reg::JOBS => self.counters.jobs,
            _ => 0,
        };
        let held = &mut self.held_high[(low - reg::CYCLES) as usize / 8];
        let high = (value >> 32) as u32;
        if offset == low {
            *held = Some(high);
            return value as u32;
        }
        held.take().unwrap_or(high)
    }

    pub fn write(&mut self, offset: u32, value: u32) {
        match offset {
            reg::CTRL => {
                if value & reg::CTRL_SOFT_RESET != 0 {
                    self.packet.clear();
                    self.dot.forget();
                    self.answer.len = 0;
                    self.answer.sent = 0;
                    self.swallowed = 0;
                    self.error = 0;
                }
                if value & reg::CTRL_CLEAR != 0 {
                    self.counters = Counters::default();
                }
            }
            reg::ERROR => self.error &= !value,
            _ => {}
        }
    }

    fn is_busy(&self) -> bool {
        !self.packet.is_empty() || self.has_answer() || self.swallowed != 0
    }

    /// Whether an answer waits to be taken; until it is, the kernel takes no beats.
    pub fn has_answer(&self) -> bool {
        self.answer.len != 0
    }

    /// Bytes of the answer that are still to be sent.
    pub fn answer_left(&self) -> usize {
        self.answer.len - self.answer.sent
    }

    /// Bytes of the packet that has begun and not ended; packets that were never answered.
    pub fn waits_for(&self) -> (u64, u64) {
        (self.packet.len(), self.swallowed)
    }

    /// Takes `len` bytes at `ptr`; with `last` the packet ends, and the job is done.
    ///
    /// # Safety
    /// As of [`Packet::push`], until the packet's last bytes are taken or [`Kernel::own`].
    pub unsafe fn take(&mut self, ptr: *const u8, len: usize, last: bool) {
        // SAFETY: the caller's promise.
        self.counters.beats_in += unsafe { self.packet.push(ptr, len, self.config.bus_bytes) };
        if !last {
            return;
        }
        if self.silent {
            self.swallowed += 1;
        } else {
            self.run();
        }
        self.packet.clear();
    }

    /// Makes the kernel independent of the memory that its unfinished packet came from.
    pub fn own(&mut self) {
        self.packet.own();
    }

    /// Copies the answer's next `len` bytes to `to` and counts their beats.
    ///
    /// # Safety
    /// `len` bytes can be written at `to`, and no more than [`Kernel::answer_left`].
    pub unsafe fn send(&mut self, to: *mut u8, len: usize) {
        let answer = &mut self.answer;
        let results = size_of_val(&answer.results[..]);
        let (start, end) = (answer.sent, answer.sent + len);
        let first = end.min(results).saturating_sub(start);
        // SAFETY: `first` bytes lie within the results, the others within the footer.
        unsafe {
            let from = answer.results.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(from.wrapping_add(start), to, first);
            let from = answer.footer.as_ptr();
            let skipped = (start + first).saturating_sub(results);
            std::ptr::copy_nonoverlapping(from.add(skipped), to.add(first), len - first);
        }
        let beats = |bytes: usize| bytes.div_ceil(self.config.bus_bytes) as u64;
        self.counters.beats_out += beats(end) - beats(start);
        answer.sent = end;
        if end == answer.len {
            self.counters.jobs += 1;
            answer.sent = 0;
            answer.len = 0;
        }
    }

    /// Does the job of the whole packet.
    fn run(&mut self) {
        let mut bytes = [0; HEADER_BYTES];
        let there = self.packet.len().min(HEADER_BYTES as u64) as usize;
        bytes[..there].copy_from_slice(&self.packet.bytes(0, there));
        let tag = match there >= header::RESERVED {
            true => Header::from_bytes(&bytes).tag,
            false => 0,
        };
        let status = match there == HEADER_BYTES {
            false => status::SHORT,
            true => match self.check_header(&bytes) {
                Err(status) => status,
                Ok(job) => self.run_job(&job),
            },
        };
        self.error |= status;
        let status = Status(status);
        if !status.is_good() {
            self.answer.results.clear();
        }
        self.answer.footer = Footer {
            tag,
            status,
            cycles: 0,
        }
        .to_bytes();
        self.answer.sent = 0;
        self.answer.len = size_of_val(&self.answer.results[..]) + FOOTER_BYTES;
    }

    fn check_header(&self, bytes: &[u8; HEADER_BYTES]) -> Result<Job, u32> {
        let header = Header::from_bytes(bytes);
        let ours = header.magic == job::MAGIC;
        let known = header.version == job::VERSION;
        let foreign = flag(!ours, status::BAD_MAGIC) | flag(ours && !known, status::BAD_VERSION);
        if foreign != 0 {
            return Err(foreign);
        }
        let ty = WeightType::from_ggml(header.ty);
        let whole = ty.is_none_or(|ty| header.k.is_multiple_of(ty.block_len() as u32));
        let bad_k = header.k == 0 || header.k > self.config.max_k || !whole;
        let reserved = &bytes[header::RESERVED..];
        let bad_flags = header.flags & !REUSE_ACTIVATIONS != 0 || reserved.iter().any(|b| *b != 0);
        let reuse = header.flags & REUSE_ACTIVATIONS != 0;
        let (k, cols) = (header.k as usize, header.cols as usize);
        let wrong = flag(ty.is_none(), status::BAD_TYPE)
            | flag(bad_k, status::BAD_K)
            | flag(!(1..=MAX_ROWS).contains(&header.rows), status::BAD_ROWS)
            | flag(
                cols == 0 || header.cols > self.config.max_cols,
                status::BAD_COLS,
            )
            | flag(
                header.skip >= self.config.bus_bytes as u32,
                status::BAD_SKIP,
            )
            | flag(bad_flags, status::BAD_FLAGS)
            | flag(
                reuse && self.dot.held() != Some((k, cols)),
                status::NO_ACTIVATIONS,
            );
        match ty {
            Some(ty) if wrong == 0 => Ok(Job {
                ty,
                k,
                rows: header.rows as usize,
                cols,
                skip: header.skip as usize,
                activations: (!reuse)
                    .then(|| (cols * q8_0_row_bytes(k)).next_multiple_of(PART_ALIGN)),
            }),
            _ => Err(wrong),
        }
    }

    /// Leaves the results in the answer and gives the job's status.
    fn run_job(&mut self, job: &Job) -> u32 {
        let need = job.len();
        let beats = need.div_ceil(self.config.bus_bytes as u64);
        let wrong = flag(self.packet.len() < need, status::SHORT)
            | flag(self.packet.beats() > beats, status::LONG)
            | flag(self.packet.bad_keep(), status::BAD_KEEP);
        if wrong != 0 {
            if job.activations.is_some() {
                self.dot.forget();
            }
            return wrong;
        }
        if job.activations.is_some() {
            let len = job.cols * q8_0_row_bytes(job.k);
            let activations = self.packet.bytes(HEADER_BYTES, len);
            self.dot.hold(&activations, job.k, job.cols);
        }
        let row_bytes = job.row_bytes();
        let weights = self.packet.bytes(job.weights_at(), job.rows * row_bytes);
        let results = &mut self.answer.results;
        results.resize(job.rows * job.cols, 0.0);

        let parts = Parts {
            weights: &weights,
            results,
            row_bytes,
            cols: job.cols,
            threads: self.config.threads,
        };
        let parts = Mutex::new(parts);
        let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        let nonfinite = AtomicBool::new(false);
        let dot = &self.dot;
        self.pool.run(&|| {
            while let Some((weights, results)) = next() {
                dot.rows(job.ty, weights, row_bytes, results);
                // A result is NaN for no other reason than a scale that is not finite.
                if results.iter().any(|y| y.is_nan()) {
                    nonfinite.store(true, Ordering::Relaxed);
                }
            }
        });
        flag(nonfinite.into_inner(), status::NONFINITE)
    }
}
