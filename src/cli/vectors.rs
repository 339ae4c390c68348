//! `weightstream vectors`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use anyhow::Context;
use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, Table, TableStyle};
use regex::Regex;
use weightstream::gguf::{Gguf, TensorInfo};
use weightstream::regress::in_order;
use weightstream::vectors::exact::{self, Inexact};
use weightstream::vectors::{self, Case, Noise, from_tensor, weight_type};

use super::report::count_bar;

/// Inexact values shown of one file.
const SHOWN: usize = 4;

/// Make, show and check vectors.
#[derive(Subcommand)]
pub enum Command {
    Make(MakeArgs),
    Show(ShowArgs),
    Check(CheckArgs),
}

/// Make vectors from a model's own weights, with exact results.
#[derive(Args)]
pub struct MakeArgs {
    /// The model.
    #[arg(short, long, value_name = "MODEL.gguf")]
    model: PathBuf,
    /// The tensors: one vector for each whose whole name matches and whose type the kernel knows.
    #[arg(long, value_name = "REGEX")]
    tensor: Regex,
    /// Rows of each tensor, from FIRST to before END.
    #[arg(long, value_name = "FIRST..END", default_value = "0..16", value_parser = rows)]
    rows: Range<u64>,
    /// Columns of activations.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65536))]
    cols: u32,
    /// Seed of random activations.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Take the activations from llama.cpp's forward pass over this text instead: those of its
    /// last tokens.
    #[cfg(feature = "llama")]
    #[arg(short, long, value_name = "TEXT", conflicts_with = "seed")]
    prompt: Option<String>,
    /// The folder they are written to, which is made if need be; a file is called as its tensor.
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

/// Show a vector as a table.
#[derive(Args)]
pub struct ShowArgs {
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Rows shown, from FIRST to before END.
    #[arg(long, value_name = "FIRST..END", default_value = "0..16", value_parser = rows)]
    rows: Range<u64>,
}

/// Check vectors' format, and their values against exact ones.
///
/// Exit status: 0 all is well, 1 a value is not exact, 2 a file breaks the format.
#[derive(Args)]
pub struct CheckArgs {
    /// Vector files, folders of them, or patterns.
    #[arg(value_name = "PATH", default_value = "vectors", num_args = 1..)]
    paths: Vec<PathBuf>,
}

fn rows(text: &str) -> Result<Range<u64>, String> {
    let range = text
        .split_once("..")
        .and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?))
        .filter(|range: &Range<u64>| !range.is_empty());
    range.ok_or_else(|| format!("{text:?} is not FIRST..END with END beyond FIRST"))
}

pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Make(args) => make(args),
        Command::Show(args) => show(args),
        Command::Check(args) => check(args),
    }
}

