//! One engine's shard of matrix products: quantised activations, job headers, results.

use std::time::{Duration, Instant};

use super::engine::{MAX_CHAIN, Packet, Part};
use super::log::Log;
use super::sampler::Sampler;
use super::{Answer, Capabilities, ChainLog, DriverError, Engine, Input, JobLog, MatMul, Stats};
use crate::dma::{Buffer, Heap};
use crate::quant::{q8_0_row_bytes, quantize_q8_0};
use crate::regs::job::{self, FOOTER_BYTES, Footer, HEADER_BYTES, Header, PART_ALIGN};
use crate::sample::{Shape, Tally};
use crate::target::Device;

/// Bytes of DMA memory for the answers of one chain. A job with more results is split by rows.
const ANSWER_BYTES: usize = 4 << 20;
/// Bytes of DMA memory for the activations of one chain, unless one job needs more.
const ACTIVATION_BYTES: usize = 1 << 20;

/// An engine with the DMA memory that jobs need beside their weights.
pub(super) struct Shard {
    pub engine: Engine,
    pub sampler: Option<Sampler>,
    headers: Buffer,
    activations: Buffer,
    answers: Buffer,
    next_tag: u32,
    stats: Stats,
    log: Option<Log>,
}

/// A job in the chain that is being built.
struct Planned {
    packet: Packet,
    /// Offset of its answer.
    answer_at: usize,
    tag: u32,
    /// Index of its product, and the part of it that it computes.
    matmul: usize,
    first_row: usize,
    rows: usize,
    first_col: usize,
    cols: usize,
    /// What preparing it took.
    prepare: Duration,
    /// It uses the activations of the job before.
    reuse: bool,
}

impl Planned {
    fn shape(&self, matmuls: &[MatMul<'_>]) -> Shape {
        let MatMul { ty, k, .. } = matmuls[self.matmul];
        Shape {
            ty,
            k,
            rows: self.rows,
            cols: self.cols,
            reuse: self.reuse,
        }
    }

    fn answer_len(&self) -> usize {
        self.rows * self.cols * 4 + FOOTER_BYTES
    }

    fn bytes(&self) -> u64 {
        self.packet.parts.iter().map(|p| p.len as u64).sum()
    }

    fn weight_bytes(&self) -> u64 {
        self.packet.parts.last().map_or(0, |p| p.len as u64)
    }
}

/// Columns of an input that go down in one job.
struct Tile<'a> {
    input: &'a Input<'a>,
    first_col: usize,
    cols: usize,
    /// The jobs planned so far leave these activations in the kernel.
    held: bool,
}

/// Jobs that go down together, and how much of the scratch buffers they use.
#[derive(Default)]
struct Chain {
    jobs: Vec<Planned>,
    activation_bytes: usize,
    answer_bytes: usize,
}

impl Shard {
    /// Takes the engine over: checks the kernel, resets it, allocates the driver's own buffers.
    pub fn new(
        heap: &Heap,
        device: Box<dyn Device>,
        sample: Option<(Box<dyn Device>, Tally)>,
        length_width: u32,
    ) -> Result<Shard, DriverError> {
        let engine = Engine::new(heap, device, length_width)?;
        let Capabilities {
            max_cols, max_k, ..
        } = engine.capabilities();
        let largest = padded(max_cols * q8_0_row_bytes(max_k));
        Ok(Shard {
            headers: heap.alloc(MAX_CHAIN * HEADER_BYTES)?,
            activations: heap.alloc(largest.max(ACTIVATION_BYTES))?,
            answers: heap.alloc(ANSWER_BYTES)?,
            sampler: sample
                .map(|(device, tally)| Sampler::new(heap, device, length_width, tally))
                .transpose()?,
            engine,
            next_tag: 1,
            stats: Stats::default(),
            log: None,
        })
    }

    /// Keeps a log of the chains from now on, or ends it.
    pub fn set_log(&mut self, on: bool) {
        self.engine.set_log(on);
        self.log = on.then(|| Log::new(self.engine.moment()));
    }

    /// The chains since the last call, while a log is kept.
    pub fn take_log(&mut self) -> Vec<ChainLog> {
        self.log.as_mut().map(Log::take).unwrap_or_default()
    }

    /// Totals since the engine was taken over.
    pub fn stats(&self) -> Stats {
        let work = self.engine.work();
        Stats {
            chains: work.chains,
            kernel_time: work.kernel_time,
            ..self.stats
        }
    }

