use super::*;

fn dram(setting: &str) -> Dram {
    Dram::new(&setting.parse().unwrap())
}

/// Cycles in which `beats` beats of 16 bytes come, read in bursts of 64, four in flight.
fn stream(dram: &mut Dram, beats: usize, beat_bytes: u32, stride: u64) -> f64 {
    let mut ends = Vec::new();
    let mut now = 0;
    let mut ready = [0; 64];
    for burst in 0..beats / 64 {
        if burst >= 4 {
            now = now.max(ends[burst - 4]);
        }
        dram.read(now, burst as u64 * stride, beat_bytes, &mut ready);
        // The port gives a beat a cycle.
        let mut given = ends.last().copied().unwrap_or(0);
        for ready in ready {
            given = (given + 1).max(ready);
        }
        ends.push(given);
    }
    *ends.last().unwrap() as f64
}

#[test]
fn a_stream_comes_at_the_peak_less_refresh_where_the_port_is_wide_enough() {
    for (setting, beat_bytes) in [
        ("ddr3-1050@1000", 64),
        ("ddr4-2400@1000", 64),
        ("hbm2@1000", 64),
    ] {
        let mut dram = dram(setting);
        let beats = 64 * 2000;
        let cycles = stream(&mut dram, beats, beat_bytes, 64 * u64::from(beat_bytes));
        let seconds = cycles / 1e9;
        let share = beats as f64 * f64::from(beat_bytes) / seconds / dram.preset.peak();
        let refresh = dram.preset.t_rfc as f64 / dram.preset.t_refi as f64;
        assert!(share < 1.0 - refresh + 1e-3, "{setting}: {share}");
        assert!(share > 0.97 * (1.0 - refresh), "{setting}: {share}");
        let stats = dram.stats();
        assert!(
            stats.hits > 10 * (stats.closed + stats.conflicts),
            "{stats:?}"
        );
    }
}

#[test]
fn rows_that_change_in_one_bank_cost_a_row_cycle_each() {
    let mut dram = dram("ddr4-2400@1000");
    let p = dram.preset;
    let rows = p.row_bytes * (p.bank_groups * p.banks) as u64;
    let mut ready = [0];
    for n in 0..100 {
        dram.read(0, n * rows, 64, &mut ready);
    }
    let least = 99 * (p.t_ras + p.t_rp) / 1000;
    assert!(ready[0] >= least, "{} of {least}", ready[0]);
    assert_eq!(dram.stats().conflicts, 99);
}

#[test]
fn the_first_access_takes_path_activation_and_latency() {
    let mut dram = dram("ddr4-2400@1000");
    let p = dram.preset;
    let mut ready = [0];
    dram.read(10, 0, 64, &mut ready);
    let ps = 10_000 + p.path + p.t_rcd + p.cl + 4 * p.t_ck;
    assert_eq!(ready[0], ps.div_ceil(1000));
}

#[test]
fn refresh_comes_once_an_interval_and_closes_every_row() {
    let mut dram = dram("ddr4-2400@1000");
    let mut ready = [0];
    for n in 0..1000 {
        dram.read(n * 78, 0, 64, &mut ready);
    }
    let stats = dram.stats();
    assert_eq!(stats.refreshes, 999 * 78 / 7800);
    assert_eq!(stats.closed, 1 + stats.refreshes);
}

#[test]
fn writes_go_in_batches_and_turn_the_bus() {
    let mut dram = dram("ddr4-2400@1000");
    let mut ready = [0; 8];
    for n in 0..64u64 {
        assert!(dram.write(n, (1 << 20) + n * 64, 64) > n);
        dram.read(n, n * 512, 64, &mut ready);
    }
    let stats = dram.stats();
    // Sixteen at once, so to them and back once each time; those that came first met an idle bus.
    assert!((6..=10).contains(&stats.turnarounds), "{stats:?}");
}

#[test]
fn four_channels_give_four_times_one() {
    let mut four = dram("4xddr4-2400@1000");
    let mut one = dram("ddr4-2400@1000");
    // A port wider than all of them: 128 bytes a cycle.
    let wide = stream(&mut four, 64 * 1000, 128, 64 * 128);
    let narrow = stream(&mut one, 64 * 1000, 128, 64 * 128);
    assert!((3.6..4.4).contains(&(narrow / wide)), "{narrow} {wide}");
}

#[test]
fn settings_are_read_as_they_are_written() {
    for preset in &PRESETS {
        let setting: Setting = format!("{}@250", preset.name).parse().unwrap();
        assert_eq!(setting.clock_mhz, 250);
        assert_eq!(setting.to_string().parse(), Ok(setting));
    }
    // 14.16 and 350 ns, in cycles of 4 ns.
    let setting: Setting = "ddr4-2400@250".parse().unwrap();
    assert_eq!(setting.refresh_cycles(), 92);
    let error = |text: &str| text.parse::<Setting>().unwrap_err().to_string();
    assert!(error("ddr9").contains("there are ddr3-1050, ddr4-2400"));
    assert!(error("hbm2@0").contains("\"0\" is not 1 to 1000 MHz"));
    assert!(error("hbm2@x").contains("\"x\" is not"));
}

#[test]
fn peaks_are_those_of_the_data_sheets() {
    let peak = |name| (Preset::find(name).unwrap().peak() / 1e8).round() / 10.0;
    assert_eq!(peak("ddr3-1050"), 2.1);
    assert_eq!(peak("ddr4-2400"), 19.2);
    assert_eq!(peak("4xddr4-2400"), 76.8);
    assert_eq!(peak("hbm2"), 14.4);
}
