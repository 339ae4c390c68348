//! The model's jobs, from the write of `TAILDESC` to the results in memory, at the shapes of a
//! small model's layers and output; with SIMD and without, on one thread and on all.
//!
//! Every shape has as many copies as fill 96 MiB, used in turn, so that weights come from where
//! they come from when a token is decoded. `read` shows what memory gives.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use weightstream::dma::{Buffer, Coherence, Heap, SimMemory};
use weightstream::quant::{WeightType, q8_0_row_bytes, quantize_q8_0};
use weightstream::regs::axi_dma::{
    CURDESC, CURDESC_MSB, DMACR, MM2S, S2MM, TAILDESC, TAILDESC_MSB, cr, desc,
};
use weightstream::regs::job::{FOOTER_BYTES, Footer, HEADER_BYTES, Header, MAGIC, VERSION};
use weightstream::target::model::{ModelConfig, ModelDevice, Simd};
use weightstream::target::{Device, Window};

const COPIES_BYTES: usize = 96 << 20;

/// Rings of one job for each copy of a weight matrix.
struct Jobs {
    device: ModelDevice,
    memory: Buffer,
    /// Offset of each copy's three MM2S descriptors; its S2MM descriptor follows them.
    copies: usize,
    next: usize,
    /// Where the results are.
    results: usize,
    results_len: usize,
}

/// Bytes of a job's descriptors.
const RING_STEP: usize = 4 * 64;

impl Jobs {
    fn new(
        ty: WeightType,
        (rows, k, cols): (usize, usize, usize),
        simd: Simd,
        threads: usize,
    ) -> Jobs {
        let row_bytes = ty.row_bytes(k).expect("whole blocks");
        let matrix = (rows * row_bytes).next_multiple_of(4096);
        let copies = (COPIES_BYTES / matrix).max(1);
        let activations = (cols * q8_0_row_bytes(k)).next_multiple_of(64);
        let results_len = rows * cols * 4 + FOOTER_BYTES;

        let header_at = (copies * RING_STEP).next_multiple_of(64);
        let activations_at = header_at + HEADER_BYTES;
        let results = (activations_at + activations).next_multiple_of(64);
        let weights = (results + results_len).next_multiple_of(4096);
        let len = (weights + copies * matrix).next_multiple_of(4096);
        let arena = SimMemory::new(len, 0x8_0000_0000, Coherence::Coherent, 1).unwrap();
        let arena = Arc::new(arena);
        let memory = Heap::new(arena.clone()).unwrap().alloc(len).unwrap();
        let base = memory.device_addr();

        let header = Header {
            magic: MAGIC,
            version: VERSION,
            ty: ty.ggml(),
            k: k as u32,
            rows: rows as u32,
            cols: cols as u32,
            skip: 0,
            flags: 0,
            tag: 1,
        };
        memory.write(header_at, &header.to_bytes()).unwrap();
        let mut rng = SmallRng::seed_from_u64(7);
        let q8_0 = blocks(&mut rng, WeightType::Q8_0, k * cols);
        memory.write(activations_at, &q8_0).unwrap();
        for copy in 0..copies {
            let bytes = blocks(&mut rng, ty, rows * k);
            memory.write(weights + copy * matrix, &bytes).unwrap();
            let parts = [
                (header_at, HEADER_BYTES as u32),
                (activations_at, activations as u32),
                (
                    weights + copy * matrix,
                    (rows * row_bytes) as u32 | desc::TXEOF,
                ),
                (results, results_len as u32),
            ];
            for (i, (at, control)) in parts.into_iter().enumerate() {
                let own = copy * RING_STEP + i * 64;
                let next_copy = (copy + 1) % copies * RING_STEP;
                let next = match i {
                    0 | 1 => own + 64,
                    2 => next_copy,
                    _ => next_copy + 192,
                };
                let mut bytes = [0; 64];
                let mut put = |at: usize, value: u64| {
                    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                };
                put(desc::NXTDESC, base + next as u64);
                put(desc::BUFFER_ADDRESS, base + at as u64);
                put(desc::CONTROL, control.into());
                memory.write(own, &bytes).unwrap();
            }
        }

        let config = ModelConfig {
            simd,
            threads,
            ..ModelConfig::default()
        };
        let mut jobs = Jobs {
            device: ModelDevice::new(arena, config),
            memory,
            copies,
            next: 0,
            results,
            results_len,
        };
        for (channel, first) in [(MM2S, base), (S2MM, base + 192)] {
            jobs.set(channel + CURDESC, first as u32);
            jobs.set(channel + CURDESC_MSB, (first >> 32) as u32);
            jobs.set(channel + TAILDESC_MSB, (first >> 32) as u32);
            jobs.set(channel + DMACR, cr::RESET_VALUE | cr::RS | cr::IOC_IRQ_EN);
        }
        jobs
    }

    fn set(&mut self, register: u32, value: u32) {
        self.device.write32(Window::Dma, register, value).unwrap();
    }

