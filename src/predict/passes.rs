//! A pass over the model as the driver sends it: chains of jobs.

use super::host::Costs;
use super::model::{Model, Product};
use super::{Bound, Host, PassPart, Platform, TensorPart, takes};
use crate::quant::q8_0_row_bytes;
use crate::regs::job::{HEADER_BYTES, PART_ALIGN};
use crate::timing::{Accelerator, Causes, Cycles, Job, JobError};

/// A pass that computes `tokens` tokens.
pub(super) struct Pass<'a> {
    pub model: &'a Model,
    pub platform: &'a Platform,
    pub host: &'a Host,
    pub accelerator: &'a Accelerator,
    pub tokens: usize,
    pub context: usize,
}

/// A product's jobs in a pass.
struct Work<'a> {
    product: &'a Product,
    /// Matrices that are used, and columns of each.
    matrices: usize,
    columns: usize,
    jobs: u64,
    bytes: u64,
}

/// Jobs with the same activations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// Each brings its own.
    None,
    /// Those of a tile share: Q, K and V; gate and up.
    InTile,
    /// All of a pass share: gate and up of the experts that one token uses.
    InPass,
}

/// What `times` more of the same take, of which one takes `one` and two `two`.
fn further(one: Cycles, two: Cycles, times: u64) -> Cycles {
    let more = |f: fn(&Causes) -> u64| f(&two.by_cause).saturating_sub(f(&one.by_cause)) * times;
    let by_cause = Causes {
        beats: more(|c| c.beats),
        registers: more(|c| c.registers),
        descriptors: more(|c| c.descriptors),
        memory: more(|c| c.memory),
        parser: more(|c| c.parser),
        lanes: more(|c| c.lanes),
        output: more(|c| c.output),
        drain: more(|c| c.drain),
    };
    Cycles {
        total: two.total.saturating_sub(one.total) * times,
        by_cause,
    }
}

