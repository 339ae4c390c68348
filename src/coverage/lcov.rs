//! The report in the format of lcov's tracefiles (`geninfo(1)`), which browsers of coverage take.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use super::{Counts, Kind, Point};

/// Writes `counts` to `out`. Lines are lines; branches and the bits that toggle are branches of the
/// line where they begin.
pub fn write_lcov(counts: &Counts, rtl: &Path, out: &mut impl Write) -> io::Result<()> {
    let mut files: BTreeMap<&str, Vec<(&Point, u64)>> = BTreeMap::new();
    for (point, &count) in counts.points() {
        files.entry(&point.file).or_default().push((point, count));
    }
    for (file, points) in files {
        writeln!(out, "SF:{}", rtl.join(file).display())?;
        let mut branches = 0;
        let mut taken = 0;
        for (index, (point, count)) in points.iter().enumerate() {
            if point.kind != Kind::Line {
                // A block of their own keeps bits apart from the sides of decisions.
                let block = u32::from(point.kind == Kind::Toggle);
                writeln!(out, "BRDA:{},{block},{index},{count}", point.line)?;
                branches += 1;
                taken += usize::from(*count > 0);
            }
        }
        writeln!(out, "BRF:{branches}\nBRH:{taken}")?;
        let lines = lines(&points);
        for (line, count) in &lines {
            writeln!(out, "DA:{line},{count}")?;
        }
        let hit = lines.values().filter(|&&count| count > 0).count();
        writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines.len())?;
    }
    Ok(())
}

/// How often each line ran: of a line in several blocks, the one that ran least, so that a block
/// inside another which did run still shows.
fn lines(points: &[(&Point, u64)]) -> BTreeMap<u32, u64> {
    let mut lines = BTreeMap::new();
    for (point, count) in points.iter().filter(|(p, _)| p.kind != Kind::Toggle) {
        for &(first, last) in &point.lines {
            for line in first..=last {
                let least = lines.entry(line).or_insert(*count);
                *least = (*least).min(*count);
            }
        }
    }
    lines
}
