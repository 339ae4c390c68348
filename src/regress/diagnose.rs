//! From what is wrong to where to look: a scope of the RTL.

use crate::regress::{Mismatch, MismatchKind, WrongResult};
use crate::vectors::{Job, Scenario};

/// A group of signals, and why it is the one to look at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Hierarchical scope in the trace.
    pub scope: &'static str,
    pub why: String,
}

const KERNEL: &str = "weightstream.u_kernel";
const PARSER: &str = "weightstream.u_kernel.u_parser";
const REALIGN: &str = "weightstream.u_kernel.u_realign";
const ISSUE: &str = "weightstream.u_kernel.u_issue";
const DECODE: &str = "weightstream.u_kernel.gen_lane[0].u_lane.u_decode";
const ACTIVATIONS: &str = "weightstream.u_kernel.gen_lane[0].u_lane.u_acts";
const SCALE: &str = "weightstream.u_kernel.gen_lane[0].u_lane.u_scale";
const ROUND: &str = "weightstream.u_kernel.u_round";
const RESULT: &str = "weightstream.u_kernel.u_result";
const DMA: &str = "weightstream.u_dma";

/// Parts of an error's text that name a module's file or a port, and the scope of the module or
/// behind the port.
const NAMED: [(&str, &str); 17] = [
    ("ws_realign.sv", REALIGN),
    ("ws_job_parser.sv", PARSER),
    ("ws_group.sv", "weightstream.u_kernel.u_group"),
    ("ws_issue.sv", ISSUE),
    ("ws_act_bank.sv", ACTIVATIONS),
    ("ws_acc.sv", "weightstream.u_kernel.u_acc"),
    ("ws_round.sv", ROUND),
    ("ws_result.sv", RESULT),
    ("ws_dma_mm2s.sv", "weightstream.u_dma.u_mm2s"),
    ("ws_dma_s2mm.sv", "weightstream.u_dma.u_s2mm"),
    ("m_axi_sg", "weightstream.u_dma.u_sg"),
    ("m_axi_mm2s", "weightstream.u_dma.u_mm2s"),
    ("m_axi_s2mm", "weightstream.u_dma.u_s2mm"),
    ("s_axi_ctrl", "weightstream.u_demux"),
    ("stream into the kernel", REALIGN),
    ("stream out of the kernel", RESULT),
    ("MM2S halted", "weightstream.u_dma.u_mm2s"),
];

/// Where to look first; `mismatches` are those of a failed case, in their order.
pub(super) fn diagnose(scenario: &Scenario, mismatches: &[Mismatch]) -> Option<Group> {
    let first = mismatches.first()?;
    let group = |scope, why: &str| {
        let why = why.to_string();
        Some(Group { scope, why })
    };
    match &first.kind {
        MismatchKind::Outcome { actual, .. } => {
            let named = NAMED.iter().find(|(text, _)| actual.contains(text));
            let scope = named.map_or(DMA, |(_, scope)| scope);
            group(scope, actual)
        }
        MismatchKind::Status { .. } => group(PARSER, "the job's status is wrong"),
        MismatchKind::Length { .. } => group(RESULT, "results are missing or too many"),
        MismatchKind::Results { first, .. } => {
            let jobs: Vec<&Job> = wrong_jobs(scenario, mismatches).collect();
            of_results(scenario, &jobs, first)
        }
    }
}

/// The jobs that gave wrong results.
fn wrong_jobs<'a>(
    scenario: &'a Scenario,
    mismatches: &'a [Mismatch],
) -> impl Iterator<Item = &'a Job> {
    mismatches
        .iter()
        .filter_map(|m| scenario.chains[m.chain].jobs.get(m.job?))
}