impl Pass<'_> {
    pub fn run(&self) -> Result<PassPart, JobError> {
        let mut part = PassPart {
            tokens: self.tokens,
            jobs: 0,
            chains: 0,
            bytes: 0,
            kernel_ns: 0.0,
            driver_ns: 0.0,
            host_ns: 0.0,
            attention_ns: 0.0,
            left_ns: 0.0,
            tokens_per_s: 0.0,
            kernel_use_of_peak: 0.0,
            use_of_peak: 0.0,
            causes: Causes::default(),
            tensors: Vec::new(),
        };
        for chain in self.model.chains() {
            self.chain(chain, &mut part)?;
        }
        self.host_part(&mut part);
        let all = part.kernel_ns + part.driver_ns + part.host_ns + part.attention_ns + part.left_ns;
        let peak = self.platform.peak_gb_per_s();
        part.tokens_per_s = self.tokens as f64 / all.max(f64::MIN_POSITIVE) * 1e9;
        part.kernel_use_of_peak = part.bytes as f64 / part.kernel_ns.max(f64::MIN_POSITIVE) / peak;
        part.use_of_peak = part.bytes as f64 / all.max(f64::MIN_POSITIVE) / peak;
        Ok(part)
    }

    /// How a product is computed: which matrices, how many columns each. Only the last token of a
    /// pass goes through the output matrix.
    fn work<'p>(&self, product: &'p Product) -> Work<'p> {
        let is_output = !product.layer().starts_with("blk.");
        let tokens = if is_output { 1 } else { self.tokens };
        let matrices = product.matrices.min(product.used * tokens);
        let columns = (product.used * tokens).div_ceil(matrices);
        Work {
            product,
            matrices,
            columns,
            jobs: 0,
            bytes: 0,
        }
    }

    fn chain(&self, chain: &[Product], part: &mut PassPart) -> Result<(), JobError> {
        let (taken, left): (Vec<&Product>, Vec<&Product>) =
            chain.iter().partition(|p| takes(&self.platform.config, p));
        for product in left {
            let work = self.work(product);
            let bytes = product.bytes / product.matrices as u64 * work.matrices as u64;
            let ns = self.host.gb_per_s.map_or(0.0, |rate| bytes as f64 / rate);
            part.left_ns += ns;
            part.tensors.push(TensorPart {
                name: product.name.clone(),
                r#type: product.r#type.clone(),
                k: product.k,
                rows: product.rows,
                jobs: 0,
                bytes: 0,
                cycles: 0.0,
                ns,
                gb_per_s: 0.0,
                bound: Bound::Cpu,
            });
        }
        if taken.is_empty() {
            return Ok(());
        }
        let mut works: Vec<Work<'_>> = taken.into_iter().map(|p| self.work(p)).collect();
        let cycles = self.time(&mut works)?;
        let clock = f64::from(self.platform.clock_mhz);
        let ns = |cycles: f64| cycles * 1e3 / clock;
        part.chains += 1;
        part.kernel_ns += ns(cycles.total as f64);
        part.causes = part.causes + cycles.by_cause;

        // The chain's cycles go to its tensors as each would take by itself.
        let alone = works
            .iter()
            .map(|work| self.alone(work))
            .collect::<Result<Vec<Cycles>, _>>()?;
        let weight = |work: &Work<'_>, alone: &Cycles| work.jobs as f64 * alone.total as f64;
        let all: f64 = works.iter().zip(&alone).map(|(w, a)| weight(w, a)).sum();
        for (work, alone) in works.iter().zip(&alone) {
            let share = cycles.total as f64 * weight(work, alone) / all.max(f64::MIN_POSITIVE);
            part.jobs += work.jobs;
            part.bytes += work.bytes;
            part.tensors.push(TensorPart {
                name: work.product.name.clone(),
                r#type: work.product.r#type.clone(),
                k: work.product.k,
                rows: work.product.rows,
                jobs: work.jobs,
                bytes: work.bytes,
                cycles: share,
                ns: ns(share),
                gb_per_s: work.bytes as f64 / ns(share).max(f64::MIN_POSITIVE),
                bound: Bound::of(&alone.by_cause),
            });
        }
        Ok(())
    }

    /// What the products of a chain take, of engines side by side the slowest; and their jobs and
    /// bytes.
    fn time(&self, works: &mut [Work<'_>]) -> Result<Cycles, JobError> {
        let mut total = Cycles::default();
        let alike = |a: &Work<'_>, b: &Work<'_>| (a.matrices, a.columns) == (b.matrices, b.columns);
        for works in works.chunk_by_mut(alike) {
            total = total + self.group(works)?;
        }
        Ok(total)
    }

    /// As [`Pass::time`], of products with the same matrices and columns: the columns go down in
    /// tiles, full ones and what is over, each with every matrix.
    fn group(&self, works: &mut [Work<'_>]) -> Result<Cycles, JobError> {
        let most = self.platform.config.max_cols;
        let Some(&Work {
            columns, matrices, ..
        }) = works.first()
        else {
            return Ok(Cycles::default());
        };
        let mut total = Cycles::default();
        for (cols, tiles) in [(most, columns / most), (columns % most, 1)] {
            let times = tiles * matrices;
            if cols == 0 || times == 0 {
                continue;
            }
            // The first time costs more than each further one.
            let one = self.repeated(works, cols, 1)?;
            total = total + one;
            if times > 1 {
                let two = self.repeated(works, cols, 2)?;
                total = total + further(one, two, times as u64 - 1);
            }
            self.count(works, cols, times);
        }
        Ok(total)
    }

    /// Adds the jobs and bytes of `times` tiles with `cols` columns.
    fn count(&self, works: &mut [Work<'_>], cols: usize, times: usize) {
        let engines = self.platform.engines as u64;
        let times = times as u64;
        let mut held = false;
        for work in works {
            let p = work.product;
            let brought = match (self.shares(p), held) {
                (Sharing::None, _) | (Sharing::InTile, false) => times,
                (Sharing::InPass, false) => 1,
                (_, true) => 0,
            };
            held = self.shares(p) != Sharing::None;
            let activations = (cols * q8_0_row_bytes(p.k)).next_multiple_of(PART_ALIGN) as u64;
            work.jobs += times * engines;
            work.bytes += times * (p.bytes / p.matrices as u64);
            work.bytes += engines * (times * HEADER_BYTES as u64 + brought * activations);
        }
    }

    /// One chain of all products with `cols` columns each, `times` times.
    fn repeated(&self, works: &[Work<'_>], cols: usize, times: usize) -> Result<Cycles, JobError> {
        let engines = self.platform.engines;
        let chains = (0..engines).map(|engine| {
            let mut jobs: Vec<Job> = Vec::new();
            let mut held = false;
            for work in (0..times).flat_map(|_| works) {
                let p = work.product;
                let (first, end) = (p.rows * engine / engines, p.rows * (engine + 1) / engines);
                let Some(ty) = p.weight_type().filter(|_| first < end) else {
                    continue;
                };
                let sharing = self.shares(p);
                let starts_tile = std::ptr::eq(work.product, works[0].product);
                held &= sharing == Sharing::InPass || (sharing == Sharing::InTile && !starts_tile);
                let mut job = Job::new(ty, p.k, end - first, cols);
                job.reuse = held;
                held = sharing != Sharing::None;
                jobs.push(job);
            }
            jobs
        });
        let chains: Vec<Vec<Job>> = chains.collect();
        let chains: Vec<&[Job]> = chains.iter().map(Vec::as_slice).collect();
        let cycles = self.accelerator.engines(&chains)?;
        Ok(cycles
            .into_iter()
            .max_by_key(|c| c.total)
            .unwrap_or_default())
    }

    /// With which jobs of its chain one of `product` shares its activations.
    fn shares(&self, product: &Product) -> Sharing {
        let experts = product.matrices > 1;
        let down = product.role().starts_with("ffn_down");
        match (experts, self.tokens) {
            (true, 1) if !down => Sharing::InPass,
            (true, _) if down => Sharing::None,
            _ => Sharing::InTile,
        }
    }

    /// A job of `work` by itself, on the first engine.
    fn alone(&self, work: &Work<'_>) -> Result<Cycles, JobError> {
        let cols = work.columns.min(self.platform.config.max_cols);
        self.repeated(std::slice::from_ref(work), cols, 1)
    }

    fn host_part(&self, part: &mut PassPart) {
        let costs = match self.tokens {
            1 => self.host.decode,
            _ => self.host.prefill,
        };
        let Costs {
            chain_ns,
            driver_value_ns,
            host_value_ns,
            token_ns,
        } = costs.unwrap_or_default();
        let in_and_out = self.model.products.iter().map(|p| {
            let work = self.work(p);
            ((p.k + p.rows) * work.matrices * work.columns) as f64
        });
        let values: f64 = in_and_out.sum();
        part.driver_ns = part.chains as f64 * chain_ns + values * driver_value_ns;
        part.host_ns = values * host_value_ns + self.tokens as f64 * token_ns;
        // A pass reads the keys and values of all tokens before it, once.
        let before = if self.tokens == 1 {
            self.context
        } else {
            self.context / 2
        };
        let kv = (self.model.kv_bytes * before as u64) as f64;
        part.attention_ns = self.host.gb_per_s.map_or(0.0, |rate| kv / rate);
    }
}