fn make(args: MakeArgs) -> anyhow::Result<ExitCode> {
    let gguf = Gguf::open(&args.model)?;
    let chosen = choose(&gguf, &args)?;
    let columns = Columns::of(&args, &chosen)?;
    for tensor in chosen {
        let (x, origin) = columns.of_tensor(tensor, args.cols as usize)?;
        let mut case = from_tensor(&gguf, tensor, args.rows.clone(), &x)?;
        let model = args.model.file_name().unwrap_or_default().to_string_lossy();
        let Range { start, end } = args.rows;
        let source = format!(
            "{model}, tensor {}, rows {start} to {}",
            tensor.name,
            end - 1
        );
        case.notes.insert("source".into(), source);
        case.notes.extend(origin);
        // A name may hold what is no part of a file's name.
        let name = tensor.name.replace('/', "_");
        let path = args.out.join(format!("{name}.safetensors"));
        std::fs::create_dir_all(&args.out)
            .with_context(|| format!("cannot make --out {}", args.out.display()))?;
        case.write(&path)?;
        println!(
            "{}: {}, k {}, rows {}, cols {}",
            path.display(),
            case.ty,
            case.k,
            case.rows,
            case.cols
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The tensors that the arguments name.
fn choose<'g>(gguf: &'g Gguf, args: &MakeArgs) -> anyhow::Result<Vec<&'g TensorInfo>> {
    let whole = Regex::new(&format!("^(?:{})$", args.tensor))?;
    let named: Vec<&TensorInfo> = gguf
        .tensors()
        .iter()
        .filter(|t| whole.is_match(&t.name))
        .collect();
    let chosen: Vec<&TensorInfo> = named
        .iter()
        .copied()
        .filter(|t| weight_type(t).is_ok())
        .collect();
    let model = args.model.display();
    match (named.first(), chosen.is_empty()) {
        (None, _) => anyhow::bail!("{model}: no tensor matches --tensor {}", args.tensor),
        (Some(first), true) => Err(weight_type(first).unwrap_err().into()),
        (Some(_), false) => Ok(chosen),
    }
}

/// Activations before quantisation, and the notes that say where they come from.
type Activations = (Vec<Vec<f32>>, Vec<(String, String)>);

/// Where a vector's activations come from.
enum Columns {
    Random(u64),
    #[cfg(feature = "llama")]
    ForwardPass {
        prompt: String,
        capture: weightstream::llama::Capture,
    },
}

impl Columns {
    fn of(args: &MakeArgs, chosen: &[&TensorInfo]) -> anyhow::Result<Columns> {
        #[cfg(feature = "llama")]
        if let Some(prompt) = &args.prompt {
            return Ok(Columns::ForwardPass {
                prompt: prompt.clone(),
                capture: forward(&args.model, prompt, chosen)?,
            });
        }
        let _ = chosen;
        Ok(Columns::Random(args.seed))
    }

    fn of_tensor(&self, tensor: &TensorInfo, cols: usize) -> anyhow::Result<Activations> {
        let note = |key: &str, value: String| (key.to_string(), value);
        match self {
            Columns::Random(seed) => {
                let k = tensor.shape.first().copied().unwrap_or(0) as usize;
                let column = |n| Noise::new(*seed, &[n]).activations(k);
                let x = (0..cols as u64).map(column).collect();
                Ok((x, vec![note("seed", seed.to_string())]))
            }
            #[cfg(feature = "llama")]
            Columns::ForwardPass { prompt, capture } => {
                let seen = capture.columns(&tensor.name);
                let Some(first) = seen.len().checked_sub(cols) else {
                    anyhow::bail!(
                        "tensor {} met {} columns in the forward pass, --cols {cols} asks for more",
                        tensor.name,
                        seen.len()
                    );
                };
                let text = format!("activations of llama.cpp's forward pass over {prompt:?}");
                Ok((seen[first..].to_vec(), vec![note("note", text)]))
            }
        }
    }
}

/// Runs `prompt` through the model on llama.cpp's CPU backend.
#[cfg(feature = "llama")]
fn forward(
    model: &Path,
    prompt: &str,
    chosen: &[&TensorInfo],
) -> anyhow::Result<weightstream::llama::Capture> {
    use weightstream::llama::{Capture, Context, ContextOptions, Model, Outputs};

    let model = Model::load(model, None, |_| ())?;
    let tokens = model.tokenise(prompt)?;
    anyhow::ensure!(!tokens.is_empty(), "--prompt has no token");
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let options = ContextOptions {
        n_ctx: tokens.len() as u32,
        n_batch: tokens.len() as u32,
        outputs: Outputs::All,
        threads,
        threads_batch: threads,
    };
    // The embeddings' matrix is the output matrix too where the model has no other.
    let mut capture = Capture::of(chosen.iter().map(|t| t.name.clone()));
    let mut context = Context::with_capture(&model, None, options, Some(&mut capture))?;
    context.decode(&tokens, |_, _| ())?;
    drop(context);
    Ok(capture)
}

fn show(args: ShowArgs) -> anyhow::Result<ExitCode> {
    let case = Case::read(&args.file)?;
    println!("{}", args.file.display());
    println!(
        "{}, k {}, rows {}, cols {}",
        case.ty, case.k, case.rows, case.cols
    );
    for (key, value) in &case.notes {
        println!("{key}: {value}");
    }
    if let Some(recorded) = &case.recorded {
        print_scenario(recorded);
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    let columns = 0..case.cols;
    table.set_header(
        std::iter::once("row".to_string()).chain(columns.clone().map(|c| format!("col {c}"))),
    );
    let end = case.rows.min(args.rows.end as usize);
    for row in args.rows.start as usize..end {
        let value = |col: usize| {
            let bits = case.expected[col * case.rows + row];
            format!("{:e} (0x{bits:08x})", f32::from_bits(bits))
        };
        table.add_row(std::iter::once(row.to_string()).chain(columns.clone().map(value)));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("\n{table}");
    if end < case.rows {
        println!(
            "{} of {} rows; --rows shows others",
            end - args.rows.start as usize,
            case.rows
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// How a recorded case is run.
fn print_scenario(recorded: &vectors::Recorded) {
    let scenario = &recorded.scenario;
    let conditions = &scenario.conditions;
    println!("stall seed: {}", scenario.stall_seed);
    if !conditions.stalls.is_empty() {
        println!("stalls in %: {}", conditions.stalls);
    }
    println!(
        "latency {}, {} bursts in flight, length fields of {} bits",
        conditions.latency, conditions.max_outstanding, scenario.length_width
    );
    if let Some((beats, cycles)) = conditions.bandwidth {
        println!("bandwidth: {beats} beats in {cycles} cycles");
    }
    if let Some((interval, length)) = conditions.refresh {
        println!("refresh: {length} of {interval} cycles");
    }
    let mut number = 0;
    for (n, (chain, outcome)) in scenario.chains.iter().zip(&recorded.outcomes).enumerate() {
        println!("chain {n}: {outcome}");
        for job in &chain.jobs {
            let own = if number == recorded.case {
                " (this case)"
            } else {
                ""
            };
            println!("  job {number}: {job}{own}");
            number += 1;
        }
        if let Some(event) = chain.event {
            println!("  {event:?}");
        }
    }
}

fn check(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let mut files = Vec::new();
    for path in &args.paths {
        files.extend(vectors::files(path)?);
    }
    anyhow::ensure!(!files.is_empty(), "no vector file");
    let total = files.len();
    let bar = count_bar("checking", total as u64);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (mut inexact, mut unreadable) = (0, 0);
    in_order(
        files.into_iter(),
        threads,
        |file| (Case::read(&file).map(|case| exact::check(&case)), file),
        |(found, file)| {
            bar.suspend(|| match &found {
                Ok(found) if found.is_empty() => {}
                Ok(found) => {
                    inexact += 1;
                    print_inexact(&file, found);
                }
                Err(error) => {
                    unreadable += 1;
                    println!("{error}");
                }
            });
            bar.inc(1);
        },
    );
    bar.finish_and_clear();
    let good = total - inexact - unreadable;
    println!("{good} of {total} vectors are well formed and exact");
    Ok(ExitCode::from(match (unreadable, inexact) {
        (0, 0) => 0,
        (0, _) => 1,
        _ => 2,
    }))
}

fn print_inexact(file: &Path, found: &[Inexact]) {
    for value in found.iter().take(SHOWN) {
        println!("{}: {}", file.display(), told(value));
    }
    if let Some(more @ 1..) = found.len().checked_sub(SHOWN) {
        println!("{}: and {more} more", file.display());
    }
}

fn told(value: &Inexact) -> String {
    match value {
        Inexact::Activations {
            col,
            offset,
            stored,
            exact,
        } => format!(
            "byte {offset} of column {col} of activations is 0x{stored:02x}, quantising x gives 0x{exact:02x}"
        ),
        Inexact::Result {
            job,
            row,
            col,
            stored,
            exact,
        } => {
            let of = job.map_or(String::new(), |n| format!("job {n}: "));
            format!("{of}expected[{col}][{row}] is 0x{stored:08x}, exact is 0x{exact:08x}")
        }
        Inexact::Status { job, stored, exact } => {
            format!("job {job}: status is 0x{stored:x}, exact is 0x{exact:x}")
        }
    }
}