fn of_results(scenario: &Scenario, wrong_jobs: &[&Job], wrong: &[WrongResult]) -> Option<Group> {
    let group = |scope, why: String| Some(Group { scope, why });
    let all_wrong = |has: &dyn Fn(&Job) -> bool| wrong_jobs.iter().all(|job| has(job));
    let some_right = |has: &dyn Fn(&Job) -> bool| {
        let mut others = scenario.jobs().filter(|job| !has(job));
        others.next().is_some()
    };
    let aligned = |job: &Job| job.offset != 0;
    if all_wrong(&aligned) {
        return group(
            REALIGN,
            "only jobs whose weights start off a bus word are wrong".into(),
        );
    }
    let reuses = |job: &Job| job.reuse;
    if all_wrong(&reuses) {
        return group(
            ACTIVATIONS,
            "only jobs that reuse activations are wrong".into(),
        );
    }
    let each = |is: &dyn Fn(f32, f32) -> bool| {
        let floats = |w: &WrongResult| (f32::from_bits(w.expected), f32::from_bits(w.actual));
        wrong.iter().map(floats).all(|(e, a)| is(e, a))
    };
    if each(&|e, a| e.is_nan() != a.is_nan()) {
        return group(SCALE, "a NaN is missing, or one too many".into());
    }
    if wrong.iter().all(|w| w.expected.abs_diff(w.actual) == 1) {
        return group(ROUND, "each wrong result is off by its last bit".into());
    }
    if each(&|e, a| e == -a) {
        return group(ROUND, "each wrong result has the wrong sign".into());
    }
    let swapped = wrong.len() > 1
        && wrong.iter().all(|w| {
            wrong
                .iter()
                .any(|other| other.expected == w.actual && other.addr != w.addr)
        });
    if swapped {
        return group(RESULT, "right results in the wrong places".into());
    }
    if wrong.iter().all(|w| w.col > 0) {
        return group(ISSUE, "only columns after the first are wrong".into());
    }
    let ty = wrong_jobs.first()?.ty;
    let of_type = |job: &Job| job.ty == ty;
    if all_wrong(&of_type) && some_right(&of_type) {
        return group(DECODE, format!("only jobs of type {ty} are wrong"));
    }
    group(KERNEL, "results are wrong".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Every scope must be found in the RTL, instance by instance, or nobody finds it in a trace.
    #[test]
    fn the_scopes_are_those_of_the_rtl() {
        let rtl = Path::new(env!("CARGO_MANIFEST_DIR")).join("rtl");
        let mut sources = String::new();
        for folder in ["", "kernel", "dma"] {
            for entry in fs::read_dir(rtl.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|e| e == "sv") {
                    sources += &fs::read_to_string(path).unwrap();
                }
            }
        }
        let scopes = [
            KERNEL,
            PARSER,
            REALIGN,
            ISSUE,
            DECODE,
            ACTIVATIONS,
            SCALE,
            ROUND,
            RESULT,
            DMA,
        ];
        for scope in scopes.into_iter().chain(NAMED.map(|n| n.1)) {
            let mut parts = scope.split('.');
            assert_eq!(parts.next(), Some("weightstream"));
            for part in parts {
                let wanted = match part.strip_suffix("[0]") {
                    Some(generate) => format!(": {generate}\n"),
                    None => format!("{part} ("),
                };
                assert!(sources.contains(&wanted), "{scope}: no {wanted:?}");
            }
        }
    }

    #[test]
    fn a_named_module_file_is_one_of_the_rtl() {
        let rtl = Path::new(env!("CARGO_MANIFEST_DIR")).join("rtl");
        for (file, _) in NAMED.iter().filter(|(name, _)| name.ends_with(".sv")) {
            let found = ["kernel", "dma"]
                .iter()
                .any(|dir| rtl.join(dir).join(file).is_file());
            assert!(found, "{file}");
        }
    }

    /// A scenario of single jobs (weights' offset, reuse), of which those in `wrong` fail so.
    fn look(jobs: &[(usize, bool)], wrong: &[usize], bits: [u32; 2]) -> &'static str {
        let job = |&(offset, reuse): &(usize, bool)| Job {
            ty: crate::quant::WeightType::Q4_0,
            k: 32,
            rows: 1,
            cols: 1,
            offset,
            reuse,
            flaw: None,
            weights: [].into(),
            activations: [].into(),
        };
        let scenario = Scenario {
            stall_seed: 0,
            conditions: Default::default(),
            length_width: 26,
            chains: vec![crate::vectors::Chain {
                jobs: jobs.iter().map(job).collect(),
                event: None,
            }],
        };
        let mismatch = |&job: &usize| Mismatch {
            chain: 0,
            job: Some(job),
            kind: MismatchKind::Results {
                first: vec![WrongResult {
                    row: 0,
                    col: 0,
                    expected: bits[0],
                    actual: bits[1],
                    addr: 0,
                }],
                wrong: 1,
                of: 1,
            },
        };
        let mismatches: Vec<Mismatch> = wrong.iter().map(mismatch).collect();
        diagnose(&scenario, &mismatches).unwrap().scope
    }

    #[test]
    fn the_pattern_of_what_is_wrong_tells_where_to_look() {
        let (one, other) = (1f32.to_bits(), 7f32.to_bits());
        assert_eq!(
            look(&[(0, false), (37, false)], &[1], [one, other]),
            REALIGN
        );
        assert_eq!(
            look(&[(0, false), (0, true)], &[1], [one, other]),
            ACTIVATIONS
        );
        assert_eq!(look(&[(0, false)], &[0], [one, one + 1]), ROUND);
        assert_eq!(look(&[(0, false)], &[0], [one, (-1f32).to_bits()]), ROUND);
        assert_eq!(look(&[(0, false)], &[0], [0x7FC0_0000, one]), SCALE);
        assert_eq!(
            look(&[(0, false), (37, false)], &[0, 1], [one, other]),
            KERNEL
        );
    }
}
