//! Which lines of the RTL ran, which branches were taken and which bits toggled.
//!
//! The counts are Verilator's, in files that processes leave behind which ran an object built with
//! [`coverage`](crate::target::rtl::dut::Dut::coverage). Instances of a module are added up.
//!
//! Modules: `counts` (Verilator's files), `waivers` (what need not run, and why), `lcov`.

mod counts;
mod lcov;
mod waivers;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub use counts::Counts;
pub use lcov::write_lcov;
pub use waivers::Waivers;

/// What kind of thing is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A block of statements that ran.
    Line,
    /// One side of a decision.
    Branch,
    /// A bit that went up or down.
    Toggle,
}

/// A thing that is counted, of a module whatever its instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// The source, relative to the folder of the RTL.
    pub file: String,
    /// Where it begins, from 1.
    pub line: u32,
    pub column: u32,
    pub kind: Kind,
    /// `if`, `else`, `case`, …; the name of a toggling bit.
    pub what: String,
    /// The lines of the block, as ranges from first to last.
    pub lines: Vec<(u32, u32)>,
}

/// Points met and all points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Share {
    pub met: usize,
    pub all: usize,
}

/// The shares of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Shares {
    pub lines: Share,
    pub branches: Share,
    pub toggles: Share,
}

impl Share {
    fn count(&mut self, met: bool) {
        self.met += usize::from(met);
        self.all += 1;
    }

    /// In percent; of nothing, all.
    pub fn percent(self) -> f64 {
        if self.all == 0 {
            100.0
        } else {
            100.0 * self.met as f64 / self.all as f64
        }
    }
}

impl Counts {
    /// The shares of each file, and of all.
    pub fn shares(&self) -> (BTreeMap<&str, Shares>, Shares) {
        let mut files: BTreeMap<&str, Shares> = BTreeMap::new();
        let mut all = Shares::default();
        for (point, &count) in self.points() {
            for shares in [files.entry(&point.file).or_default(), &mut all] {
                let share = match point.kind {
                    Kind::Line => &mut shares.lines,
                    Kind::Branch => &mut shares.branches,
                    Kind::Toggle => &mut shares.toggles,
                };
                share.count(count > 0);
            }
        }
        (files, all)
    }

    /// Lines and branches that never ran.
    pub fn missed(&self) -> impl Iterator<Item = &Point> {
        self.points()
            .filter(|(point, count)| point.kind != Kind::Toggle && **count == 0)
            .map(|(point, _)| point)
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum CoverageError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}:{line}: {message}: {text:?}", path.display())]
    Counts {
        path: PathBuf,
        line: usize,
        message: &'static str,
        text: String,
    },
    #[error("{}: no counts; was anything run on the object?", folder.display())]
    NoCounts { folder: PathBuf },
    #[error("{}: {message}", path.display())]
    Waivers { path: PathBuf, message: String },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CoverageError {
    let path = path.to_owned();
    move |source| CoverageError::Io { path, source }
}

#[cfg(test)]
mod tests;
