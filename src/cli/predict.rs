//! `weightstream predict`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{ArgGroup, Args as ClapArgs, ValueEnum};
use comfy_table::{CellAlignment, Table};
use weightstream::gguf::Gguf;
use weightstream::predict::arch::Arch;
use weightstream::predict::host::Host;
use weightstream::predict::model::Model;
use weightstream::predict::sweep::{self, Point, Values};
use weightstream::predict::{PassPart, Prediction, Request, TensorPart, plot, predict};
use weightstream::profile::{Profile, layer_of, role_of};
use weightstream::quant::WeightType;

use super::out::{OutputFile, write_json};
use super::platform::BoardArgs;

/// Tell what a model would reach on a board: tokens a second, what bounds each tensor, what fits.
///
/// The device's time is that of the timing model, with the jobs that the driver would send; the
/// host's comes from a measured profile, or is given. Needs a model's header alone.
#[derive(ClapArgs)]
#[command(group = ArgGroup::new("of").required(true).args(["model", "arch"]))]
pub struct Args {
    /// The model's GGUF file; it may end behind its header.
    #[arg(short, long, value_name = "MODEL.gguf")]
    model: Option<PathBuf>,
    /// A model's description, as in archs/.
    #[arg(long, value_name = "FILE")]
    arch: Option<PathBuf>,
    /// Weight type of the description's layers, in place of its own.
    #[arg(long, value_name = "TYPE", requires = "arch")]
    r#type: Option<WeightType>,
    #[command(flatten)]
    board: BoardArgs,
    #[command(flatten)]
    host: HostArgs,
    /// Tokens in the text when a token is decoded, and of a prompt.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    context: u32,
    /// Most tokens of a prompt computed at once.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    batch: u32,
    /// Rows of the table.
    #[arg(long, value_enum, default_value_t = By::Role)]
    by: By,
    /// Vary this, as in clock=150,200,250; can be repeated, and all combinations are taken. There
    /// are clock, width, blocks, engines, cols, max-k and context.
    #[arg(long, value_name = "AXIS=VALUE,...")]
    sweep: Vec<Values>,
    /// Write the sweep as CSV to this file.
    #[arg(long, value_name = "FILE", requires = "sweep")]
    csv: Option<PathBuf>,
    /// Draw the sweep, tokens a second over the share of the part, as SVG to this file.
    #[arg(long, value_name = "FILE", requires = "sweep")]
    plot: Option<PathBuf>,
    /// Write the prediction, or the sweep, as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is known of the host.
#[derive(ClapArgs)]
struct HostArgs {
    /// Take driver and CPU from this profile, which `weightstream profile --json` wrote on the
    /// host; they are scaled by the values that go into products and come out.
    #[arg(long, value_name = "PROFILE.json", conflicts_with = "host_ms")]
    host: Option<PathBuf>,
    /// Driver and CPU take so many ms a token.
    #[arg(long, value_name = "MS", value_parser = not_negative)]
    host_ms: Option<f64>,
    /// GB/s at which the CPU reads keys and values, and weights that the kernel does not take; in
    /// place of what the board's file says.
    #[arg(long, value_name = "GB/s", value_parser = positive)]
    host_bandwidth: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Each tensor.
    Tensor,
    /// Each layer.
    Layer,
    /// What tensors are within their layers: attn_q, ffn_down and so on.
    Role,
}

fn positive(text: &str) -> Result<f64, String> {
    not_negative(text).and_then(|v| match v > 0.0 {
        true => Ok(v),
        false => Err("not more than 0".into()),
    })
}

fn not_negative(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    match value.is_finite() && value >= 0.0 {
        true => Ok(value),
        false => Err("not a number of at least 0".into()),
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let json = OutputFile::create("--json", args.json.as_deref())?;
    let csv = OutputFile::create("--csv", args.csv.as_deref())?;
    let svg = OutputFile::create("--plot", args.plot.as_deref())?;
    let model = args.described()?;
    let (platform, part, host_rate) = args.board.platform()?;
    let host = args.host.host(host_rate)?;
    let request = Request {
        context: args.context as usize,
        batch: args.batch as usize,
    };
    if args.sweep.is_empty() {
        let prediction = predict(&model, &platform, &host, request)?;
        write_json(json, &prediction)?;
        print(&prediction, args.by);
        return Ok(ExitCode::SUCCESS);
    }
    let points = sweep::sweep(&model, &platform, &host, request, &args.sweep, &part)?;
    write_json(json, &points)?;
    if let Some(file) = csv {
        file.write(&sweep::csv(&points)?)?;
    }
    if let Some(file) = svg {
        let title = format!("{}, {part}, context {}", model.name, args.context);
        file.write(plot::svg(&points, &title).as_bytes())?;
    }
    print_sweep(&points);
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn described(&self) -> anyhow::Result<Model> {
        if let Some(path) = &self.arch {
            let arch = Arch::read(path)?;
            return arch
                .model(self.r#type)
                .map_err(|e| anyhow!("{}: {e}", path.display()));
        }
        let path = self.model.as_deref().unwrap_or(Path::new(""));
        let gguf = Gguf::open_header(path)?;
        let name = path.file_name().unwrap_or_default();
        Ok(Model::from_gguf(&gguf, &name.to_string_lossy()))
    }
}

impl HostArgs {
    /// `board_rate` is what the board's file says, GB/s.
    fn host(&self, board_rate: Option<f64>) -> anyhow::Result<Host> {
        let rate = self.host_bandwidth.or(board_rate);
        Ok(match (&self.host, self.host_ms) {
            (Some(path), _) => Host::measured(&Profile::read(path)?, rate),
            (None, Some(ms)) => Host::given(ms, rate),
            (None, None) => Host {
                gb_per_s: rate,
                ..Host::default()
            },
        })
    }
}

fn print(p: &Prediction, by: By) {
    println!("{}, context {}", p.model, p.context);
    print_pass("decode", &p.decode);
    print_pass("prefill", &p.prefill);
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let fit = &p.fit;
    println!(
        "memory: {:.1} MB of weights in DMA buffers of {:.1} MB{}; on the host {:.1} MB of keys and values, {:.1} MB of other tensors, {:.1} MB of weights left to the CPU",
        mb(fit.weight_bytes),
        mb(fit.dma_bytes),
        if fit.fits {
            ", which fits"
        } else {
            ": DOES NOT FIT"
        },
        mb(fit.kv_bytes),
        mb(fit.other_bytes),
        mb(fit.left_bytes),
    );
    if !p.not_counted.is_empty() {
        println!(
            "not counted, since nothing is said of it: {}",
            p.not_counted.join("; ")
        );
    }
    let mut table = Table::new();
    table.set_header([
        "a token",
        "type",
        "k",
        "rows",
        "jobs",
        "MB",
        "cycles",
        "us",
        "GB/s",
        "bound by",
        "prefill by",
    ]);
    for (row, prefill) in rows(&p.decode.tensors, &p.prefill.tensors, by) {
        table.add_row([
            row.name.clone(),
            row.r#type.clone(),
            shown(row.k),
            shown(row.rows),
            row.jobs.to_string(),
            format!("{:.3}", row.bytes as f64 / 1e6),
            format!("{:.0}", row.cycles),
            format!("{:.1}", row.ns / 1e3),
            format!("{:.2}", row.gb_per_s),
            row.bound.clone(),
            prefill,
        ]);
    }
    for column in table.column_iter_mut().skip(2).take(7) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
}

/// A size, where the row has one.
fn shown(size: usize) -> String {
    match size {
        0 => String::new(),
        n => n.to_string(),
    }
}

fn print_pass(what: &str, p: &PassPart) {
    let all = p.kernel_ns + p.driver_ns + p.host_ns + p.attention_ns + p.left_ns;
    let part = |ns: f64| 100.0 * ns / all.max(f64::MIN_POSITIVE);
    println!(
        "{what}: {:.2} tokens/s; {:.3} ms for {} {}: kernel {:.1} %, driver {:.1} %, CPU operations {:.1} %, keys and values {:.1} %, weights on the CPU {:.1} %",
        p.tokens_per_s,
        all / 1e6,
        p.tokens,
        if p.tokens == 1 { "token" } else { "tokens" },
        part(p.kernel_ns),
        part(p.driver_ns),
        part(p.host_ns),
        part(p.attention_ns),
        part(p.left_ns),
    );
    println!(
        "  {:.3} MB in {} jobs and {} chains; {:.1} % of the memory's peak while the kernel works, {:.1} % in all",
        p.bytes as f64 / 1e6,
        p.jobs,
        p.chains,
        100.0 * p.kernel_use_of_peak,
        100.0 * p.use_of_peak,
    );
}

/// A row of the table: tensors taken together.
struct Row {
    name: String,
    r#type: String,
    k: usize,
    rows: usize,
    jobs: u64,
    bytes: u64,
    cycles: f64,
    ns: f64,
    gb_per_s: f64,
    bound: String,
}

fn rows(decode: &[TensorPart], prefill: &[TensorPart], by: By) -> Vec<(Row, String)> {
    let key = |t: &TensorPart| match by {
        By::Tensor => t.name.clone(),
        By::Layer => layer_of(&t.name).to_string(),
        By::Role => role_of(&t.name).to_string(),
    };
    let mut keys: Vec<String> = Vec::new();
    for tensor in decode {
        let key = key(tensor);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let of = |tensors: &[TensorPart], name: &str| -> Vec<TensorPart> {
        tensors.iter().filter(|t| key(t) == name).cloned().collect()
    };
    let rows = keys.into_iter().map(|name| {
        let tensors = of(decode, &name);
        let same = |f: &dyn Fn(&TensorPart) -> String| {
            let mut values: Vec<String> = tensors.iter().map(f).collect();
            values.sort();
            values.dedup();
            values.join(", ")
        };
        let size = |f: fn(&TensorPart) -> usize| {
            let first = tensors.first().map_or(0, f);
            if tensors.iter().all(|t| f(t) == first) {
                first
            } else {
                0
            }
        };
        let ns: f64 = tensors.iter().map(|t| t.ns).sum();
        let bytes: u64 = tensors.iter().map(|t| t.bytes).sum();
        let row = Row {
            r#type: same(&|t| t.r#type.clone()),
            k: size(|t| t.k),
            rows: size(|t| t.rows),
            jobs: tensors.iter().map(|t| t.jobs).sum(),
            bytes,
            cycles: tensors.iter().map(|t| t.cycles).sum(),
            ns,
            gb_per_s: bytes as f64 / ns.max(f64::MIN_POSITIVE),
            bound: same(&|t| t.bound.name().into()),
            name: name.clone(),
        };
        let mut bounds: Vec<_> = of(prefill, &name).iter().map(|t| t.bound.name()).collect();
        bounds.sort_unstable();
        bounds.dedup();
        (row, bounds.join(", "))
    });
    rows.collect()
}

fn print_sweep(points: &[Point]) {
    let mut table = Table::new();
    table.set_header([
        "MHz",
        "configuration",
        "engines",
        "cols",
        "max k",
        "context",
        "decode, tokens/s",
        "prefill, tokens/s",
        "of peak",
        "LUT",
        "DSP",
        "BRAM36",
        "of part",
        "Pareto",
    ]);
    let count = |v: Option<f64>| v.map_or("?".into(), |v| format!("{v}"));
    for p in points {
        table.add_row([
            format!("{}", p.clock_mhz),
            format!("w{}b{}", p.width, p.blocks),
            p.engines.to_string(),
            p.cols.to_string(),
            p.max_k.to_string(),
            p.context.to_string(),
            format!("{:.3}", p.decode_tokens_per_s),
            format!("{:.2}", p.prefill_tokens_per_s),
            format!("{:.1} %", 100.0 * p.use_of_peak),
            count(p.lut),
            count(p.dsp),
            count(p.bram36),
            p.part_percent.map_or("?".into(), |v| format!("{v:.0} %")),
            if p.pareto { "*".into() } else { String::new() },
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
}
