//! The harness itself: what sticks is named, what fails is an error, and nothing ends the process.

mod rig;

use std::{ptr::NonNull, thread};

use rig::*;
use weightstream_sim::{Channel, DeviceMemory, Lines, Sim, SimError, SimOptions, configs};

/// A packet on its way round, with a short watchdog.
fn packet(options: SimOptions) -> Rig {
    let options = SimOptions {
        watchdog: 2000,
        ..options
    };
    let mut rig = Rig::new("loop128", 1 << 20, &options);
    rig.put_desc(0, 0x40, BASE + 0x1_0000, 50_000 | SOF | EOF);
    rig.put_desc(0x4000, 0x4040, BASE + 0x8_0000, 100_000);
    rig.start(S2MM, 0x4000);
    rig.tail(S2MM, 0x4000);
    rig.start(MM2S, 0);
    rig
}

const S2MM_LINE: Lines = Lines {
    mm2s: false,
    s2mm: true,
};

#[test]
fn the_watchdog_names_the_channel() {
    for channel in Channel::memory() {
        let mut rig = packet(SimOptions::default());
        rig.sim.mute(channel).unwrap();
        rig.tail(MM2S, 0);
        // S2MM's descriptor is already fetched, so its ring is not what sticks first.
        let error = rig.sim.run_until_irq(S2MM_LINE, 1_000_000).unwrap_err();
        let SimError::Watchdog {
            channel: Some(named),
            cycle,
            cycles: 2000,
        } = error
        else {
            panic!("{channel}: {error}");
        };
        assert_eq!(named, channel, "{error}");
        assert!(cycle >= 2000 && error.to_string().contains(channel.name()));
        // The same with nobody waiting for an interrupt.
        let error = rig.sim.run(1_000_000).unwrap_err();
        assert!(matches!(error, SimError::Watchdog { channel: Some(c), .. } if c == channel));
        // The run can go on.
        rig.sim.unmute();
        assert!(rig.sim.run_until_irq(S2MM_LINE, 1_000_000).unwrap().s2mm);
    }
}

