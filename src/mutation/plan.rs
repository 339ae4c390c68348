//! `mutants.toml`, beside the RTL: what is run on faults, and which make no difference.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{MutationError, Source, Suite, io_error, squeeze};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "suite")]
    suites: Vec<Suite>,
    #[serde(default, rename = "equivalent")]
    equivalents: Vec<Equivalent>,
}

/// A fault, by the lines that it changes: their numbers move.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Equivalent {
    /// Its source, relative to the folder of the RTL.
    file: String,
    /// The lines that change, each run of spaces as one.
    before: String,
    after: String,
    reason: String,
}

/// The file.
#[derive(Debug)]
pub struct Plan {
    path: PathBuf,
    pub suites: Vec<Suite>,
    /// The faults that were argued to make no difference.
    equivalents: Vec<Equivalent>,
}

impl Plan {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`MutationError::File`] if it is not of this form, or a reason is empty.
    pub fn read(path: &Path) -> Result<Plan, MutationError> {
        let text = fs::read_to_string(path).map_err(io_error(path))?;
        let fail = |message: String| MutationError::File {
            path: path.into(),
            message,
        };
        let File {
            suites,
            equivalents,
        } = toml::from_str(&text).map_err(|e| fail(e.to_string()))?;
        if let Some(fault) = equivalents.iter().find(|e| e.reason.trim().is_empty()) {
            return Err(fail(format!("{:?} has no reason", fault.after)));
        }
        Ok(Plan {
            path: path.into(),
            suites,
            equivalents,
        })
    }

    /// The sources of all suites, in their order, each once; those in folders `tb` are testbenches.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn sources(&self, rtl: &Path) -> Result<Vec<Source>, MutationError> {
        let mut all: Vec<Source> = Vec::new();
        for suite in &self.suites {
            for source in super::sources(rtl, &suite.filelist)? {
                let is_test = source.file.contains("tb/");
                if !is_test && all.iter().all(|s| s.file != source.file) {
                    all.push(source);
                }
            }
        }
        Ok(all)
    }

    /// Whether somebody argued that the fault makes no difference.
    pub fn argues(&self, file: &str, before: &str, after: &str) -> bool {
        let of = |e: &Equivalent| e.file == file && e.before == before && e.after == after;
        self.equivalents.iter().any(of)
    }

    /// Checks that what a fault of the file changes is there.
    ///
    /// # Errors
    /// [`MutationError::File`] for one that is not.
    pub fn check(&self, sources: &[Source]) -> Result<(), MutationError> {
        let gone = |e: &&Equivalent| {
            let source = sources.iter().find(|s| s.file == e.file);
            !source.is_some_and(|s| squeeze(&s.text).contains(&e.before))
        };
        match self.equivalents.iter().find(gone) {
            None => Ok(()),
            Some(e) => Err(MutationError::File {
                path: self.path.clone(),
                message: format!("{:?} is not in {}", e.before, e.file),
            }),
        }
    }
}
