//! What `regress` found: on the screen, and as data.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use weightstream::regress::{Mismatch, MismatchKind, Shard, Verdict, WrongResult};
use weightstream::target::{Activity, TargetSpec};
use weightstream::vectors::Case;

/// Wrong results of one job shown on the screen; the JSON report holds more.
const SHOWN: usize = 4;
/// Cases told of in full on the screen; of later ones only the name.
const IN_FULL: usize = 20;

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Result {
    Passed,
    Failed,
    Skipped,
    Unreadable,
}

#[derive(Serialize)]
pub struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    pub unreadable: usize,
    /// Wall time.
    pub seconds: f64,
    pub cases: Vec<CaseReport>,
}

/// One case on one target.
#[derive(Serialize)]
pub struct CaseReport {
    pub target: String,
    pub case: String,
    pub file: String,
    #[serde(rename = "verdict")]
    pub result: Result,
    pub seconds: f64,
    /// Simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waves: Option<WavesReport>,
    /// The command line that repeats it.
    pub repeat: String,
}

#[derive(Serialize)]
pub struct Shape {
    pub r#type: String,
    pub k: usize,
    pub rows: usize,
    pub cols: usize,
}

/// Wrong results of one job.
#[derive(Serialize)]
pub struct Difference {
    chain: usize,
    job: usize,
    /// Byte at which the weights start, from a bus word.
    placement: usize,
    wrong: usize,
    of: usize,
    first: Vec<Wrong>,
}

#[derive(Serialize)]
struct Wrong {
    row: usize,
    col: usize,
    expected: String,
    actual: String,
}

#[derive(Serialize)]
pub struct WavesReport {
    pub file: String,
    pub first_cycle: u64,
    pub end_cycle: u64,
    /// The one to look at.
    pub cycle: u64,
    pub scope: String,
    pub why: String,
}

impl Shape {
    pub fn of(case: &Case) -> Shape {
        Shape {
            r#type: case.ty.to_string(),
            k: case.k,
            rows: case.rows,
            cols: case.cols,
        }
    }
}

impl From<&WrongResult> for Wrong {
    fn from(w: &WrongResult) -> Wrong {
        let bits = |b: u32| format!("0x{b:08x} ({:e})", f32::from_bits(b));
        Wrong {
            row: w.row,
            col: w.col,
            expected: bits(w.expected),
            actual: bits(w.actual),
        }
    }
}

impl CaseReport {
    pub fn new(target: &TargetSpec, case: &Case, repeat: String) -> CaseReport {
        CaseReport {
            target: target.to_string(),
            case: case.name(),
            file: case.path.display().to_string(),
            result: Result::Passed,
            seconds: 0.0,
            cycles: None,
            shape: None,
            why: Vec::new(),
            differences: Vec::new(),
            waves: None,
            repeat,
        }
    }

    pub fn unreadable(target: &TargetSpec, file: &Path, why: String) -> CaseReport {
        CaseReport {
            target: target.to_string(),
            case: file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            file: file.display().to_string(),
            result: Result::Unreadable,
            seconds: 0.0,
            cycles: None,
            shape: None,
            why: vec![why],
            differences: Vec::new(),
            waves: None,
            repeat: String::new(),
        }
    }

    pub fn after(mut self, time: Duration) -> CaseReport {
        self.seconds = time.as_secs_f64();
        self
    }

    pub fn passed(&mut self, activity: Option<Activity>) {
        if let Some(activity) = activity {
            *self.cycles.get_or_insert(0) += activity.cycles;
        }
    }

    pub fn skipped(&mut self) {
        self.result = Result::Skipped;
        self.why.push("not in this kernel".into());
    }

    /// It could not be replayed.
    pub fn broken(&mut self, why: String) {
        self.result = Result::Failed;
        self.why.push(why);
    }

    pub fn failed(&mut self, case: &Case, verdict: &Verdict) {
        self.result = Result::Failed;
        match verdict {
            Verdict::Quantiser {
                col,
                offset,
                expected,
                actual,
            } => self.why.push(format!(
                "quantising x gives 0x{actual:02x} for byte {offset} of column {col}, the activations hold 0x{expected:02x}"
            )),
            Verdict::Failed(mismatches) => {
                mismatches.iter().for_each(|m| self.mismatch(case, m));
            }
            Verdict::Passed | Verdict::Skipped => {}
        }
    }

    fn mismatch(&mut self, case: &Case, mismatch: &Mismatch) {
        let Mismatch { chain, job, kind } = mismatch;
        let at = match (&case.recorded, job) {
            (Some(_), Some(job)) => format!("chain {chain}, job {job}: "),
            (Some(_), None) => format!("chain {chain}: "),
            (None, _) => String::new(),
        };
        match (kind, job) {
            (MismatchKind::Results { first, wrong, of }, Some(job)) => {
                let recorded = case.recorded.as_ref();
                let offset = recorded.map(|r| r.scenario.chains[*chain].jobs[*job].offset);
                self.differences.push(Difference {
                    chain: *chain,
                    job: *job,
                    placement: offset.unwrap_or_else(|| weightstream::regress::PLACEMENTS[*chain]),
                    wrong: *wrong,
                    of: *of,
                    first: first.iter().map(Wrong::from).collect(),
                });
            }
            (kind, _) => self.why.push(format!("{at}{kind}")),
        }
    }