#[test]
fn the_watchdog_names_the_kernel() {
    // A kernel that takes nothing, and one that gives nothing: its input is where it shows.
    for hold in [1, 2] {
        let mut rig = packet(SimOptions::default());
        rig.sim.write32(LOOP, hold).unwrap();
        rig.tail(MM2S, 0);
        let error = rig.sim.run_until_irq(S2MM_LINE, 1_000_000).unwrap_err();
        assert!(
            matches!(
                error,
                SimError::Watchdog {
                    channel: Some(Channel::KernelIn),
                    ..
                }
            ),
            "{error}"
        );
    }
    // An answer that nobody has given a buffer for.
    let options = SimOptions {
        watchdog: 2000,
        ..SimOptions::default()
    };
    let mut rig = Rig::new("loop128", 1 << 20, &options);
    rig.put_desc(0, 0x40, BASE + 0x1_0000, 256 | SOF | EOF);
    rig.start(MM2S, 0);
    rig.tail(MM2S, 0);
    let error = rig.sim.run(1_000_000).unwrap_err();
    assert!(
        matches!(
            error,
            SimError::Watchdog {
                channel: Some(Channel::KernelOut),
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn silence_is_an_error_only_for_one_who_waits() {
    let mut rig = Rig::new(
        "loop128",
        4096,
        &SimOptions {
            watchdog: 500,
            ..SimOptions::default()
        },
    );
    rig.sim.run(10_000).unwrap();
    assert_eq!(
        rig.sim.run_until_irq(Lines::ALL, 400).unwrap(),
        Lines::default()
    );
    let before = rig.sim.now();
    let error = rig.sim.run_until_irq(Lines::ALL, 10_000).unwrap_err();
    assert!(
        matches!(error, SimError::Watchdog { channel: None, .. }),
        "{error}"
    );
    assert!((500..1100).contains(&(rig.sim.now() - before)));
}

#[test]
fn a_failed_assertion_is_an_error() {
    let mut rig = Rig::new("loop128", 4096, &SimOptions::default());
    let error = rig
        .sim
        .write32(LOOP, 1 << 31)
        .and_then(|()| rig.sim.run(10))
        .unwrap_err();
    let SimError::Assertion {
        file,
        line,
        message,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert!(
        file.ends_with("rtl/dma/tb/ws_kernel.sv") && *line > 0,
        "{error}"
    );
    assert!(message.contains("asked to fail"), "{error}");
    // It does not run on, and says why each time.
    assert_eq!(rig.sim.run(1).unwrap_err(), error);
    assert_eq!(rig.sim.read32(0).unwrap_err(), error);
    // Others are not touched by it.
    let mut other = Rig::new("loop128", 4096, &SimOptions::default());
    other.sim.run(100).unwrap();
}

#[test]
fn traces_are_written_when_asked() {
    let folder = std::env::temp_dir().join(format!("weightstream-sim-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut rig = Rig::new("loop128", 4096, &SimOptions::default());
    let error = rig
        .sim
        .trace_start(&folder.join("no/folder.fst"))
        .unwrap_err();
    assert!(
        matches!(&error, SimError::Trace { path, .. } if path.ends_with("no/folder.fst")),
        "{error}"
    );
    assert!(error.to_string().contains("No such file"), "{error}");
    // A failed start costs nothing but the trace; and traces can follow each other.
    let mut sizes = Vec::new();
    for (name, cycles) in [("a.fst", 50), ("b.fst", 5000)] {
        let path = folder.join(name);
        rig.sim.trace_start(&path).unwrap();
        rig.sim.run(cycles).unwrap();
        rig.sim.read32(DMASR).unwrap();
        rig.sim.trace_stop().unwrap();
        rig.sim.run(100).unwrap();
        sizes.push(std::fs::metadata(&path).unwrap().len());
    }
    assert!(sizes[0] > 500 && sizes[1] > sizes[0], "{sizes:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_trace_of_some_cycles_is_that_of_a_whole_run_cut() {
    let folder = tempfile::tempdir().unwrap();
    let size = |name: &str, cycles| {
        let path = folder.path().join(name);
        let mut rig = Rig::new("loop128", 4096, &SimOptions::default());
        rig.sim.trace_cycles(&path, cycles).unwrap();
        rig.sim.run(3000).unwrap();
        drop(rig);
        std::fs::metadata(&path).unwrap().len()
    };
    let (whole, some) = (size("whole.fst", 0..u64::MAX), size("some.fst", 1000..1200));
    assert!(some > 500 && some < whole, "{some} of {whole}");
    assert_eq!(
        size("never.fst", 5000..6000),
        0,
        "the window was not reached"
    );
}

#[test]
fn bad_options_are_refused() {
    let memory = DeviceMemory {
        data: NonNull::dangling(),
        length: 0,
        base: 0,
    };
    let refused = |config: &str, options: SimOptions| {
        // SAFETY: the memory is empty, so nothing is ever accessed.
        unsafe { Sim::new(config, memory, &options) }
            .err()
            .expect("an error")
            .to_string()
    };
    let default = SimOptions::default;
    let message = refused("w96", default());
    assert!(
        message.contains("w96") && configs().iter().all(|c| message.contains(c)),
        "{message}"
    );
    let cases = [
        (
            "latency",
            SimOptions {
                latency: 0,
                ..default()
            },
        ),
        (
            "max_outstanding",
            SimOptions {
                max_outstanding: 65,
                ..default()
            },
        ),
        (
            "max_outstanding",
            SimOptions {
                max_outstanding: 0,
                ..default()
            },
        ),
        (
            "bandwidth",
            SimOptions {
                bandwidth: Some((0, 1)),
                ..default()
            },
        ),
        (
            "refresh",
            SimOptions {
                refresh: Some((10, 10)),
                ..default()
            },
        ),
        (
            "watchdog",
            SimOptions {
                watchdog: 0,
                ..default()
            },
        ),
        ("stalls", default().stall_all(1.0)),
        (
            "stalls",
            SimOptions {
                stalls: vec![(Channel::KernelIn, 0.5)],
                ..default()
            },
        ),
    ];
    for (option, options) in cases {
        let message = refused("loop128", options);
        assert!(message.contains(option), "{option}: {message}");
    }
    let mut rig = Rig::new("loop128", 4096, &default());
    for channel in [Channel::CtrlAr, Channel::KernelIn] {
        assert!(rig.sim.mute(channel).is_err());
    }
}

#[test]
fn a_hardware_reset_is_a_fresh_start() {
    let mut rig = packet(SimOptions::default());
    rig.tail(MM2S, 0);
    rig.sim.run(700).unwrap();
    rig.sim.reset(4).unwrap();
    for channel in [MM2S, S2MM] {
        assert_eq!(rig.read(channel, DMACR), 0x0001_0002);
        assert_eq!(rig.read(channel, DMASR), 0x0001_0009);
    }
    let before = rig.arena.bytes().to_vec();
    rig.sim.run(1000).unwrap();
    assert!(before == rig.arena.bytes());
}

#[test]
fn the_limits_of_the_memory_hold() {
    let cycles = |options: SimOptions| {
        let mut rig = packet(options);
        let begin = rig.sim.now();
        rig.tail(MM2S, 0);
        assert!(rig.sim.run_until_irq(S2MM_LINE, 1_000_000).unwrap().s2mm);
        rig.sim.now() - begin
    };
    let beats = 50_000 / 16;
    let free = cycles(SimOptions::default());
    assert!(free > beats && free < beats + 600, "{free}");
    // Data comes in and goes out, so half a beat a cycle is at least four times the time.
    let half = cycles(SimOptions {
        bandwidth: Some((1, 2)),
        ..SimOptions::default()
    });
    assert!(half > 4 * beats && half < 11 * beats / 2, "{half}");
    let refresh = cycles(SimOptions {
        refresh: Some((100, 25)),
        ..SimOptions::default()
    });
    assert!(
        refresh > beats * 4 / 3 && refresh < beats * 4 / 3 + 900,
        "{refresh}"
    );
    // S2MM's bursts are the shorter ones: 16 beats in their own time and 60 cycles' latency.
    let one = cycles(SimOptions {
        max_outstanding: 1,
        ..SimOptions::default()
    });
    assert!(one > beats * 76 / 16 && one < beats * 84 / 16, "{one}");
    let stalls = cycles(SimOptions {
        stalls: vec![(Channel::Mm2sR, 0.5)],
        ..SimOptions::default()
    });
    assert!(
        stalls > beats * 19 / 10 && stalls < beats * 21 / 10 + 600,
        "{stalls}"
    );
}

#[test]
fn runs_repeat_by_their_seed() {
    let run = |seed| {
        let mut rig = packet(SimOptions {
            seed,
            ..SimOptions::default().stall_all(0.3)
        });
        rig.tail(MM2S, 0);
        rig.sim.run_until_irq(S2MM_LINE, 1_000_000).unwrap();
        rig.sim.now()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn simulations_run_side_by_side() {
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            // Made here, run there.
            let mut rig = packet(SimOptions {
                seed,
                ..SimOptions::default()
            });
            thread::spawn(move || {
                rig.tail(MM2S, 0);
                rig.sim.run_until_irq(S2MM_LINE, 1_000_000).unwrap();
                rig.status(0x4000)
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 50_000 | SOF | EOF | CMPLT);
    }
}