    /// Computes all `matmuls`, whose shapes have been checked.
    pub fn run(
        &mut self,
        inputs: &[Input<'_>],
        matmuls: &mut [MatMul<'_>],
    ) -> Result<(), DriverError> {
        let max_cols = self.engine.capabilities().max_cols;
        if let Some(log) = &mut self.log {
            log.begin(self.engine.moment());
        }
        let mut chain = Chain::default();
        for (index, input) in inputs.iter().enumerate() {
            for first_col in (0..input.cols()).step_by(max_cols) {
                let cols = max_cols.min(input.cols() - first_col);
                let mut tile = Tile {
                    input,
                    first_col,
                    cols,
                    held: false,
                };
                for m in 0..matmuls.len() {
                    if matmuls[m].input == index {
                        self.plan(&mut chain, &mut tile, matmuls, m)?;
                    }
                }
            }
        }
        self.flush(&mut chain, matmuls)
    }

    /// Adds the jobs that compute one product for the columns of one tile.
    fn plan(
        &mut self,
        chain: &mut Chain,
        tile: &mut Tile<'_>,
        matmuls: &mut [MatMul<'_>],
        index: usize,
    ) -> Result<(), DriverError> {
        let MatMul {
            ty,
            k,
            rows,
            weights,
            ..
        } = matmuls[index];
        let cols = tile.cols;
        let row_bytes = ty.row_bytes(k).expect("k was checked to be whole blocks");
        let most_rows = ((ANSWER_BYTES - FOOTER_BYTES) / (4 * cols)).min(job::MAX_ROWS as usize);
        let activation_len = padded(cols * q8_0_row_bytes(k));
        for first_row in (0..rows).step_by(most_rows) {
            let rows = most_rows.min(rows - first_row);
            let answer_len = rows * cols * 4 + FOOTER_BYTES;
            let brought = if tile.held { 0 } else { activation_len };
            if chain.jobs.len() == MAX_CHAIN
                || chain.activation_bytes + brought > self.activations.len()
                || chain.answer_bytes + answer_len > ANSWER_BYTES
            {
                self.flush(chain, matmuls)?;
            }
            let begin = Instant::now();

            let start = weights + (first_row * row_bytes) as u64;
            let skip = start % self.engine.capabilities().bus_bytes as u64;
            let tag = self.next_tag;
            self.next_tag = self.next_tag.wrapping_add(1);
            let header_at = chain.jobs.len() * HEADER_BYTES;
            let reuse = tile.held;
            let header = Header {
                magic: job::MAGIC,
                version: job::VERSION,
                ty: ty.ggml(),
                k: k as u32,
                rows: rows as u32,
                cols: cols as u32,
                skip: skip as u32,
                flags: if reuse { job::REUSE_ACTIVATIONS } else { 0 },
                tag,
            };
            self.headers.write(header_at, &header.to_bytes())?;
            let mut parts = vec![Part {
                addr: self.headers.device_addr() + header_at as u64,
                len: HEADER_BYTES,
            }];
            if !tile.held {
                let at = chain.activation_bytes;
                self.write_activations(at, tile, k)?;
                parts.push(Part {
                    addr: self.activations.device_addr() + at as u64,
                    len: activation_len,
                });
                chain.activation_bytes += activation_len;
                tile.held = true;
            }
            parts.push(Part {
                addr: start - skip,
                len: skip as usize + rows * row_bytes,
            });
            let answer = Part {
                addr: self.answers.device_addr() + chain.answer_bytes as u64,
                len: answer_len,
            };
            chain.jobs.push(Planned {
                packet: Packet { parts, answer },
                answer_at: chain.answer_bytes,
                tag,
                matmul: index,
                first_row,
                rows,
                first_col: tile.first_col,
                cols,
                prepare: begin.elapsed(),
                reuse,
            });
            chain.answer_bytes += padded(answer_len);
        }
        Ok(())
    }

    fn write_activations(
        &mut self,
        at: usize,
        tile: &Tile<'_>,
        k: usize,
    ) -> Result<(), DriverError> {
        let column_bytes = q8_0_row_bytes(k);
        let (wanted, cols) = (tile.first_col..tile.first_col + tile.cols, tile.cols);
        match tile.input {
            Input::Q8_0(columns) => {
                for (n, column) in columns[wanted].iter().enumerate() {
                    self.activations.write(at + n * column_bytes, column)?;
                }
            }
            Input::F32(columns) => {
                // SAFETY: the buffer is the driver's own, and no chain is under way that reads it.
                let bytes = unsafe { self.activations.slice_mut(at, cols * column_bytes) }?;
                for (column, bytes) in columns[wanted]
                    .iter()
                    .zip(bytes.chunks_exact_mut(column_bytes))
                {
                    quantize_q8_0(column, bytes);
                }
            }
        }
        self.activations
            .sync_for_device(at, padded(cols * column_bytes))?;
        Ok(())
    }

    /// Runs the chain and spreads its answers.
    fn flush(&mut self, chain: &mut Chain, matmuls: &mut [MatMul<'_>]) -> Result<(), DriverError> {
        let Chain { jobs, .. } = std::mem::take(chain);
        if jobs.is_empty() {
            return Ok(());
        }
        self.headers.sync_for_device(0, jobs.len() * HEADER_BYTES)?;
        let packets: Vec<Packet> = jobs.iter().map(|j| j.packet.clone()).collect();
        let expected = match &mut self.sampler {
            Some(sampler) => {
                let shapes: Vec<Shape> = jobs.iter().map(|j| j.shape(matmuls)).collect();
                sampler.run(&shapes, &packets, &self.answers)?
            }
            None => None,
        };
        let answers = self.engine.run(&packets)?;
        if let Some(expected) = expected {
            Sampler::compare(&packets, &expected, &answers, &self.answers)?;
        }
        let mut noted = Vec::new();
        let taken = jobs.iter().zip(answers).try_for_each(|(job, answer)| {
            let begin = Instant::now();
            let footer = self.take_answer(job, answer, &mut matmuls[job.matmul])?;
            if self.log.is_some() {
                noted.push(note(job, footer, begin.elapsed()));
            }
            Ok(())
        });
        if taken.is_err() {
            // A refused job leaves the kernel without activations; nothing of this run goes on.
            self.engine.recover();
        } else if let Some(log) = &mut self.log {
            log.add(self.engine.take_log(), noted, self.engine.moment());
        }
        taken
    }

    fn take_answer(
        &mut self,
        job: &Planned,
        answer: Answer,
        matmul: &mut MatMul<'_>,
    ) -> Result<Footer, DriverError> {
        let (tag, expected, found) = (job.tag, job.answer_len(), answer.len);
        let results_len = found.checked_sub(FOOTER_BYTES);
        let Some(results_len) = results_len.filter(|_| found <= expected) else {
            return Err(DriverError::AnswerLength {
                tag,
                expected,
                found,
            });
        };
        self.answers.sync_for_cpu(job.answer_at, found)?;
        let mut footer = [0; FOOTER_BYTES];
        self.answers
            .read(job.answer_at + results_len, &mut footer)?;
        let footer = Footer::from_bytes(&footer);
        if footer.tag != tag {
            return Err(DriverError::WrongTag {
                expected: tag,
                found: footer.tag,
            });
        }
        if !footer.status.is_good() {
            let MatMul { ty, k, .. } = *matmul;
            let (rows, cols, status) = (job.rows, job.cols, footer.status);
            return Err(DriverError::Refused {
                tag,
                ty,
                k,
                rows,
                cols,
                status,
            });
        }
        if found != expected {
            return Err(DriverError::AnswerLength {
                tag,
                expected,
                found,
            });
        }
        self.stats.jobs += 1;
        self.stats.nonfinite_jobs += u64::from(footer.status.is_nonfinite());
        self.stats.bytes_streamed += job.bytes();
        self.stats.weight_bytes += job.weight_bytes();

        // SAFETY: the buffer is the driver's own, and the chain that wrote it has ended.
        let results = unsafe { self.answers.slice(job.answer_at, results_len) }?;
        let rows = job.first_row..job.first_row + job.rows;
        let columns = &mut matmul.out[job.first_col..job.first_col + job.cols];
        for (n, column) in columns.iter_mut().enumerate() {
            let of_column = results.chunks_exact(4).skip(n).step_by(job.cols);
            for (y, bytes) in column[rows.clone()].iter_mut().zip(of_column) {
                *y = f32::from_le_bytes(bytes.try_into().expect("chunks of 4 bytes"));
            }
        }
        Ok(footer)
    }
}

fn note(job: &Planned, footer: Footer, results: Duration) -> JobLog {
    JobLog {
        matmul: job.matmul,
        rows: job.rows,
        cols: job.cols,
        bytes: job.bytes(),
        weight_bytes: job.weight_bytes(),
        answer_bytes: job.answer_len() as u64,
        cycles: (footer.cycles > 0).then_some(footer.cycles),
        prepare: job.prepare,
        results,
    }
}

/// `len` padded as a part of a job packet is.
fn padded(len: usize) -> usize {
    len.next_multiple_of(PART_ALIGN)
}
