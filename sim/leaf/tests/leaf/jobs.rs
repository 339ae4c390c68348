//! Job packets beat by beat, and what the kernel must answer (`docs/stream.md`).

use std::fmt;

use proptest::prelude::*;

use crate::{
    formats::{FORMATS, Format},
    fp16::{fixed, is_finite},
    ws_round,
};

pub const HEADER: usize = 64;
pub const FOOTER: usize = 16;
const MAGIC: u32 = 0x314A_5357;
const MAX_ROWS: u32 = (1 << 24) - 1;
const REUSE: u32 = 1;

pub const NONFINITE: u32 = 1 << 0;
const BAD_MAGIC: u32 = 1 << 8;
const BAD_VERSION: u32 = 1 << 9;
const BAD_TYPE: u32 = 1 << 10;
const BAD_K: u32 = 1 << 11;
const BAD_ROWS: u32 = 1 << 12;
const BAD_COLS: u32 = 1 << 13;
const BAD_SKIP: u32 = 1 << 14;
const BAD_FLAGS: u32 = 1 << 15;
const NO_ACTIVATIONS: u32 = 1 << 16;
const SHORT: u32 = 1 << 17;
const LONG: u32 = 1 << 18;
const BAD_KEEP: u32 = 1 << 19;

/// A kernel's parameters.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub module: &'static str,
    /// Bytes of a bus word.
    pub bus: usize,
    pub max_k: usize,
    pub max_cols: usize,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Beat {
    pub data: Vec<u8>,
    pub keep: u64,
    pub last: bool,
}

impl fmt::Debug for Beat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.last { " last" } else { "" };
        write!(f, "keep {:#x}{end}", self.keep)
    }
}

/// All bytes of a bus word kept.
pub fn full(bus: usize) -> u64 {
    u64::MAX >> (64 - bus)
}

// ------------------------------------------------------------------------------ what is sent

/// A job as it should be; what is wrong with it comes on top.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    format: Format,
    /// Blocks of a row, at most as many as the kernel takes.
    blocks: usize,
    rows: usize,
    cols: usize,
    skip: usize,
    reuse: bool,
    finite: bool,
    seed: u64,
}

/// What is wrong with a packet.
#[derive(Debug, Clone)]
pub enum Fault {
    /// A word of the header is another.
    Word { index: usize, value: u32 },
    /// It ends so many bytes early, or wherever that leads, counted from its start.
    Cut { bytes: usize, from_start: bool },
    /// So many bytes follow.
    Extra(usize),
    /// TKEEP of a beat, counted from the last.
    Keep { from_end: usize, keep: u64 },
    /// TLAST is not there: the packet runs into the next.
    NoLast,
}

#[derive(Debug, Clone)]
pub enum Packet {
    Job {
        spec: Spec,
        faults: Vec<Fault>,
    },
    /// Bytes that mean nothing.
    Noise {
        bytes: usize,
        seed: u64,
    },
}

pub fn spec(shape: Shape) -> impl Strategy<Value = Spec> {
    (
        prop::sample::select(FORMATS.to_vec()),
        1..=shape.max_k / 32,
        1usize..6,
        1..=shape.max_cols,
        prop_oneof![Just(0), 0..shape.bus],
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.8),
        any::<u64>(),
    )
        .prop_map(
            move |(format, blocks, rows, cols, skip, reuse, finite, seed)| Spec {
                format,
                blocks: blocks.min(shape.max_k / format.weights()),
                rows,
                cols,
                skip,
                reuse,
                finite,
                seed,
            },
        )
}

fn fault(shape: Shape) -> impl Strategy<Value = Fault> {
    let value = prop_oneof![
        2 => 0u32..6,
        2 => any::<u32>(),
        1 => (0u32..32).prop_map(|bit| 1 << bit),
        1 => prop::sample::select(vec![
            shape.max_k as u32, shape.max_k as u32 + 32, shape.bus as u32, MAX_ROWS, MAX_ROWS + 1,
        ]),
    ];
    let bytes = || prop_oneof![1usize..8, 30usize..70, 1usize..200, 1usize..3000];
    let keep = prop_oneof![
        (0..=shape.bus).prop_map(|n| if n == 64 { u64::MAX } else { (1u64 << n) - 1 }),
        (0..shape.bus).prop_map(|n| !(1u64 << n)),
        any::<u64>(),
        Just(0),
    ]
    .prop_map(move |keep| keep & full(shape.bus));
    prop_oneof![
        3 => (0usize..16, value).prop_map(|(index, value)| Fault::Word { index, value }),
        3 => (bytes(), any::<bool>()).prop_map(|(bytes, from_start)| Fault::Cut { bytes, from_start }),
        2 => bytes().prop_map(Fault::Extra),
        2 => (prop_oneof![Just(0), any::<usize>()], keep)
            .prop_map(|(from_end, keep)| Fault::Keep { from_end, keep }),
        1 => Just(Fault::NoLast),
    ]
}

