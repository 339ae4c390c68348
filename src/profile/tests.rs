use prost::Message;

use super::diff::{By, Measure, diff};
use super::*;

fn job(tensor: usize, weight_bytes: u64, cycles: Option<u64>) -> Job {
    Job {
        tensor,
        expert: None,
        rows: 8,
        cols: 1,
        bytes: weight_bytes + 64,
        weight_bytes,
        answer_bytes: 48,
        cycles,
        prepare_ns: 100.0,
        results_ns: 50.0,
    }
}

fn chain(engine: usize, cycles: u64, jobs: Vec<Job>) -> Chain {
    let beats_in = jobs.iter().map(|j| j.bytes.div_ceil(16)).sum();
    Chain {
        engine,
        prepare_ns: 500.0,
        kernel_ns: cycles as f64 * 5.0,
        results_ns: 200.0,
        cycles: Some(cycles),
        counters: Counters {
            cycles,
            busy: cycles - 70,
            stall_in: 30,
            stall_out: 3,
            beats_in,
            beats_out: 4,
        },
        jobs,
    }
}

/// Two tokens on two engines; names that HTML, CSV and layers have to take care of.
fn profile() -> Profile {
    let tensor = |name: &str| Tensor {
        name: name.into(),
        r#type: "Q4_0".into(),
        k: 256,
        rows: 16,
    };
    let graph = |cycles| Graph {
        host_ns: 1000.0,
        driver_ns: 40.0,
        chains: vec![
            chain(
                0,
                cycles,
                vec![job(0, 1152, Some(150)), job(1, 1152, Some(250))],
            ),
            chain(1, 2 * cycles, vec![job(0, 1152, Some(500))]),
        ],
    };
    Profile {
        weightstream_profile: VERSION,
        target: "rtl".into(),
        model: "m.gguf".into(),
        engines: 2,
        bus_bytes: 16,
        blocks_per_cycle: 1,
        clock_mhz: Some(200.0),
        simulator_seconds: Some(0.5),
        tensors: vec![
            tensor("blk.0.attn_q.weight"),
            tensor("</script><b>\"x\", <!--.weight"),
        ],
        steps: vec![
            Step {
                phase: Phase::Prefill,
                columns: 4,
                graphs: vec![graph(900)],
            },
            Step {
                phase: Phase::Decode,
                columns: 1,
                graphs: vec![graph(400), graph(400)],
            },
        ],
    }
}

#[test]
fn shares_of_a_chain_are_the_chain() {
    let chain = chain(
        0,
        700,
        vec![job(0, 1152, Some(150)), job(1, 4096, Some(300))],
    );
    let shares = attribute::jobs(&chain, 16);
    let sum = |f: fn(&attribute::Share) -> f64| shares.iter().map(f).sum::<f64>();
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    near(sum(|s| s.kernel_ns), chain.kernel_ns);
    near(sum(|s| s.driver_ns), chain.prepare_ns + chain.results_ns);
    near(sum(|s| s.cycles.total), 700.0);
    near(sum(|s| s.cycles.wait_input), 30.0);
    near(sum(|s| s.cycles.idle), 70.0);
    // Of each job the beats of its own bytes, and of the rest by what it took beside them.
    near(shares[0].cycles.data, 76.0);
    near(shares[1].cycles.data, 260.0);
    near(shares[0].cycles.idle, 70.0 * 74.0 / (74.0 + 40.0));

    let alone = attribute::jobs(&super::tests::chain(0, 700, vec![job(0, 1152, None)]), 16);
    near(alone[0].cycles.total, 700.0);
    near(alone[0].kernel_ns, 3500.0);
}

#[test]
fn phases_add_up_and_engines_count_by_their_parts() {
    let profile = profile();
    let phases = summary::phases(&profile);
    let [prefill, decode] = phases.as_slice() else {
        panic!("{phases:?}");
    };
    assert_eq!((prefill.tokens, decode.tokens, decode.steps), (4, 1, 1));
    let t = decode.totals;
    assert_eq!((t.jobs, t.weight_bytes), (6, 6 * 1152));
    assert_eq!(t.operations, 6 * 2 * 256 * 8);
    assert_eq!(t.host_ns, 2000.0);
    assert!((t.cycles - 2.0 * (400.0 + 800.0) / 2.0).abs() < 1e-6);
    assert!((t.driver_ns - 2.0 * (40.0 + (700.0 + 700.0) / 2.0)).abs() < 1e-6);
    let rows: f64 = decode.tensors.iter().map(|r| r.totals.ns()).sum();
    assert!((rows - t.ns()).abs() < 1e-6);
    assert_eq!(decode.layers[0].name, "blk.0");
    assert_eq!(decode.roles[0].name, "attn_q");
}

#[test]
fn engines_run_side_by_side_on_the_timeline() {
    let profile = profile();
    let steps = timeline::place(&profile);
    let first = &steps[0].graphs[0];
    assert_eq!(first.host.end, 1000.0);
    // Both start behind what the driver does for the whole graph; the slower one ends it.
    assert_eq!(first.chains[0].prepare.start, 1040.0);
    assert_eq!(first.chains[1].prepare.start, 1040.0);
    assert_eq!(first.span.end, 1040.0 + 500.0 + 9000.0 + 200.0);
    assert_eq!(steps[1].span.start, first.span.end);

    let bandwidth = timeline::bandwidth(&steps, 50);
    let bytes: f64 = bandwidth.gigabytes_per_second.iter().sum::<f64>() * bandwidth.bin_ns;
    let streamed: u64 = profile
        .chains()
        .flat_map(|c| &c.jobs)
        .map(|j| j.bytes)
        .sum();
    assert!(
        (bytes - streamed as f64).abs() < 1.0,
        "{bytes} of {streamed}"
    );
}

