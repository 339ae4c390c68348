//! Verilator's coverage files (`verilated_cov.cpp`, version 3 of the format): a line a point,
//! `C '<key>' <count>`, where the key holds fields of a name and a value, each name after the byte 1
//! and each value after the byte 2.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{CoverageError, Kind, Point, io_error};

const FIRST_LINE: &str = "# SystemC::Coverage-3";

/// How often each point was met.
#[derive(Clone, Debug, Default)]
pub struct Counts(BTreeMap<Point, u64>);

impl Counts {
    /// Adds up the files `*.dat` in `folder`, of sources in the folder `rtl`. Points of other
    /// sources are left out, and the toggles in files `*.reset.dat`.
    ///
    /// # Errors
    /// [`CoverageError`] if there are none, or one cannot be read.
    pub fn read(folder: &Path, rtl: &Path) -> Result<Counts, CoverageError> {
        let rtl = rtl.canonicalize().map_err(io_error(rtl))?;
        let mut counts = Counts::default();
        for entry in fs::read_dir(folder).map_err(io_error(folder))? {
            let path = entry.map_err(io_error(folder))?.path();
            if path.extension().is_some_and(|e| e == "dat") {
                let text = fs::read_to_string(&path).map_err(io_error(&path))?;
                counts.add(&text, &path, &rtl)?;
            }
        }
        if counts.0.is_empty() {
            return Err(CoverageError::NoCounts {
                folder: folder.into(),
            });
        }
        Ok(counts)
    }

    /// All points, sorted by file and line, and how often each was met.
    pub fn points(&self) -> impl Iterator<Item = (&Point, &u64)> {
        self.0.iter()
    }

    pub(super) fn add(&mut self, text: &str, path: &Path, rtl: &Path) -> Result<(), CoverageError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let of_reset = name.ends_with(".reset.dat");
        for (number, line) in text.lines().enumerate() {
            let fail = |message| CoverageError::Counts {
                path: path.into(),
                line: number + 1,
                message,
                text: line.chars().take(200).collect(),
            };
            if number == 0 {
                if line != FIRST_LINE {
                    return Err(fail("not a coverage file of Verilator's"));
                }
                continue;
            }
            let (key, count) = line
                .strip_prefix("C '")
                .and_then(|l| l.rsplit_once("' "))
                .ok_or_else(|| fail("not a point and its count"))?;
            let count: u64 = count.parse().map_err(|_| fail("not a count"))?;
            if let Some(point) = point(key, rtl).map_err(fail)? {
                // In a reset bits settle from what they happened to hold.
                let counts = !(of_reset && point.kind == Kind::Toggle);
                *self.0.entry(point).or_default() += if counts { count } else { 0 };
            }
        }
        Ok(())
    }
}

/// A point from its key; none if its source does not lie in `rtl`.
fn point(key: &str, rtl: &Path) -> Result<Option<Point>, &'static str> {
    let mut fields = BTreeMap::new();
    for field in key.split('\x01').filter(|f| !f.is_empty()) {
        let (name, value) = field.split_once('\x02').ok_or("a field without a value")?;
        fields.insert(name, value);
    }
    let field = |name| fields.get(name).copied();
    let source = Path::new(field("f").ok_or("no file")?);
    let source = source.canonicalize().unwrap_or_else(|_| source.to_owned());
    let Ok(file) = source.strip_prefix(rtl) else {
        return Ok(None);
    };
    let kind = match field("page").and_then(|page| page.split_once('/')) {
        Some(("v_line", _)) => Kind::Line,
        Some(("v_branch", _)) => Kind::Branch,
        Some(("v_toggle", _)) => Kind::Toggle,
        _ => return Err("an unknown kind of point"),
    };
    let number = |name| field(name).and_then(|value| value.parse().ok());
    Ok(Some(Point {
        file: file.display().to_string(),
        line: number("l").ok_or("no line")?,
        column: number("n").ok_or("no column")?,
        kind,
        what: field("o").unwrap_or_default().into(),
        lines: field("S").map_or(Ok(Vec::new()), ranges)?,
    }))
}

/// `3,5-7` as ranges.
fn ranges(text: &str) -> Result<Vec<(u32, u32)>, &'static str> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    text.split(',')
        .map(|part| range(part).ok_or("not a list of lines"))
        .collect()
}
