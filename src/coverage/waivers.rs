//! What of the RTL need not run: a TOML file with a reason for each.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{CoverageError, Point, io_error};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "waiver")]
    waivers: Vec<Waiver>,
}

/// One thing that need not run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiver {
    /// Its source, relative to the folder of the RTL.
    file: String,
    /// The text of the line where it begins, without the space around it: numbers of lines move.
    line: String,
    /// `if`, `else`, `elsif`, `case` or `block`.
    what: String,
    reason: String,
}

/// The waivers of an RTL folder, and its sources.
#[derive(Debug)]
pub struct Waivers {
    path: PathBuf,
    rtl: PathBuf,
    waivers: Vec<Waiver>,
}

impl Waivers {
    /// Reads `path`, for the sources in `rtl`.
    pub fn read(path: &Path, rtl: &Path) -> Result<Waivers, CoverageError> {
        let text = fs::read_to_string(path).map_err(io_error(path))?;
        let fail = |message: String| CoverageError::Waivers {
            path: path.into(),
            message,
        };
        let File { waivers } = toml::from_str(&text).map_err(|e| fail(e.to_string()))?;
        if let Some(waiver) = waivers.iter().find(|w| w.reason.trim().is_empty()) {
            return Err(fail(format!(
                "{:?} is waived without a reason",
                waiver.line
            )));
        }
        Ok(Waivers {
            path: path.into(),
            rtl: rtl.into(),
            waivers,
        })
    }

    /// Of the points that were `missed`, those that nobody waived. Each comes with its line's text.
    ///
    /// # Errors
    /// [`CoverageError::Waivers`] if a waiver is for something that did run, or is not there.
    pub fn judge<'p>(
        &self,
        missed: impl Iterator<Item = &'p Point>,
    ) -> Result<Vec<(&'p Point, String)>, CoverageError> {
        let mut used = vec![false; self.waivers.len()];
        let mut left = Vec::new();
        let mut source = (String::new(), String::new());
        for point in missed {
            if source.0 != point.file {
                let path = self.rtl.join(&point.file);
                let text = fs::read_to_string(&path).map_err(io_error(&path))?;
                source = (point.file.clone(), text);
            }
            let index = (point.line as usize).saturating_sub(1);
            let text = source.1.lines().nth(index).unwrap_or_default().trim();
            let waived =
                |w: &Waiver| w.file == point.file && w.line == text && w.what == point.what;
            match self.waivers.iter().position(waived) {
                Some(at) => used[at] = true,
                None => left.push((point, text.to_owned())),
            }
        }
        match used.iter().position(|used| !used) {
            None => Ok(left),
            Some(at) => Err(CoverageError::Waivers {
                path: self.path.clone(),
                message: format!(
                    "the waiver of {:?} ({}) in {} is of no use: it ran, or is not there",
                    self.waivers[at].line, self.waivers[at].what, self.waivers[at].file
                ),
            }),
        }
    }
}
