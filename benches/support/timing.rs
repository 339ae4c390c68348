//! Random jobs, timed on the RTL and by the model.

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use weightstream::driver::{Accelerator, Input, MatMul};
use weightstream::memory::Setting;
use weightstream::quant::{WeightType, q8_0_row_bytes};
use weightstream::target::{Conditions, Stalls, TargetOptions, TargetSpec, open};
use weightstream::timing::{self, Config, Cycles, Job};

/// How a draw is bounded.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Most products of a weight and an activation.
    pub products: usize,
    /// Stalls are drawn too.
    pub stalls: bool,
    /// The preset of a DRAM, with a clock that is drawn, in place of a latency.
    pub dram: Option<&'static str>,
}

/// A job and the memory it runs with.
#[derive(Clone, Debug)]
pub struct Draw {
    pub target: TargetSpec,
    pub config: Config,
    pub conditions: Conditions,
    pub job: Job,
    pub seed: u64,
}

/// What it took.
#[derive(Clone, Debug)]
pub struct Measured {
    pub draw: Draw,
    /// On the RTL, a seed of stalls each.
    pub runs: Vec<u64>,
    pub model: Cycles,
}

impl Measured {
    /// On the RTL, the mean of the seeds.
    pub fn rtl(&self) -> f64 {
        self.runs.iter().sum::<u64>() as f64 / self.runs.len() as f64
    }

    /// The model's error, relative to the RTL.
    pub fn error(&self) -> f64 {
        self.model.total as f64 / self.rtl() - 1.0
    }

    /// The same, relative to the first seed's run alone.
    pub fn error_of_one(&self) -> f64 {
        self.model.total as f64 / self.runs[0] as f64 - 1.0
    }
}

/// The job number `index` of a seed's series, on one of `targets`.
pub fn draw(seed: u64, index: u64, targets: &[TargetSpec], bounds: Bounds) -> Draw {
    let mut rng = SmallRng::seed_from_u64(seed.wrapping_mul(1 << 32).wrapping_add(index));
    let target = targets[rng.random_range(0..targets.len())].clone();
    let config = config(&target);
    let types: Vec<WeightType> = WeightType::all().collect();
    let ty = types[rng.random_range(0..types.len())];
    let cols = match rng.random_range(0..2) {
        0 => 1,
        _ => rng.random_range(1..=config.max_cols),
    };
    let block = ty.block_len();
    let blocks = log_uniform(&mut rng, 1, config.max_k / block);
    let k = blocks * block;
    let most = (bounds.products / (k * cols)).clamp(1, 4096);
    let rows = log_uniform(&mut rng, most.div_ceil(50), most);
    let latency = log_uniform(&mut rng, 1, 200) as u32;
    let clock = rng.random_range(100..=300);
    let setting = |name| Setting::new(name, clock).expect("a preset");
    let mut stalls = [0; 15];
    if bounds.stalls && rng.random_range(0..2) == 0 {
        // On the memory's channels and, as often as not, on the registers' too.
        for (n, percent) in stalls.iter_mut().enumerate() {
            if n >= 5 || rng.random_range(0..2) == 0 {
                *percent = rng.random_range(0..=30);
            }
        }
    }
    let mut job = Job::new(ty, k, rows, cols);
    job.weights = rng.random_range(0..4096u64);
    Draw {
        target,
        config,
        conditions: Conditions {
            latency,
            dram: bounds.dram.map(setting),
            stalls: Stalls(stalls),
            ..Conditions::default()
        },
        job,
        seed: rng.next_u64() >> 1,
    }
}

/// A number whose logarithm is uniform.
fn log_uniform(rng: &mut SmallRng, least: usize, most: usize) -> usize {
    let (least, most) = (least as f64, most as f64 + 1.0);
    let drawn = least * (most / least).powf(rng.random_range(0.0..1.0));
    (drawn as usize).clamp(least as usize, most as usize - 1)
}

/// The parameters of a configuration of the build, which its name tells.
pub fn config(target: &TargetSpec) -> Config {
    let name = target.to_string();
    let numbers = name
        .rsplit('w')
        .next()
        .and_then(|rest| rest.split_once('b'))
        .and_then(|(width, blocks)| Some((width.parse().ok()?, blocks.parse().ok()?)));
    let (width, blocks): (usize, usize) = numbers.expect("the name of a configuration");
    Config::new(width / 8, blocks)
}

/// Stalls are random on the RTL and taken at their mean by the model, so that a job with stalls runs
/// with several seeds.
const SEEDS: u64 = 4;

/// Runs a draw on the RTL and on the model.
pub fn measure(draw: &Draw) -> Measured {
    let seeds = match draw.conditions.stalls.is_empty() {
        true => 1,
        false => SEEDS,
    };
    let runs = (0..seeds).map(|n| run(draw, draw.seed + n)).collect();
    let model = timing::Accelerator::new(&draw.config, &draw.conditions)
        .job(&draw.job)
        .expect("the configuration can do it");
    Measured {
        draw: draw.clone(),
        runs,
        model,
    }
}

/// The RTL's cycles of a draw, with the stalls of `seed`.
fn run(draw: &Draw, seed: u64) -> u64 {
    let options = TargetOptions {
        heap_bytes: 256 << 20,
        seed,
        conditions: draw.conditions.clone(),
        ..TargetOptions::default()
    };
    let opened = open(&draw.target, &options).expect("the target opens");
    let mut accelerator = Accelerator::new(opened).expect("the driver starts");
    let Job {
        ty, k, rows, cols, ..
    } = draw.job;
    let at = draw.job.weights as usize;
    let bytes = rows * ty.row_bytes(k).expect("whole blocks");
    let weights = accelerator.heap().alloc(at + bytes).expect("it has room");
    // Fresh memory holds random bytes, which are weights as good as any.
    weights.sync_for_device(at, bytes).expect("it is ours");
    let column: Vec<u8> = (0..q8_0_row_bytes(k)).map(|n| n as u8).collect();
    let mut results = vec![0f32; rows * cols];
    let before = accelerator.activity().expect("RTL has a clock").cycles;
    let mut matmul = [MatMul {
        weights: weights.device_addr() + at as u64,
        ty,
        k,
        rows,
        input: 0,
        out: results.chunks_exact_mut(rows).collect(),
    }];
    accelerator
        .run(&[Input::Q8_0(vec![&column; cols])], &mut matmul)
        .expect("the job runs");
    accelerator.activity().expect("RTL has a clock").cycles - before
}

/// The middle of the sizes of `errors`, and the largest.
pub fn median_and_worst(errors: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut sizes: Vec<f64> = errors.map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    (
        sizes.get(sizes.len() / 2).copied().unwrap_or(0.0),
        sizes.last().copied().unwrap_or(0.0),
    )
}