#[test]
fn a_clock_changes_the_kernel_s_time_alone() {
    let mut profile = profile();
    let before = summary::phases(&profile)[1].totals;
    profile.set_clock(100.0);
    let after = summary::phases(&profile)[1].totals;
    assert!((after.kernel_ns - 2.0 * before.kernel_ns).abs() < 1e-6);
    assert_eq!(after.driver_ns, before.driver_ns);
    assert_eq!(after.cycles, before.cycles);
}

#[test]
fn a_diff_finds_what_got_slower() {
    let a = profile();
    let same = diff(&a, &a, By::Tensor).unwrap();
    assert_eq!(same.measure, Measure::Cycles);
    assert!(
        same.rows
            .iter()
            .chain(&same.totals)
            .all(|c| !c.is_slower(0.0))
    );

    let mut b = a.clone();
    b.steps[1].graphs[0].chains[1].cycles = Some(880);
    let found = diff(&a, &b, By::Tensor).unwrap();
    let slower: Vec<_> = found.rows.iter().filter(|c| c.is_slower(1.0)).collect();
    assert_eq!(slower.len(), 1, "{found:?}");
    assert_eq!(slower[0].name, "blk.0.attn_q.weight");
    assert_eq!(slower[0].phase, Phase::Decode);
    assert!((slower[0].difference() - 40.0).abs() < 1e-6);
    assert_eq!(found.rows[0], *slower[0]);

    b.clock_mhz = None;
    assert_eq!(diff(&a, &b, By::Layer).unwrap().measure, Measure::Time);
    b.steps.clear();
    assert!(matches!(
        diff(&a, &b, By::Role),
        Err(ProfileError::Incomparable { .. })
    ));
}

#[test]
fn html_holds_names_as_data_only() {
    let profile = profile();
    let page = html::render(&profile).unwrap();
    let template = include_str!("report.html");
    for tag in ["<script", "</script", "<!--", "<b>"] {
        assert_eq!(
            page.matches(tag).count(),
            template.matches(tag).count(),
            "{tag}"
        );
    }
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
    assert_eq!(
        data["phases"][1]["tensors"][1]["name"],
        profile.tensors[1].name
    );
    assert_eq!(data["jobs"].as_array().unwrap().len(), 9);
}

#[test]
fn csv_has_a_line_a_job_and_survives_names() {
    let profile = profile();
    let csv = table::jobs_csv(&profile).unwrap();
    let mut reader = csv::Reader::from_reader(csv.as_slice());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 9);
    assert_eq!(&rows[1][4], profile.tensors[1].name);
    let csv = table::tensors_csv(&profile, &summary::phases(&profile)).unwrap();
    assert_eq!(
        csv::Reader::from_reader(csv.as_slice()).records().count(),
        4
    );
}

#[test]
fn a_trace_s_slices_begin_and_end() {
    let bytes = perfetto::encode(&profile());
    let trace = perfetto::Trace::decode(bytes.as_slice()).unwrap();
    let mut open: std::collections::HashMap<u64, Vec<u64>> = Default::default();
    let mut slices = 0;
    for packet in trace.packet {
        let Some(event) = packet.track_event else {
            continue;
        };
        let (at, stack) = (
            packet.timestamp.unwrap(),
            open.entry(event.track_uuid).or_default(),
        );
        match event.r#type {
            perfetto::SLICE_BEGIN => stack.push(at),
            perfetto::SLICE_END => {
                assert!(stack.pop().unwrap() <= at);
                slices += 1;
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty));
    // Steps, two a graph, three a chain, three a job.
    assert_eq!(slices, 2 + 2 * 3 + 3 * 6 + 3 * 9);
}

#[test]
fn layers_and_roles_of_names() {
    for (name, layer, role) in [
        ("blk.12.ffn_up.weight", "blk.12", "ffn_up"),
        ("output.weight", "output", "output"),
        ("token_embd.weight", "token_embd", "token_embd"),
        ("blk.x.attn.weight", "blk.x.attn", "blk.x.attn"),
        ("odd", "odd", "odd"),
        ("", "", ""),
    ] {
        assert_eq!((layer_of(name), role_of(name)), (layer, role), "{name}");
    }
}

#[test]
fn files_that_are_no_profiles_are_errors_that_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        let path = dir.path().join("p.json");
        std::fs::write(&path, text).unwrap();
        Profile::read(&path).unwrap_err().to_string()
    };
    assert!(read("{").contains("not a profile"));
    assert!(read("{}").contains("weightstream_profile is missing, expected 1"));
    assert!(read("{\"weightstream_profile\": 2}").contains("is 2, expected 1"));
    let mut bad = profile();
    bad.steps[0].graphs[0].chains[0].jobs[0].tensor = 7;
    let text = serde_json::to_string(&bad).unwrap();
    assert!(read(&text).contains("tensor is 7, expected an index of the 2 tensors"));
    let mut bad = profile();
    bad.clock_mhz = Some(0.0);
    assert!(read(&serde_json::to_string(&bad).unwrap()).contains("clock_mhz is 0"));
}
