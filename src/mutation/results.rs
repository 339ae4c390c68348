//! What became of each fault, kept in a file of one JSON object a line, so that a run that was
//! ended goes on where it was.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{MutationError, io_error};

/// What became of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A check failed.
    Killed { by: String },
    /// A check did not come to an end.
    TimedOut { by: String },
    /// Verilator or the compiler takes no such RTL.
    Refused,
    /// Verilator makes the same of it.
    Same,
    /// All checks passed.
    Survived,
}

/// A fault and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub operator: String,
    /// The lines that change, as they are and with the fault.
    pub before: String,
    pub after: String,
    pub verdict: Verdict,
    pub seconds: f64,
}

impl Outcome {
    /// Whether both are the same fault of the same text.
    fn is(&self, other: &Outcome) -> bool {
        let key = |o: &Outcome| (o.line, o.column);
        key(self) == key(other)
            && self.file == other.file
            && self.before == other.before
            && self.after == other.after
    }
}

/// The file.
pub struct Results {
    path: PathBuf,
    file: File,
    known: Vec<Outcome>,
}

impl Results {
    /// Opens the file at `path`, with what an earlier run left in it.
    ///
    /// # Errors
    /// If a line is not one of ours, or the file cannot be written.
    pub fn open(path: &Path) -> Result<Results, MutationError> {
        let text = match fs::read_to_string(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
            text => text.map_err(io_error(path))?,
        };
        // The last line of a run that was killed may not be whole.
        let whole = text.rfind('\n').map_or(0, |n| n + 1);
        let mut known = Vec::new();
        for (n, line) in text[..whole].lines().enumerate() {
            known.push(serde_json::from_str(line).map_err(|e| MutationError::File {
                path: path.into(),
                message: format!("line {}: {e}", n + 1),
            })?);
        }
        let file = File::options()
            .append(true)
            .create(true)
            .open(path)
            .map_err(io_error(path))?;
        file.set_len(whole as u64).map_err(io_error(path))?;
        Ok(Results {
            path: path.into(),
            file,
            known,
        })
    }

    /// What an earlier run found of `fault`, whose verdict does not count.
    pub fn known(&self, fault: &Outcome) -> Option<&Outcome> {
        self.known.iter().rev().find(|known| known.is(fault))
    }

    /// Adds `outcome`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, outcome: Outcome) -> Result<(), MutationError> {
        let mut line = serde_json::to_string(&outcome).expect("it has no maps");
        line.push('\n');
        (self.file.write_all(line.as_bytes())).map_err(io_error(&self.path))?;
        self.known.push(outcome);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_where_it_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        let fault = Outcome {
            file: "a.sv".into(),
            line: 3,
            column: 7,
            operator: "term".into(),
            before: "assign a = b + c;".into(),
            after: "assign a = b;".into(),
            verdict: Verdict::Killed {
                by: "verify".into(),
            },
            seconds: 1.5,
        };
        Results::open(&path).unwrap().add(fault.clone()).unwrap();
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"file\":\"b");
        fs::write(&path, text).unwrap();

        let mut results = Results::open(&path).unwrap();
        let verdict =
            |results: &Results, fault: &Outcome| results.known(fault).map(|o| o.verdict.clone());
        assert_eq!(verdict(&results, &fault), Some(fault.verdict.clone()));
        let mut other = fault.clone();
        other.after = "assign a = c;".into();
        assert_eq!(verdict(&results, &other), None);
        other.verdict = Verdict::Survived;
        results.add(other.clone()).unwrap();
        let again = Results::open(&path).unwrap();
        assert_eq!(verdict(&again, &other), Some(Verdict::Survived));
        assert_eq!(verdict(&again, &fault), Some(fault.verdict.clone()));
    }
}
