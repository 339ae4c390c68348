//! Each rule of the protocol checkers bites, and what is right passes.

mod rig;

use std::pin::Pin;

use rig::{BASE, Rig};
use weightstream_sim::{
    Channel, SimError, SimOptions,
    probe::{Probe, make_probe},
};

type Cycle = Box<dyn Fn(Pin<&mut Probe>) -> String>;

/// A cycle of the address channel on a bus of 16 bytes.
fn addr(valid: bool, ready: bool, addr: u64, len: u8, size: u8, burst: u8) -> Cycle {
    cycle(move |p| p.addr(false, valid, ready, addr, len, size, burst))
}

fn good_addr(ready: bool) -> Cycle {
    addr(true, ready, 0x1_0000_0F00, 15, 4, 1)
}

fn due(addr: u64, len: u8) -> Cycle {
    cycle(move |p| p.data_address(addr, len))
}

fn data(valid: bool, ready: bool, fill: u8, strb: u64, last: bool) -> Cycle {
    cycle(move |p| p.data(false, valid, ready, fill, strb, last))
}

fn reply_due(len: u8) -> Cycle {
    cycle(move |p| p.reply_due(len))
}

fn reply(valid: bool, ready: bool, last: bool, payload: u64) -> Cycle {
    cycle(move |p| p.reply(valid, ready, last, payload))
}

fn cycle(f: impl Fn(Pin<&mut Probe>) -> String + 'static) -> Cycle {
    Box::new(f)
}

/// Feeds the cycles; only the last may break a rule, `rule`, or none where that is empty.
fn check(rule: &str, cycles: Vec<Cycle>) {
    let mut probe = make_probe(16);
    let last = cycles.len() - 1;
    for (i, cycle) in cycles.iter().enumerate() {
        let broken = cycle(probe.pin_mut());
        if i < last {
            assert_eq!(broken, "", "cycle {i} before {rule:?}");
        } else if rule.is_empty() {
            assert_eq!(broken, "");
        } else {
            assert!(broken.contains(rule), "{broken:?} is not {rule:?}");
        }
    }
}

#[test]
fn addresses() {
    check(
        "",
        vec![
            good_addr(false),
            good_addr(false),
            good_addr(true),
            addr(false, true, 0, 0, 0, 0),
        ],
    );
    check(
        "",
        vec![
            addr(true, true, 0xF00, 15, 4, 1),
            addr(true, true, 0x1000, 255, 4, 1),
        ],
    );
    check(
        "VALID fell",
        vec![good_addr(false), addr(false, true, 0, 0, 4, 1)],
    );
    check(
        "payload changed",
        vec![good_addr(false), addr(true, true, 0x1_0000_0F10, 14, 4, 1)],
    );
    check(
        "payload changed",
        vec![good_addr(false), addr(true, true, 0x1_0000_0F00, 14, 4, 1)],
    );
    check("crosses 4 KiB", vec![addr(true, true, 0xF00, 16, 4, 1)]);
    check("crosses 4 KiB", vec![addr(true, false, 0xFF0, 1, 4, 1)]);
    check("SIZE is 3", vec![addr(true, true, 0, 0, 3, 1)]);
    check("BURST is 0", vec![addr(true, true, 0, 0, 4, 0)]);
    check("BURST is 2", vec![addr(true, true, 0, 3, 4, 2)]);
    check(
        "reset",
        vec![cycle(|p| p.addr(true, true, true, 0, 0, 4, 1))],
    );
}

#[test]
fn write_data() {
    let all = 0xFFFF;
    check(
        "",
        vec![
            due(0, 1),
            data(true, false, 1, all, false),
            data(true, true, 1, all, false),
            data(false, true, 0, 0, false),
            data(true, true, 2, 0x00FF, true),
            due(0x18, 0),
            data(true, true, 3, 0xFF00, true),
        ],
    );
    check(
        "VALID fell",
        vec![
            due(0, 0),
            data(true, false, 1, all, true),
            data(false, true, 1, all, true),
        ],
    );
    for changed in [
        data(true, true, 2, all, true),
        data(true, true, 1, 1, true),
        data(true, true, 1, all, false),
    ] {
        check(
            "payload changed",
            vec![due(0, 0), data(true, false, 1, all, true), changed],
        );
    }
    check(
        "WLAST before",
        vec![due(0, 1), data(true, true, 1, all, true)],
    );
    check("no WLAST", vec![due(0, 0), data(true, true, 1, all, false)]);
    check(
        "no WLAST",
        vec![
            due(0, 1),
            data(true, true, 1, all, false),
            data(true, true, 1, all, false),
        ],
    );
    check("without an address", vec![data(true, true, 1, all, true)]);
    check(
        "without an address",
        vec![
            due(0, 0),
            data(true, true, 1, all, true),
            data(true, true, 1, all, true),
        ],
    );
    check("WSTRB", vec![due(0x18, 0), data(true, true, 1, all, true)]);
    check(
        "reset",
        vec![cycle(|p| p.data(true, true, true, 0, 1, true))],
    );
    let many = (0..257).map(|_| due(0, 0)).collect();
    check("more bursts", many);
}

