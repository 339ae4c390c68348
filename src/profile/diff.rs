//! What got slower between two profiles.

use std::collections::HashMap;

use serde::Serialize;

use super::summary::{PhaseSummary, Row, phases};
use super::{Phase, Profile, ProfileError};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Cycles from doorbell to answer, where both profiles have a clock: they are deterministic in
    /// a simulation.
    Cycles,
    /// ns of kernel, driver and host.
    Time,
}

/// How rows are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Tensor,
    Layer,
    Role,
}

/// A tensor, layer or role in both profiles; each value is of one step of the phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub phase: Phase,
    pub name: String,
    /// None where the one profile does not have it.
    pub a: Option<f64>,
    pub b: Option<f64>,
}

impl Change {
    /// How much more `b` is than `a`.
    pub fn difference(&self) -> f64 {
        self.b.unwrap_or(0.0) - self.a.unwrap_or(0.0)
    }

    /// The same in percent of `a`; none where there is no `a`.
    pub fn percent(&self) -> Option<f64> {
        let a = self.a.filter(|a| *a > 0.0)?;
        Some(100.0 * self.difference() / a)
    }

    /// Whether it got slower by more than `tolerance` percent; what is only in `b` did.
    pub fn is_slower(&self, tolerance: f64) -> bool {
        match self.percent() {
            Some(percent) => percent > tolerance,
            None => self.difference() > 0.0,
        }
    }
}

/// Two profiles, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    pub measure: Measure,
    /// The phases as a whole.
    pub totals: Vec<Change>,
    /// What got slower by most first.
    pub rows: Vec<Change>,
}

/// Compares `a`, the earlier, with `b`: cycles where both have some, else time. Phases that only
/// one of them has are left out.
///
/// # Errors
/// [`ProfileError::Incomparable`] if they have no phase in common.
pub fn diff(a: &Profile, b: &Profile, by: By) -> Result<Diff, ProfileError> {
    let measure = match a.clock_mhz.is_some() && b.clock_mhz.is_some() {
        true => Measure::Cycles,
        false => Measure::Time,
    };
    let (of_a, of_b) = (phases(a), phases(b));
    let mut totals = Vec::new();
    let mut rows = Vec::new();
    for b in &of_b {
        let Some(a) = of_a.iter().find(|a| a.phase == b.phase) else {
            continue;
        };
        totals.push(Change {
            phase: b.phase,
            name: "all".into(),
            a: Some(measure.of(&a.totals, a.steps)),
            b: Some(measure.of(&b.totals, b.steps)),
        });
        rows.extend(changes(measure, by, a, b));
    }
    if totals.is_empty() {
        let names = |phases: &[PhaseSummary]| {
            let names: Vec<_> = phases.iter().map(|p| p.phase.name()).collect();
            names.join(" and ")
        };
        return Err(ProfileError::Incomparable {
            what: "the phases of the two profiles",
            a: names(&of_a),
            b: names(&of_b),
        });
    }
    rows.sort_by(|x, y| y.difference().total_cmp(&x.difference()));
    Ok(Diff {
        measure,
        totals,
        rows,
    })
}

impl Measure {
    fn of(self, totals: &super::summary::Totals, steps: usize) -> f64 {
        let all = match self {
            Measure::Cycles => totals.cycles,
            Measure::Time => totals.ns(),
        };
        all / steps.max(1) as f64
    }
}

fn changes(measure: Measure, by: By, a: &PhaseSummary, b: &PhaseSummary) -> Vec<Change> {
    let rows = |p: &PhaseSummary| -> Vec<Row> {
        match by {
            By::Tensor => p.tensors.clone(),
            By::Layer => p.layers.clone(),
            By::Role => p.roles.clone(),
        }
    };
    let mut before: HashMap<String, f64> = rows(a)
        .into_iter()
        .map(|row| (row.name, measure.of(&row.totals, a.steps)))
        .collect();
    let mut changes: Vec<Change> = rows(b)
        .into_iter()
        .map(|row| Change {
            phase: b.phase,
            a: before.remove(&row.name),
            b: Some(measure.of(&row.totals, b.steps)),
            name: row.name,
        })
        .collect();
    let gone = before.into_iter().map(|(name, value)| Change {
        phase: b.phase,
        name,
        a: Some(value),
        b: None,
    });
    changes.extend(gone);
    changes
}