/// Good jobs, jobs with something wrong, and noise.
pub fn packet(shape: Shape) -> impl Strategy<Value = Packet> {
    let faults = prop_oneof![
        2 => Just(Vec::new()),
        3 => prop::collection::vec(fault(shape), 1..2),
        1 => prop::collection::vec(fault(shape), 2..4),
    ];
    prop_oneof![
        8 => (spec(shape), faults).prop_map(|(spec, faults)| Packet::Job { spec, faults }),
        1 => (1usize..400, any::<u64>()).prop_map(|(bytes, seed)| Packet::Noise { bytes, seed }),
    ]
}

/// SplitMix64.
struct Bytes(u64);

impl Bytes {
    fn take(&mut self, count: usize) -> Vec<u8> {
        (0..count)
            .map(|_| {
                self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut z = self.0;
                z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) as u8 ^ (z >> 40) as u8
            })
            .collect()
    }

    /// Random blocks, whose scales are finite if they shall be.
    fn blocks(&mut self, format: Format, count: usize, finite: bool) -> Vec<u8> {
        let mut bytes = self.take(count * format.bytes);
        for block in bytes.chunks_exact_mut(format.bytes).filter(|_| finite) {
            for &at in format.scales {
                block[at + 1] &= !0x40;
            }
        }
        bytes
    }
}

fn q8_0() -> Format {
    FORMATS[4]
}

/// The bytes of a good job. `held` are k and columns of the activations that a `reuse` may use.
fn job(spec: Spec, held: &mut Option<(usize, usize)>, tag: u32) -> Vec<u8> {
    let weights = spec.format.weights();
    let reuse = held.filter(|(k, _)| spec.reuse && k % weights == 0);
    let (k, cols) = reuse.unwrap_or((spec.blocks * weights, spec.cols));
    *held = Some((k, cols));
    let words = [
        MAGIC,
        1,
        spec.format.number as u32,
        k as u32,
        spec.rows as u32,
        cols as u32,
        spec.skip as u32,
        if reuse.is_some() { REUSE } else { 0 },
        tag,
    ];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(HEADER, 0);
    let mut random = Bytes(spec.seed);
    if reuse.is_none() {
        bytes.extend(random.blocks(q8_0(), cols * k / 32, spec.finite));
        let padding = bytes.len().next_multiple_of(64) - bytes.len();
        bytes.extend(random.take(padding));
    }
    bytes.extend(random.take(spec.skip));
    bytes.extend(random.blocks(spec.format, spec.rows * k / weights, spec.finite));
    bytes
}

/// The beats of packets, one after the other. The last of them ends.
pub fn beats(shape: Shape, packets: &[Packet]) -> Vec<Beat> {
    let mut held = None;
    let mut stream = Vec::new();
    for (tag, packet) in packets.iter().enumerate() {
        let (mut bytes, faults) = match packet {
            Packet::Job { spec, faults } => {
                (job(*spec, &mut held, 0xC0DE_0000 + tag as u32), &faults[..])
            }
            Packet::Noise { bytes, seed } => (Bytes(*seed).take(*bytes), &[][..]),
        };
        for fault in faults {
            match *fault {
                Fault::Word { index, value } => {
                    bytes[4 * index..][..4].copy_from_slice(&value.to_le_bytes());
                }
                Fault::Cut { .. } | Fault::Extra(_) | Fault::Keep { .. } | Fault::NoLast => {}
            }
        }
        for fault in faults {
            match *fault {
                Fault::Cut {
                    bytes: count,
                    from_start,
                } => {
                    let end = if from_start {
                        count.min(bytes.len())
                    } else {
                        bytes.len().saturating_sub(count).max(1)
                    };
                    bytes.truncate(end);
                }
                Fault::Extra(count) => bytes.extend(Bytes(count as u64).take(count)),
                Fault::Word { .. } | Fault::Keep { .. } | Fault::NoLast => {}
            }
        }
        let begin = stream.len();
        for chunk in bytes.chunks(shape.bus) {
            let mut data = chunk.to_vec();
            // What is not kept is noise.
            data.extend(Bytes(tag as u64).take(shape.bus - chunk.len()));
            stream.push(Beat {
                data,
                keep: u64::MAX >> (64 - chunk.len()),
                last: false,
            });
        }
        let count = stream.len() - begin;
        let mut last = true;
        for fault in faults {
            match *fault {
                Fault::Keep { from_end, keep } => {
                    stream[begin + count - 1 - from_end % count].keep = keep;
                }
                Fault::NoLast => last = false,
                Fault::Word { .. } | Fault::Cut { .. } | Fault::Extra(_) => {}
            }
        }
        stream[begin + count - 1].last = last;
    }
    if let Some(beat) = stream.last_mut() {
        beat.last = true;
    }
    stream
}

