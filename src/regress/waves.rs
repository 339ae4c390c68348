//! A trace of a failing case, from shortly before its first wrong result.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::diagnose::{Group, diagnose};
use super::{Mismatch, MismatchKind, Opener, Played, ReplayError, play};
use crate::target::{Beat, Port, TargetOptions, Trace};
use crate::vectors::Case;

/// Cycles traced before the one to look at, and from it on.
const LEAD: u64 = 2000;
const TAIL: u64 = 200;

/// A trace, and what to look at in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waves {
    pub path: PathBuf,
    /// The cycles in the trace.
    pub cycles: Range<u64>,
    /// The cycle in which the first wrong result was written, or in which things came to a halt.
    pub cycle: u64,
    pub group: Group,
}

/// Runs a failing case again, once to find the cycle and once more to trace around it into `path`.
/// `None` if it does not fail again, or the target has no cycles.
pub fn waves(
    open: &Opener<'_>,
    options: &TargetOptions,
    engine: usize,
    case: &Case,
    path: &Path,
) -> Result<Option<Waves>, ReplayError> {
    let logged = TargetOptions {
        log_beats: true,
        ..options.clone()
    };
    let Some(played) = play(open, &logged, engine, case)? else {
        return Ok(None);
    };
    let Some((cycle, group)) = find(&played) else {
        return Ok(None);
    };
    let cycles = cycle.saturating_sub(LEAD)..cycle + TAIL;
    let traced = TargetOptions {
        trace: Some(Trace {
            path: path.into(),
            cycles: cycles.clone(),
        }),
        ..options.clone()
    };
    play(open, &traced, engine, case)?;
    Ok(Some(Waves {
        path: path.into(),
        cycles,
        cycle,
        group,
    }))
}

/// The cycle and the signals to look at.
fn find(played: &Played) -> Option<(u64, Group)> {
    let first = played
        .mismatches
        .iter()
        .filter_map(|m| Some((cycle_of(played, m)?, m)))
        .min_by_key(|(cycle, _)| *cycle);
    let (cycle, first) = first?;
    // The one that came first comes first.
    let rest = played.mismatches.iter().filter(|m| *m != first);
    let ordered: Vec<Mismatch> = std::iter::once(first).chain(rest).cloned().collect();
    Some((cycle, diagnose(&played.scenario, &ordered)?))
}

fn cycle_of(played: &Played, mismatch: &Mismatch) -> Option<u64> {
    let chain = &played.ended[mismatch.chain];
    let ended = chain.cycle?;
    match &mismatch.kind {
        MismatchKind::Results { first, .. } => {
            let cycles = first.iter().filter_map(|w| written(&chain.beats, w.addr));
            Some(cycles.min().unwrap_or(ended))
        }
        // What is silent for the watchdog's time has stopped long before.
        MismatchKind::Outcome { .. } => {
            let last = chain.beats.last().map_or(ended, |beat| beat.cycle);
            Some(if ended - last > LEAD { last } else { ended })
        }
        MismatchKind::Status { .. } | MismatchKind::Length { .. } => Some(ended),
    }
}

/// The cycle in which the word at `addr` was written first.
fn written(beats: &[Beat], addr: u64) -> Option<u64> {
    let writes = || beats.iter().filter(|b| b.port == Port::S2mm);
    // The bus word in which the address lies begins at or before it.
    let word = writes().map(|b| b.addr).filter(|&a| a <= addr).max()?;
    writes().find(|b| b.addr == word).map(|b| b.cycle)
}
