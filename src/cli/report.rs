//! What commands share in showing figures.

use std::fs;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar on stderr that counts bytes.
pub fn bytes_bar(what: &'static str, total: u64) -> ProgressBar {
    bar(
        what,
        total,
        "{msg:>9} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}",
    )
}

/// A progress bar on stderr that counts things.
pub fn count_bar(what: &'static str, total: u64) -> ProgressBar {
    bar(what, total, "{msg:>9} {wide_bar} {pos}/{len} {eta}")
}

/// A progress bar on stderr for things whose number nobody knows.
pub fn spinner(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:>9} {pos} {elapsed} {spinner}")
        .expect("the templates are ours");
    ProgressBar::new_spinner()
        .with_style(style)
        .with_message(what)
}

fn bar(what: &'static str, total: u64, style: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(style).expect("the templates are ours");
    ProgressBar::new(total).with_style(style).with_message(what)
}

/// Most memory that this process had resident, bytes: the kernel's `VmHWM`.
pub fn peak_resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// `bytes` in MB, 10^6.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Bytes over a time, in GB/s.
pub fn gigabytes_per_second(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e9 / time.as_secs_f64().max(1e-9)
}
