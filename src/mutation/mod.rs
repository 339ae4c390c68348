//! Small faults in the RTL, and whether the tests notice.
//!
//! Modules: `lex` (tokens of SystemVerilog), `operators` (what is changed), `plan` (the file that
//! says what is run, and which faults make no difference), `suite` (the building and running),
//! `results` (what became of each).

mod lex;
mod operators;
mod plan;
mod results;
mod suite;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

pub use plan::Plan;
pub use results::{Outcome, Results, Verdict};
pub use suite::{Bench, Suite};

/// A source of the RTL.
#[derive(Clone, Debug)]
pub struct Source {
    /// Relative to the folder of the RTL.
    pub file: String,
    pub text: String,
}

/// A small fault: bytes of a source, and what stands there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Relative to the folder of the RTL.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// Bytes of the source.
    pub at: Range<usize>,
    pub operator: &'static str,
    pub after: String,
}

#[derive(Debug, thiserror::Error)]
pub enum MutationError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {message}", path.display())]
    File { path: PathBuf, message: String },
    #[error("cannot build the RTL as it is: {0}")]
    Build(#[from] weightstream_sim::dut::DutError),
    #[error("{check} fails on the RTL as it is: {reason}")]
    Check { check: String, reason: String },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> MutationError {
    let path = path.to_owned();
    move |source| MutationError::Io { path, source }
}

/// The sources that the file list `list` of the folder `rtl` names, in its order.
///
/// # Errors
/// If a file cannot be read.
pub fn sources(rtl: &Path, list: &str) -> Result<Vec<Source>, MutationError> {
    let path = rtl.join(list);
    let text = fs::read_to_string(&path).map_err(io_error(&path))?;
    let folder = Path::new(list).parent().unwrap_or(Path::new(""));
    let within = |name: &str| folder.join(name.trim()).to_string_lossy().into_owned();
    let read = |file: String| -> Result<Source, MutationError> {
        let path = rtl.join(&file);
        let text = fs::read_to_string(&path).map_err(io_error(&path))?;
        Ok(Source { file, text })
    };
    let mut sources = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(other) = line.strip_prefix("-F ") {
            sources.extend(self::sources(rtl, &within(other))?);
        } else if let Some(library) = line.strip_prefix("-y ") {
            let path = rtl.join(within(library));
            let mut files = Vec::new();
            for entry in fs::read_dir(&path).map_err(io_error(&path))? {
                let name = entry.map_err(io_error(&path))?.file_name();
                files.push(within(&format!("{library}/{}", name.to_string_lossy())));
            }
            files.retain(|file| file.ends_with(".sv"));
            files.sort_unstable();
            sources.extend(files.into_iter().map(read).collect::<Result<Vec<_>, _>>()?);
        } else if line.ends_with(".sv") && !line.starts_with("//") {
            sources.push(read(within(line))?);
        }
    }
    // A package of a library is named by itself, too.
    let mut seen = HashSet::new();
    sources.retain(|source| seen.insert(source.file.clone()));
    Ok(sources)
}

/// `count` faults, drawn by `seed`: one of each source first, then of all alike. A larger count
/// begins with the same ones.
pub fn draw(sources: &[Source], count: usize, seed: u64) -> Vec<Mutant> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut first = Vec::new();
    let mut rest = Vec::new();
    for source in sources {
        let mut mutants = operators::mutants(source);
        mutants.shuffle(&mut random);
        let mut mutants = mutants.into_iter();
        first.extend(mutants.next());
        rest.extend(mutants);
    }
    first.shuffle(&mut random);
    rest.shuffle(&mut random);
    first.into_iter().chain(rest).take(count).collect()
}

impl Mutant {
    /// The source `text` with the fault.
    pub fn apply(&self, text: &str) -> String {
        [&text[..self.at.start], &self.after, &text[self.at.end..]].concat()
    }

    /// The lines that change, as they are and with the fault, without the space around them.
    pub fn lines(&self, text: &str) -> (String, String) {
        let start = text[..self.at.start].rfind('\n').map_or(0, |n| n + 1);
        let end = text[self.at.end..].find('\n');
        let end = end.map_or(text.len(), |n| self.at.end + n);
        let after = [
            &text[start..self.at.start],
            &self.after,
            &text[self.at.end..end],
        ]
        .concat();
        (squeeze(&text[start..end]), squeeze(&after))
    }
}

/// `text` with each run of spaces as one.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, text: &str) -> Source {
        Source {
            file: file.into(),
            text: text.into(),
        }
    }

    #[test]
    fn every_source_has_a_fault_and_more_begin_with_fewer() {
        let many = "assign a = b + c;\n".repeat(50);
        let sources = [source("a.sv", &many), source("b.sv", "assign a = 1'b0;")];
        let few = draw(&sources, 2, 7);
        let mut files: Vec<_> = few.iter().map(|m| m.file.as_str()).collect();
        files.sort_unstable();
        assert_eq!(files, ["a.sv", "b.sv"]);
        assert_eq!(draw(&sources, 20, 7)[..2], few[..]);
        assert_ne!(draw(&sources, 20, 8), draw(&sources, 20, 7));
    }

    #[test]
    fn the_lines_are_those_that_change() {
        let text = "x;\n  assign a = b\n    + c;\ny;";
        let mutant = Mutant {
            file: "a.sv".into(),
            line: 2,
            at: text.find('b').unwrap()..text.find("c;").unwrap() + 1,
            operator: "term",
            after: "b".into(),
        };
        let (before, after) = mutant.lines(text);
        assert_eq!((&*before, &*after), ("assign a = b + c;", "assign a = b;"));
        assert_eq!(mutant.apply(text), "x;\n  assign a = b;\ny;");
    }

    #[test]
    fn the_file_list_of_the_rtl_names_every_module_once() {
        let rtl = Path::new(env!("CARGO_MANIFEST_DIR")).join("rtl");
        let files: Vec<_> = (sources(&rtl, "weightstream.f").unwrap().into_iter())
            .map(|s| s.file)
            .collect();
        assert!(files.contains(&"kernel/ws_acc.sv".into()), "{files:?}");
        let mut unique = files.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), files.len());
    }
}