    /// Runs the next copy's job.
    fn run(&mut self) {
        let ring = self.next * RING_STEP;
        self.next = (self.next + 1) % self.copies;
        for i in 0..4 {
            self.memory
                .write(ring + i * 64 + desc::STATUS, &[0; 4])
                .unwrap();
        }
        let at = self.memory.device_addr() as u32 + ring as u32;
        self.set(S2MM + TAILDESC, at + 192);
        self.set(MM2S + TAILDESC, at + 128);
        assert!(self.device.wait_interrupt().unwrap().s2mm);
    }

    /// Fails if the last job did.
    fn check(&self) {
        let mut footer = [0; FOOTER_BYTES];
        let at = self.results + self.results_len - FOOTER_BYTES;
        self.memory.read(at, &mut footer).unwrap();
        assert_eq!(Footer::from_bytes(&footer).status.0, 0);
    }
}

/// Blocks of `weights` weights with random quants and scales like those of real ones.
fn blocks(rng: &mut SmallRng, ty: WeightType, weights: usize) -> Vec<u8> {
    let mut bytes = vec![0; weights / ty.block_len() * ty.block_bytes()];
    rng.fill_bytes(&mut bytes);
    for block in bytes.chunks_exact_mut(ty.block_bytes()) {
        let scales: &[usize] = match ty {
            WeightType::Q4_0 | WeightType::Q5_0 | WeightType::Q8_0 => &[0],
            WeightType::Q4_1 | WeightType::Q5_1 | WeightType::Q4_K | WeightType::Q5_K => &[0, 2],
            WeightType::Q2_K => &[80, 82],
            WeightType::Q3_K => &[108],
            WeightType::Q6_K => &[208],
        };
        for at in scales {
            // 2^-8 to 2^-4.
            block[at + 1] = 0x1C + (block[at + 1] & 0xF);
        }
    }
    bytes
}

/// Reads `bytes` once, each thread its part.
fn read(bytes: &[u64], threads: usize) {
    std::thread::scope(|scope| {
        for part in bytes.chunks(bytes.len().div_ceil(threads)) {
            scope.spawn(|| black_box(part.iter().fold(0u64, |sum, v| sum.wrapping_add(*v))));
        }
    });
}

fn bench_read(c: &mut Criterion) {
    let words = vec![1u64; (256 << 20) / 8];
    let mut group = group(c, "read");
    group.throughput(Throughput::Bytes(8 * words.len() as u64));
    for threads in [1, cores()] {
        let name = format!("256MiB/{threads}t");
        group.bench_function(name, |b| b.iter(|| read(&words, threads)));
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn group<'a>(
    c: &'a mut Criterion,
    name: &str,
) -> BenchmarkGroup<'a, criterion::measurement::WallTime> {
    let mut group = c.benchmark_group(name);
    group.sample_size(20);
    group.warm_up_time(std::time::Duration::from_millis(300));
    group.measurement_time(std::time::Duration::from_secs(1));
    group
}

/// Types, rows, k, columns.
const SHAPES: [(WeightType, usize, usize, usize); 10] = [
    (WeightType::Q4_1, 192, 576, 1),
    (WeightType::Q4_1, 576, 576, 1),
    (WeightType::Q4_1, 1536, 576, 1),
    (WeightType::Q4_1, 576, 1536, 1),
    (WeightType::Q4_0, 576, 1536, 1),
    (WeightType::Q8_0, 576, 1536, 1),
    (WeightType::Q8_0, 49152, 576, 1),
    (WeightType::Q4_1, 1536, 576, 64),
    (WeightType::Q4_0, 1536, 576, 64),
    (WeightType::Q8_0, 1536, 576, 64),
];

fn bench_jobs(c: &mut Criterion) {
    for (ty, rows, k, cols) in SHAPES {
        let bytes = rows * ty.row_bytes(k).expect("whole blocks");
        let mut group = group(c, &format!("{ty}/{rows}x{k}x{cols}"));
        group.throughput(Throughput::Bytes(bytes as u64));
        for (name, simd) in [("simd", Simd::Auto), ("portable", Simd::Off)] {
            for threads in [1, cores()] {
                let mut jobs = Jobs::new(ty, (rows, k, cols), simd, threads);
                group.bench_function(format!("{name}/{threads}t"), |b| {
                    b.iter(|| jobs.run());
                    jobs.check();
                });
            }
        }
    }
}

/// Activations of a column, as the host quantises them.
fn bench_quantize(c: &mut Criterion) {
    let mut group = group(c, "quantize");
    for k in [576, 1536] {
        let mut rng = SmallRng::seed_from_u64(3);
        let x: Vec<f32> = (0..k).map(|_| rng.random_range(-4.0..4.0)).collect();
        let mut out = vec![0; q8_0_row_bytes(k)];
        group.throughput(Throughput::Elements(k as u64));
        group.bench_function(k.to_string(), |b| {
            b.iter(|| quantize_q8_0(black_box(&x), &mut out))
        });
    }
}

criterion_group!(benches, bench_read, bench_quantize, bench_jobs);
criterion_main!(benches);
