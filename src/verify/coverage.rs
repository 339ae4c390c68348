//! What the scenarios of a run have met.

use super::content::Scales;
use super::cross::{Cross, CrossReport, Dimension};
use super::strategy::types;
use crate::driver::Capabilities;
use crate::quant::WeightType;
use crate::regress::{Ended, Layout};
use crate::regs::job::{FOOTER_BYTES, Status};
use crate::target::{Beat, Port};
use crate::vectors::{BusResponse, Event, Flaw, Job, Outcome, PartKind, Scenario};

const ALIGNMENTS: [&str; 3] = ["0", "odd", "even"];
const COLUMNS: [&str; 3] = ["1", "some", "most"];
const ENDS: [&str; 3] = ["full", "up to half", "over half"];
/// Where in a job the memory held a beat back.
const STALLS: [&str; 7] = [
    "none",
    "header",
    "activations",
    "weights",
    "last weights",
    "results",
    "footer",
];
const FLAWS: [&str; 11] = [
    "magic", "version", "type", "k", "rows", "cols", "skip", "flags", "reserved", "short", "long",
];
const PARTS: [&str; 4] = ["header", "activations", "weights", "answer"];
const REUSES: [&str; 4] = ["brought", "reused", "reused by another type", "refused"];
/// What had moved last when a reset came.
const RESETS: [&str; 5] = ["nothing", "header", "activations", "weights", "results"];

/// The crosses that matter.
pub struct Coverage {
    capabilities: Capabilities,
    types: Vec<WeightType>,
    traffic: Cross,
    scales: Cross,
    malformed: Cross,
    held: Cross,
    bus_errors: Cross,
    resets: Cross,
}

impl Coverage {
    /// For a target with these capabilities; `clocked` is one whose bus can stall.
    pub fn new(capabilities: Capabilities, clocked: bool) -> Coverage {
        let types = types(&capabilities);
        let ty = || Dimension::new("type", types.iter());
        let classes = |name| Dimension::new(name, Scales::ALL.map(Scales::name));
        let traffic = {
            let dimensions = vec![
                ty(),
                Dimension::new("alignment", ALIGNMENTS),
                Dimension::new("columns", COLUMNS),
                Dimension::new("stall", STALLS),
                Dimension::new("end", ENDS),
            ];
            Cross::new("traffic", dimensions, |v| {
                let columns = match v[2] {
                    1 => capabilities.max_cols > 2,
                    2 => capabilities.max_cols > 1,
                    _ => true,
                };
                columns
                    && (clocked || v[3] == 0)
                    && can_end(types[v[0]], capabilities.bus_bytes, v[1], v[4])
            })
        };
        let always = |_: &[usize]| true;
        Coverage {
            traffic,
            scales: Cross::new(
                "scales",
                vec![ty(), classes("weights"), classes("activations")],
                always,
            ),
            malformed: Cross::new(
                "malformed",
                vec![ty(), Dimension::new("flaw", FLAWS)],
                always,
            ),
            held: Cross::new(
                "activations held",
                vec![ty(), Dimension::new("activations", REUSES)],
                always,
            ),
            bus_errors: Cross::new(
                "bus errors",
                vec![
                    Dimension::new("part", PARTS),
                    Dimension::new("response", ["SLVERR", "DECERR"]),
                ],
                always,
            ),
            resets: Cross::new("resets", vec![Dimension::new("after", RESETS)], |v| {
                clocked || v[0] == 0
            }),
            types,
            capabilities,
        }
    }

    /// Counts what a scenario met, as it ended on the target. `scales` are its jobs' classes.
    pub fn count(&mut self, scenario: &Scenario, scales: &[[Scales; 2]], ended: &[Ended]) {
        let mut scales = scales.iter();
        let mut brought_by = None;
        for (chain, ended) in scenario.chains.iter().zip(ended) {
            match chain.event {
                Some(Event::Reset { .. }) => self.resets.meet(&[last_moved(ended)]),
                Some(Event::BusError { part, response, .. }) => {
                    let slave = usize::from(response == BusResponse::Decode);
                    self.bus_errors.meet(&[part as usize, slave]);
                }
                None => {}
            }
            for (n, job) in chain.jobs.iter().enumerate() {
                let scales = scales.next();
                let Some(ty) = self.types.iter().position(|t| *t == job.ty) else {
                    continue;
                };
                let Outcome::Answers(answers) = &ended.outcome else {
                    continue;
                };
                if let Some(flaw) = job.flaw {
                    self.malformed.meet(&[ty, flaw_index(flaw)]);
                }
                let good = answers.get(n).is_some_and(|a| a.status().is_good());
                let reuse = match (job.reuse, good) {
                    (false, _) => 0,
                    (true, true) if brought_by == Some(job.ty) => 1,
                    (true, true) => 2,
                    (true, false) => 3,
                };
                if job.flaw.is_none() {
                    self.held.meet(&[ty, reuse]);
                }
                if !good {
                    continue;
                }
                if !job.reuse {
                    brought_by = Some(job.ty);
                }
                if let Some([weights, activations]) = scales {
                    let index = |s: &Scales| Scales::ALL.iter().position(|c| c == s);
                    if let (Some(w), Some(x)) = (index(weights), index(activations)) {
                        self.scales.meet(&[ty, w, x]);
                    }
                }
                self.count_traffic(ty, job, &ended.layouts[n], &ended.beats);
            }
        }
    }