    /// What is to be said of it on the screen, nothing if it passed or was skipped.
    pub fn lines(&self) -> Vec<String> {
        let CaseReport { target, case, .. } = self;
        let mut lines = Vec::new();
        match (&self.result, &self.shape) {
            (Result::Passed | Result::Skipped, _) => return lines,
            (
                Result::Failed,
                Some(Shape {
                    r#type,
                    k,
                    rows,
                    cols,
                }),
            ) => lines.push(format!(
                "FAILED on {target}: {case} ({type}, k {k}, rows {rows}, cols {cols})"
            )),
            _ => lines.push(format!("UNREADABLE: {}", self.file)),
        }
        lines.extend(self.why.iter().map(|why| format!("  {why}")));
        for difference in &self.differences {
            for w in difference.first.iter().take(SHOWN) {
                lines.push(format!(
                    "  row {}, col {}, weights at byte {}: expected {}, actual {}",
                    w.row, w.col, difference.placement, w.expected, w.actual
                ));
            }
            let Difference { wrong, of, .. } = difference;
            lines.push(format!("  {wrong} of {of} results wrong"));
        }
        if let Some(waves) = &self.waves {
            let WavesReport {
                file,
                cycle,
                scope,
                why,
                ..
            } = waves;
            // A clock period is two units of the trace's time.
            let time = 2 * cycle;
            lines.push(format!("  waves: {file}, cycle {cycle} (time {time})"));
            lines.push(format!("  look at {scope}: {why}"));
        }
        if !self.repeat.is_empty() {
            lines.push(format!("  repeat: {}", self.repeat));
        }
        lines
    }
}

impl Report {
    pub fn new(shard: Option<Shard>) -> Report {
        Report {
            shard: shard.map(|s| s.to_string()),
            passed: 0,
            failed: 0,
            skipped: 0,
            unreadable: 0,
            seconds: 0.0,
            cases: Vec::new(),
        }
    }

    /// Takes a case in and tells of it on the screen if it did not pass.
    pub fn add(&mut self, case: CaseReport) {
        match case.result {
            Result::Passed => self.passed += 1,
            Result::Failed => self.failed += 1,
            Result::Skipped => self.skipped += 1,
            Result::Unreadable => self.unreadable += 1,
        }
        let in_full = self.failed + self.unreadable <= IN_FULL;
        let lines = case.lines();
        let shown = if in_full { lines.len() } else { 1 };
        lines.iter().take(shown).for_each(|line| println!("{line}"));
        self.cases.push(case);
    }

    /// The summary: a line a target, and one of all.
    pub fn print(&self) {
        let mut targets: Vec<&str> = Vec::new();
        for case in &self.cases {
            if !targets.contains(&case.target.as_str()) {
                targets.push(&case.target);
            }
        }
        for target in targets {
            let cases: Vec<&CaseReport> =
                self.cases.iter().filter(|c| c.target == target).collect();
            println!("{target}: {}", summary(&cases));
        }
        let shard = self.shard.as_ref();
        let shard = shard.map_or(String::new(), |s| format!("shard {s}: "));
        let bad = self.failed + self.unreadable;
        let all = self.cases.len();
        let verdict = match bad {
            0 => "PASSED".to_string(),
            _ => format!("FAILED: {bad} of {all}"),
        };
        println!("{shard}{verdict} in {:.1} s", self.seconds);
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match (self.unreadable, self.failed) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        })
    }
}

/// As `160 passed, 3 failed (Q4_K 2, Q5_K 1), 4 skipped (not in this kernel) in 1.2 s of simulation`.
fn summary(cases: &[&CaseReport]) -> String {
    let of = |result| cases.iter().filter(move |c| c.result == result);
    let mut by_type: BTreeMap<&str, usize> = BTreeMap::new();
    for case in of(Result::Failed) {
        if let Some(shape) = &case.shape {
            *by_type.entry(&shape.r#type).or_default() += 1;
        }
    }
    let passed = of(Result::Passed).count();
    let mut line = format!("{passed} passed, {} failed", of(Result::Failed).count());
    if !by_type.is_empty() {
        let types: Vec<String> = by_type.iter().map(|(t, n)| format!("{t} {n}")).collect();
        line += &format!(" ({})", types.join(", "));
    }
    let others = [
        (Result::Skipped, "skipped (not in this kernel)"),
        (Result::Unreadable, "unreadable"),
    ];
    for (result, name) in others {
        match of(result).count() {
            0 => {}
            n => line += &format!(", {n} {name}"),
        }
    }
    let seconds: f64 = cases.iter().map(|c| c.seconds).sum();
    line += &format!(" in {seconds:.1} s");
    match cases.iter().filter_map(|c| c.cycles).sum::<u64>() {
        0 => line,
        cycles => line + &format!(", {:.1} M cycles", cycles as f64 / 1e6),
    }
}