// ------------------------------------------------------------------------------ what is answered

/// What the kernel holds from job to job.
pub struct Reference {
    shape: Shape,
    /// k, columns, and the blocks of all columns.
    held: Option<(usize, usize, Vec<u8>)>,
}

/// The answer to a packet.
pub struct Answer {
    tag: u32,
    status: u32,
    job: Option<Parts>,
}

/// A job whose header is good, as far as its packet goes.
struct Parts {
    format: Format,
    k: usize,
    rows: usize,
    cols: usize,
    activations: Vec<u8>,
    weights: Vec<u8>,
}

fn word(bytes: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(bytes[4 * index..][..4].try_into().unwrap())
}

fn flag(set: bool, bit: u32) -> u32 {
    if set { bit } else { 0 }
}

fn scale(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

impl Reference {
    pub fn new(shape: Shape) -> Reference {
        Reference { shape, held: None }
    }

    /// The answers to a stream of whole packets.
    pub fn answers(&mut self, beats: &[Beat]) -> Vec<Answer> {
        beats
            .split_inclusive(|beat| beat.last)
            .map(|packet| self.answer(packet))
            .collect()
    }

    fn answer(&mut self, packet: &[Beat]) -> Answer {
        let bus = self.shape.bus;
        let (end, body) = packet.split_last().expect("a packet has a beat");
        let kept = (end.keep.trailing_ones() as usize).min(bus);
        let bad_keep = body.iter().any(|beat| beat.keep != full(bus))
            || end.keep.count_ones() as usize != kept;
        let mut bytes: Vec<u8> = body.iter().flat_map(|beat| beat.data.clone()).collect();
        bytes.extend(&end.data[..kept]);

        let tag = if bytes.len() >= 36 {
            word(&bytes, 8)
        } else {
            0
        };
        let only = |status| Answer {
            tag,
            status,
            job: None,
        };
        if bytes.len() < HEADER {
            return only(SHORT);
        }
        let header = self.header(&bytes[..HEADER]);
        let (format, reuse) = match header {
            Ok(good) => good,
            Err(status) => return only(status),
        };

        let [k, rows, cols, skip] = [3, 4, 5, 6].map(|index| word(&bytes, index) as usize);
        let brought = if reuse { 0 } else { cols * k / 32 * 34 };
        let weights_at = HEADER + brought.next_multiple_of(64) + skip;
        let need = weights_at + rows * (k / format.weights() * format.bytes);
        let status = flag(bytes.len() < need, SHORT)
            | flag(packet.len() > need.div_ceil(bus), LONG)
            | flag(bad_keep, BAD_KEEP);
        let activations = if reuse {
            self.held
                .as_ref()
                .expect("the header was checked")
                .2
                .clone()
        } else {
            bytes[HEADER..bytes.len().min(HEADER + brought)].to_vec()
        };
        if !reuse {
            self.held = (status == 0).then(|| (k, cols, activations.clone()));
        }
        let job = Parts {
            format,
            k,
            rows,
            cols,
            activations,
            weights: bytes[weights_at.min(bytes.len())..need.min(bytes.len())].to_vec(),
        };
        Answer {
            tag,
            status,
            job: Some(job),
        }
    }

    /// The weight type, and whether the activations held are used.
    fn header(&self, header: &[u8]) -> Result<(Format, bool), u32> {
        if word(header, 0) != MAGIC {
            return Err(BAD_MAGIC);
        }
        if word(header, 1) != 1 {
            return Err(BAD_VERSION);
        }
        let [ty, k, rows, cols, skip, flags] = [2, 3, 4, 5, 6, 7].map(|index| word(header, index));
        let format = FORMATS.into_iter().find(|f| f.number == u64::from(ty));
        let whole = format.is_none_or(|f| k.is_multiple_of(f.weights() as u32));
        let reuse = flags & REUSE != 0;
        let held = self
            .held
            .as_ref()
            .map(|held| (held.0 as u32, held.1 as u32));
        let status = flag(format.is_none(), BAD_TYPE)
            | flag(k == 0 || k > self.shape.max_k as u32 || !whole, BAD_K)
            | flag(rows == 0 || rows > MAX_ROWS, BAD_ROWS)
            | flag(cols == 0 || cols > self.shape.max_cols as u32, BAD_COLS)
            | flag(skip >= self.shape.bus as u32, BAD_SKIP)
            | flag(
                flags & !REUSE != 0 || header[36..].iter().any(|&byte| byte != 0),
                BAD_FLAGS,
            )
            | flag(reuse && held != Some((k, cols)), NO_ACTIVATIONS);
        match format {
            Some(format) if status == 0 => Ok((format, reuse)),
            _ => Err(status),
        }
    }
}

impl Parts {
    /// The result of a row and a column, if the packet had all bytes for it.
    fn result(&self, row: usize, col: usize) -> Option<u32> {
        let (weights, blocks) = (self.format.weights(), self.k / self.format.weights());
        let row = self
            .weights
            .get(row * blocks * self.format.bytes..)?
            .get(..blocks * self.format.bytes)?;
        let col = self
            .activations
            .get(col * self.k / 32 * 34..)?
            .get(..self.k / 32 * 34)?;
        let mut finite = col.chunks_exact(34).all(|block| is_finite(scale(block, 0)));
        let mut sum = 0;
        for (n, block) in row.chunks_exact(self.format.bytes).enumerate() {
            let scales: Vec<u16> = self
                .format
                .scales
                .iter()
                .map(|&at| scale(block, at))
                .collect();
            finite &= scales.iter().all(|&bits| is_finite(bits));
            let d = fixed(scales[0]);
            let m = scales.get(1).map_or(0, |&bits| fixed(bits));
            for i in 0..weights {
                let at = n * weights + i;
                let activation = &col[at / 32 * 34..];
                let (of_d, of_m) = (self.format.weight)(block, i);
                let weight = of_d * d + of_m * m;
                // A row with a scale that is not finite may overflow; its sum does not count.
                if finite {
                    sum += weight
                        * i128::from(activation[2 + at % 32] as i8)
                        * fixed(scale(activation, 0));
                }
            }
        }
        Some(ws_round::reference(sum, !finite))
    }
}

impl Answer {
    /// No bit of the status says that anything is wrong.
    pub fn is_good(&self) -> bool {
        self.status == 0
    }

    /// Compares what the kernel sent.
    pub fn check(&self, packet: &[u8]) -> Result<(), TestCaseError> {
        prop_assert!(
            packet.len() >= FOOTER && packet.len().is_multiple_of(4),
            "an answer of {} bytes",
            packet.len()
        );
        let (results, footer) = packet.split_at(packet.len() - FOOTER);
        let (tag, status) = (word(footer, 0), word(footer, 1));
        let there = results.len() / 4;
        let (rows, cols) = self.job.as_ref().map_or((0, 1), |job| (job.rows, job.cols));
        prop_assert_eq!(
            format!("tag {tag:#x} status {:#x}", status & !NONFINITE),
            format!("tag {:#x} status {:#x}", self.tag, self.status)
        );
        if self.is_good() {
            prop_assert_eq!(there, rows * cols, "results of a good job");
        } else {
            prop_assert!(there <= rows * cols, "{} results of {}", there, rows * cols);
        }
        let mut nonfinite = false;
        for (n, got) in results.chunks_exact(4).enumerate() {
            let got = word(got, 0);
            nonfinite |= got == 0x7FC0_0000;
            if self.status & BAD_KEEP != 0 {
                continue;
            }
            let right = self
                .job
                .as_ref()
                .and_then(|job| job.result(n / cols, n % cols));
            prop_assert_eq!(Some(got), right, "result {}", n);
        }
        prop_assert_eq!(status & NONFINITE != 0, nonfinite);
        Ok(())
    }
}
