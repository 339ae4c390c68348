//! What goes out: lines on stdout, and files of results.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use serde::Serialize;

/// The first error of stdout.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// As std's, but that an error of stdout (a full disk) does not panic: the command goes on, writes
/// its files, and [`finish`] tells.
macro_rules! println {
    ($($text:tt)*) => {
        $crate::cli::out::line(format_args!($($text)*))
    };
}

pub fn line(text: fmt::Arguments<'_>) {
    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    if failed.is_none() {
        *failed = writeln!(io::stdout(), "{text}").err();
    }
}

/// Writes what stdout still holds back.
///
/// # Errors
/// If it, or a line before it, could not be written.
pub fn finish() -> anyhow::Result<()> {
    let failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner).take();
    failed
        .map_or_else(|| io::stdout().flush(), Err)
        .context("cannot write to stdout")
}

/// A file that an option names for results. It is opened before the work that they come from, so
/// that a wrong path does not lose them.
pub struct OutputFile {
    option: &'static str,
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// Opens the file at `path`, if there is one; what it holds stays until it is written.
    pub fn create(option: &'static str, path: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let Some(path) = path else { return Ok(None) };
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .with_context(|| format!("cannot write {option} {}", path.display()))?;
        let path = path.into();
        Ok(Some(OutputFile { option, path, file }))
    }

    pub fn write(mut self, bytes: &[u8]) -> anyhow::Result<()> {
        // A pipe or a device has no length.
        let emptied = self.file.metadata().and_then(|m| match m.is_file() {
            true => self.file.set_len(0),
            false => Ok(()),
        });
        emptied
            .and_then(|()| self.file.write_all(bytes))
            .with_context(|| format!("cannot write {} {}", self.option, self.path.display()))
    }
}

/// Writes `report` as JSON to `file`, if there is one.
pub fn write_json(file: Option<OutputFile>, report: &impl Serialize) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    file.write(text.as_bytes())
}