#[test]
fn replies() {
    check(
        "",
        vec![
            reply_due(1),
            reply_due(0),
            reply(true, false, false, 1),
            reply(true, true, false, 1),
            reply(false, true, true, 0),
            reply(true, true, true, 2),
            reply(true, true, true, 3),
        ],
    );
    check(
        "VALID fell",
        vec![
            reply_due(0),
            reply(true, false, true, 1),
            reply(false, true, true, 1),
        ],
    );
    check(
        "payload changed",
        vec![
            reply_due(0),
            reply(true, false, true, 1),
            reply(true, true, true, 2),
        ],
    );
    check("nothing asked for", vec![reply(true, true, true, 1)]);
    check(
        "nothing asked for",
        vec![
            reply_due(0),
            reply(true, true, true, 1),
            reply(true, true, true, 1),
        ],
    );
    check(
        "LAST before",
        vec![reply_due(1), reply(true, true, true, 1)],
    );
    check("no LAST", vec![reply_due(0), reply(true, true, false, 1)]);
}

/// The rules that `rtl/dma/tb/weightstream.sv` breaks, and what the checkers say.
const FALL: (u32, &str) = (1, "VALID fell");
const CHANGE: (u32, &str) = (2, "payload changed");
const CROSS: (u32, &str) = (3, "crosses 4 KiB");
const SIZE: (u32, &str) = (4, "SIZE is");
const BURST: (u32, &str) = (5, "BURST is 0");
const RESET: (u32, &str) = (6, "reset");
const EARLY: (u32, &str) = (7, "WLAST before");
const LATE: (u32, &str) = (8, "no WLAST");
const STROBE: (u32, &str) = (9, "WSTRB");
const UNASKED: (u32, &str) = (10, "nothing asked for");
const ERROR: (u32, &str) = (11, "a response of 2");

/// An accelerator that breaks a rule on a channel is stopped, and the error names the channel.
#[track_caller]
fn caught(channel: Channel, (rule, says): (u32, &str)) {
    // So that VALID has to wait for READY.
    let waits = matches!(rule, 1 | 2);
    let stalls = if waits && !channel.is_memory() {
        vec![(channel, 0.9)]
    } else {
        Vec::new()
    };
    let options = SimOptions {
        stalls,
        ..SimOptions::default()
    };
    let mut rig = Rig::new("rules128", 4096, &options);
    assert_eq!(rig.arena.view().base, BASE);
    if waits && channel.is_memory() {
        rig.sim.mute(channel).unwrap();
    }
    let sim = &mut rig.sim;
    let error = sim
        .write32(0, rule << 8 | channel as u32)
        .and_then(|()| sim.read32(0))
        .and_then(|_| sim.run(100))
        .and_then(|()| sim.reset(4))
        .expect_err(says);
    match &error {
        SimError::Protocol {
            channel: named,
            message,
            ..
        } => {
            assert_eq!(*named, channel, "{error}");
            assert!(message.contains(says), "{error}");
        }
        _ => panic!("{channel}, {says}: {error}"),
    }
    // It cannot go on.
    assert_eq!(sim.run(1).unwrap_err(), error);
}

#[test]
fn every_port_is_watched() {
    for channel in [
        Channel::SgAr,
        Channel::SgAw,
        Channel::Mm2sAr,
        Channel::S2mmAw,
    ] {
        for rule in [FALL, CHANGE, CROSS, SIZE, BURST, RESET] {
            caught(channel, rule);
        }
    }
    for channel in [Channel::SgW, Channel::S2mmW] {
        for rule in [FALL, CHANGE, EARLY, LATE, STROBE, RESET] {
            caught(channel, rule);
        }
    }
    for channel in [Channel::CtrlB, Channel::CtrlR] {
        for rule in [FALL, CHANGE, UNASKED, ERROR, RESET] {
            caught(channel, rule);
        }
    }
}