    fn count_traffic(&mut self, ty: usize, job: &Job, layout: &Layout, beats: &[Beat]) {
        let bus = self.capabilities.bus_bytes;
        let skip = job.offset % bus;
        let columns = match job.cols {
            1 => 0,
            n if n < self.capabilities.max_cols => 1,
            _ => 2,
        };
        let end = end_class((skip + job.weights.len()) % bus, bus);
        let mut stalled = [false; STALLS.len()];
        for beat in beats.iter().filter(|beat| beat.stalled > 0) {
            if let Some(stall) = stall_of(layout, beat, bus) {
                stalled[stall] = true;
            }
        }
        stalled[0] = stalled == [false; STALLS.len()];
        for stall in (0..STALLS.len()).filter(|&n| stalled[n]) {
            let values = [ty, alignment_class(skip), columns, stall, end];
            self.traffic.meet(&values);
        }
    }

    pub fn report(&self) -> Vec<CrossReport> {
        [
            &self.traffic,
            &self.scales,
            &self.malformed,
            &self.held,
            &self.bus_errors,
            &self.resets,
        ]
        .map(Cross::report)
        .into()
    }
}

fn alignment_class(skip: usize) -> usize {
    match skip {
        0 => 0,
        odd if odd % 2 == 1 => 1,
        _ => 2,
    }
}

/// Of the bytes in a packet's last beat, 0 for all.
fn end_class(bytes: usize, bus: usize) -> usize {
    match bytes {
        0 => 0,
        n if n <= bus / 2 => 1,
        _ => 2,
    }
}

/// Whether any job of this type has this alignment and this end.
fn can_end(ty: WeightType, bus: usize, alignment: usize, end: usize) -> bool {
    let skips = (0..bus).filter(|&skip| alignment_class(skip) == alignment);
    let mut ends = skips.flat_map(|skip| (1..=bus).map(move |n| skip + n * ty.block_bytes()));
    ends.any(|bytes| end_class(bytes % bus, bus) == end)
}

fn part_of(layout: &Layout, beat: &Beat) -> Option<PartKind> {
    let port = |part: PartKind| match part {
        PartKind::Answer => Port::S2mm,
        _ => Port::Mm2s,
    };
    let mut parts = layout.0.iter();
    let found = parts.find(|(part, range)| port(*part) == beat.port && range.contains(&beat.addr));
    found.map(|(part, _)| *part)
}

/// Index among [`STALLS`] of a beat that was held back, if it is one of this job's.
fn stall_of(layout: &Layout, beat: &Beat, bus: usize) -> Option<usize> {
    let part = part_of(layout, beat)?;
    let end = layout.0.iter().find(|(kind, _)| *kind == part)?.1.end;
    let last = beat.addr + bus as u64;
    Some(match part {
        PartKind::Header => 1,
        PartKind::Activations => 2,
        PartKind::Weights if last >= end => 4,
        PartKind::Weights => 3,
        PartKind::Answer if last > end - FOOTER_BYTES as u64 => 6,
        PartKind::Answer => 5,
    })
}

/// Index among [`RESETS`].
fn last_moved(ended: &Ended) -> usize {
    let parts = ended.beats.iter().rev().find_map(|beat| {
        let mut layouts = ended.layouts.iter();
        layouts.find_map(|layout| part_of(layout, beat))
    });
    parts.map_or(0, |part| 1 + part as usize)
}

fn flaw_index(flaw: Flaw) -> usize {
    match flaw {
        Flaw::Magic => 0,
        Flaw::Version => 1,
        Flaw::Type => 2,
        Flaw::K => 3,
        Flaw::Rows => 4,
        Flaw::Cols => 5,
        Flaw::Skip => 6,
        Flaw::Flags => 7,
        Flaw::Reserved => 8,
        Flaw::Short(_) => 9,
        Flaw::Long(_) => 10,
    }
}

/// Whether `status` says that the header was refused, which leaves held activations as they were.
pub fn refuses_header(status: Status) -> bool {
    status.0 >> 8 & 0x1FF != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ends_that_can_be_are_asked_for() {
        // Rows of Q4_K are whole words of 16 bytes; those of Q5_0 have an even number of bytes.
        let ends = |ty, alignment| [0, 1, 2].map(|end| can_end(ty, 16, alignment, end));
        assert_eq!(ends(WeightType::Q4_K, 0), [true, false, false]);
        assert_eq!(ends(WeightType::Q4_K, 1), [false, true, true]);
        assert_eq!(ends(WeightType::Q5_0, 0), [true, true, true]);
        assert_eq!(ends(WeightType::Q5_0, 1), [false, true, true]);
    }

    #[test]
    fn a_stalled_beat_is_found_in_its_part() {
        let layout = Layout(vec![
            (PartKind::Header, 0..64),
            (PartKind::Activations, 128..192),
            (PartKind::Weights, 256..310),
            (PartKind::Answer, 512..512 + 20),
        ]);
        let at = |port, addr| {
            let beat = Beat {
                port,
                addr,
                cycle: 0,
                stalled: 1,
            };
            stall_of(&layout, &beat, 16).map(|stall| STALLS[stall])
        };
        let read = |addr| at(Port::Mm2s, addr);
        assert_eq!(read(48), Some("header"));
        assert_eq!(read(128), Some("activations"));
        assert_eq!(read(256), Some("weights"));
        assert_eq!(read(288), Some("weights"));
        assert_eq!(read(304), Some("last weights"));
        assert_eq!(read(320), None, "another job's");
        let write = |addr| at(Port::S2mm, addr);
        // Four bytes of results, then the footer: the first word holds both.
        assert_eq!(write(512), Some("footer"));
        assert_eq!(write(256), None);
    }
}
