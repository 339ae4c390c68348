//! `--cycles`: the cycles of each case, as they were and as they are.
//!
//! The file is JSON: of each kernel, named as its width and blocks per cycle, the cycles of each
//! case. Cycles are the same each time, so any change is one of the RTL, the driver or the memory
//! model.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use comfy_table::{CellAlignment, Table, TableStyle};
use weightstream::driver::Capabilities;

type Cycles = BTreeMap<String, BTreeMap<String, u64>>;

pub struct Baseline {
    path: PathBuf,
    cycles: Cycles,
    /// What a case may be worse, in percent.
    tolerance: f64,
}

/// A case whose cycles are not those of the baseline.
pub struct Change {
    target: String,
    case: String,
    before: u64,
    now: u64,
}

/// The name of a kernel in the file.
pub fn kernel(capabilities: &Capabilities) -> String {
    let Capabilities {
        bus_bytes,
        blocks_per_cycle,
        ..
    } = capabilities;
    format!("w{}b{blocks_per_cycle}", bus_bytes * 8)
}

impl Baseline {
    /// Reads `path`. Where it is about to be blessed, there may be none yet.
    pub fn read(path: &Path, tolerance: f64, bless: bool) -> anyhow::Result<Baseline> {
        let name = || format!("--cycles {}", path.display());
        let cycles = match fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).with_context(name)?,
            Err(e) if bless && e.kind() == io::ErrorKind::NotFound => Cycles::new(),
            Err(e) => return Err(e).with_context(name),
        };
        if !(tolerance >= 0.0 && tolerance.is_finite()) {
            bail!("--cycles-tolerance {tolerance} is not a percentage");
        }
        Ok(Baseline {
            path: path.into(),
            cycles,
            tolerance,
        })
    }

    /// Judges what `case` took on a kernel: why it fails, if it does.
    pub fn judge(&self, kernel: &str, case: &str, now: u64) -> Option<String> {
        let path = self.path.display();
        let Some(before) = self.before(kernel, case) else {
            return Some(format!(
                "{now} cycles, and none in {path} for {kernel}; --bless takes them in"
            ));
        };
        let most = before as f64 * (1.0 + self.tolerance / 100.0);
        (now as f64 > most).then(|| {
            let more = percent(before, now);
            format!("{now} cycles, {before} in {path}: {more}")
        })
    }

    fn before(&self, kernel: &str, case: &str) -> Option<u64> {
        self.cycles.get(kernel)?.get(case).copied()
    }

    /// What changed of a case, better or worse.
    pub fn change(&self, target: &str, kernel: &str, case: &str, now: u64) -> Option<Change> {
        let before = self.before(kernel, case).filter(|&before| before != now)?;
        Some(Change {
            target: target.into(),
            case: case.into(),
            before,
            now,
        })
    }

    /// Takes a case's cycles in.
    pub fn bless(&mut self, kernel: &str, case: &str, now: u64) {
        let cases = self.cycles.entry(kernel.into()).or_default();
        cases.insert(case.into(), now);
    }

    pub fn write(&self) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(&self.cycles)?;
        text.push('\n');
        fs::write(&self.path, text).with_context(|| format!("--cycles {}", self.path.display()))
    }
}

fn percent(before: u64, now: u64) -> String {
    format!("{:+.2} %", 100.0 * (now as f64 / before as f64 - 1.0))
}

/// The cases that changed, the worst first.
pub fn table(mut changes: Vec<Change>) -> Table {
    let ratio = |c: &Change| c.now as f64 / c.before as f64;
    changes.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_header(["target", "case", "cycles before", "now", "change"]);
    for Change {
        target,
        case,
        before,
        now,
    } in changes
    {
        let change = percent(before, now);
        table.add_row([target, case, before.to_string(), now.to_string(), change]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
