//! Whatever goes wrong in DMA engine or kernel, in whatever moment: nothing hangs, and the next
//! good job is answered right. In every configuration of this build.

mod rig;

use proptest::prelude::*;
use rig::{packets::*, *};
use weightstream_sim::{Channel, ErrorResponse, SimOptions};

/// So many cases, or as many as `PROPTEST_CASES` says, for longer runs.
fn cases(count: u32) -> ProptestConfig {
    let cases = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default().cases,
        None => count,
    };
    ProptestConfig {
        cases,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    }
}

fn config() -> impl Strategy<Value = String> {
    prop::sample::select(configs())
}

fn options() -> impl Strategy<Value = SimOptions> {
    let chance = prop_oneof![Just(0.0), Just(0.1), Just(0.5)];
    let bandwidth = prop_oneof![Just(None), Just(Some((1, 2)))];
    (1..90u32, 1..17u32, chance, bandwidth, any::<u64>()).prop_map(
        |(latency, max_outstanding, chance, bandwidth, seed)| SimOptions {
            latency,
            max_outstanding,
            bandwidth,
            watchdog: 50_000,
            seed,
            ..SimOptions::default().stall_all(chance)
        },
    )
}

/// The numbers of golden vectors, for a few jobs.
fn some() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..vectors().len(), 2..5)
}

fn two() -> impl Strategy<Value = [usize; 2]> {
    [0..vectors().len(), 0..vectors().len()]
}

fn packets(which: &[usize]) -> Vec<Vec<u8>> {
    let numbered = which.iter().zip(0x100..);
    numbered
        .map(|(&n, tag)| packet(&vectors()[n], tag as usize % 7, tag))
        .collect()
}

/// A simulation on its way through a few jobs.
fn under_way(config: &str, options: &SimOptions, which: &[usize], pieces: usize) -> (Rig, Chain) {
    let mut rig = Rig::new(config, MEMORY, options);
    let chain = lay(&mut rig, &packets(which), pieces);
    go(&mut rig, &chain);
    (rig, chain)
}

/// Runs until all jobs are answered, and compares every answer.
#[track_caller]
fn assert_answers(rig: &mut Rig, chain: &Chain, which: &[usize]) {
    let last = chain.s2mm[which.len() - 1];
    rig.run_until(400_000, |rig| rig.status(last) & CMPLT != 0)
        .unwrap();
    for (n, &vector) in which.iter().enumerate() {
        let answer = answer(rig, chain, n).expect("answers come in order");
        assert_right(&answer, &vectors()[vector], 0x100 + n as u32);
    }
}

#[derive(Debug, Clone, Copy)]
enum Reset {
    /// `aresetn`, for so many cycles.
    Hardware(u32),
    /// The kernel first, which PG021 users cannot be kept from; the DMA so many cycles later.
    Kernel(u64),
    /// The DMA first, as the driver does; the kernel so many cycles later.
    Dma(u64),
}

fn reset() -> impl Strategy<Value = Reset> {
    prop_oneof![
        (4u32..9).prop_map(Reset::Hardware),
        (0u64..2000).prop_map(Reset::Kernel),
        (0u64..300).prop_map(Reset::Dma),
    ]
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn a_reset_at_any_time(
        config in config(),
        options in options(),
        which in some(),
        pieces in 1..9usize,
        resets in prop::collection::vec((0..6000u64, reset()), 1..3),
        next in two(),
    ) {
        let (mut rig, mut chain) = under_way(&config, &options, &which, pieces);
        for (n, &(when, reset)) in resets.iter().enumerate() {
            if n > 0 {
                chain = lay(&mut rig, &packets(&which), pieces);
                go(&mut rig, &chain);
            }
            rig.sim.run(when).unwrap();
            match reset {
                Reset::Hardware(cycles) => rig.sim.reset(cycles).unwrap(),
                Reset::Kernel(later) => {
                    reset_kernel(&mut rig);
                    rig.sim.run(later).unwrap();
                    recover(&mut rig);
                }
                Reset::Dma(later) => {
                    prop_assert!(rig.soft_reset(200_000));
                    rig.sim.run(later).unwrap();
                    reset_kernel(&mut rig);
                }
            }
            let before = rig.arena.bytes().to_vec();
            rig.sim.run(300).unwrap();
            prop_assert!(before == rig.arena.bytes(), "written after the reset");
        }
        prop_assert!(!chain.mm2s.is_empty());
        assert_works(&mut rig, next);
    }

    /// After a reset of the DMA alone the kernel still waits for the end of a packet: the next
    /// packet ends it, and the one after that is a job of its own again.
    #[test]
    fn a_reset_of_the_dma_alone(
        config in config(),
        options in options(),
        which in some(),
        pieces in 1..9usize,
        when in 0..6000u64,
        next in two(),
    ) {
        let (mut rig, _) = under_way(&config, &options, &which, pieces);
        rig.sim.run(when).unwrap();
        prop_assert!(rig.soft_reset(200_000));

        let jobs = next.map(|n| &vectors()[n]);
        let sent = [packet(jobs[0], 0, 0x200), packet(jobs[1], 0, 0x201)];
        let chain = lay(&mut rig, &sent, pieces);
        go(&mut rig, &chain);
        let mut right = None;
        rig.run_until(400_000, |rig| {
            right = (0..chain.s2mm.len())
                .filter_map(|n| answer(rig, &chain, n))
                .find(|answer| answer.len() >= FOOTER && footer(answer).0 == 0x201);
            right.is_some()
        })
        .unwrap();
        assert_right(&right.unwrap(), jobs[1], 0x201);
    }

    /// Any response of the memory may be an error.
    #[test]
    fn an_error_on_any_master(
        config in config(),
        options in options(),
        which in some(),
        pieces in 1..9usize,
        port in 0..4usize,
        decode in any::<bool>(),
        place in any::<prop::sample::Index>(),
        next in two(),
    ) {
        let mut rig = Rig::new(&config, MEMORY, &options);
        let sent = packets(&which);
        let chain = lay(&mut rig, &sent, pieces);
        let (mm2s, s2mm) = (MM2S_RING..MM2S_RING + 0x40 * chain.mm2s.len(), S2MM_RING);
        // A descriptor of a channel, or a byte that it moves.
        let rings = [place.index(chain.mm2s.len()) * 0x40, s2mm + place.index(which.len()) * 0x40];
        let desc = rings[usize::from(place.index(2) == 1)];
        let channel = if mm2s.contains(&desc) { MM2S } else { S2MM };
        // A byte of a packet, not of the gap behind it.
        let one = place.index(sent.len());
        let begin: usize = sent[..one].iter().map(|packet| packet.len().next_multiple_of(64)).sum();
        let byte = PACKETS + begin + place.index(sent[one].len());
        let (port, at, channel, error) = match port {
            0 => (Channel::SgR, desc + place.index(0x20), channel, [SG_SLV, SG_DEC]),
            1 => (Channel::SgB, desc + 0x1C, channel, [SG_SLV, SG_DEC]),
            2 => (Channel::Mm2sR, byte, MM2S, [DMA_SLV, DMA_DEC]),
            _ => {
                let answer = place.index(which.len());
                (Channel::S2mmB, ANSWERS + answer * ANSWER, S2MM, [DMA_SLV, DMA_DEC])
            }
        };
        let response = if decode { ErrorResponse::Decode } else { ErrorResponse::Slave };
        let range = BASE + at as u64..BASE + at as u64 + 1;
        rig.sim.inject_error(port, range, response).unwrap();
        go(&mut rig, &chain);
        rig.run_until(400_000, |rig| rig.read(channel, DMASR) & HALTED != 0).unwrap();
        prop_assert_eq!(
            rig.read(channel, DMASR) & (ERRORS | ERR),
            error[usize::from(decode)] | ERR
        );
        prop_assert_eq!(rig.read(MM2S + S2MM - channel, DMASR) & ERRORS, 0);
        rig.sim.clear_errors();
        recover(&mut rig);
        assert_works(&mut rig, next);
    }

    /// A channel of the memory that stands still for a while, in any phase of a chain.
    #[test]
    fn a_channel_that_stands_still(
        config in config(),
        options in options(),
        which in some(),
        pieces in 1..9usize,
        pauses in prop::collection::vec((0..2000u64, 0..10usize, 1..3000u64), 1..5),
    ) {
        let (mut rig, chain) = under_way(&config, &options, &which, pieces);
        for (when, channel, long) in pauses {
            rig.sim.run(when).unwrap();
            let channel = Channel::memory().nth(channel).unwrap();
            rig.sim.mute(channel).unwrap();
            rig.sim.run(long).unwrap();
            rig.sim.unmute();
        }
        assert_answers(&mut rig, &chain, &which);
    }

    /// Jobs with wrong headers and lengths among good ones, without a reset.
    #[test]
    fn malformed_jobs_among_good_ones(
        config in config(),
        options in options(),
        which in some(),
        pieces in 1..9usize,
        wrong in (any::<prop::sample::Index>(), 0..9usize, any::<u32>(), -300..300isize),
    ) {
        let (which_one, field, value, longer) = wrong;
        let mut sent = packets(&which);
        let bad = which_one.index(sent.len());
        let good = sent.clone();
        if field < 8 {
            sent[bad][4 * field..][..4].copy_from_slice(&value.to_le_bytes());
        } else {
            let length = sent[bad].len().saturating_add_signed(longer).max(1);
            sent[bad].resize(length, 0x77);
        }
        let mut rig = Rig::new(&config, MEMORY, &options);
        let chain = lay(&mut rig, &sent, pieces);
        go(&mut rig, &chain);
        let last = chain.s2mm[which.len() - 1];
        rig.run_until(400_000, |rig| rig.status(last) & CMPLT != 0).unwrap();
        for (n, &vector) in which.iter().enumerate() {
            let answer = answer(&mut rig, &chain, n).expect("answers come in order");
            if sent[n] == good[n] {
                assert_right(&answer, &vectors()[vector], 0x100 + n as u32);
            } else if sent[n].len() >= 64 {
                prop_assert_eq!(footer(&answer).0, 0x100 + n as u32);
            }
        }
    }
}

/// Every channel stalls in most cycles, one at a time.
#[test]
fn each_channel_stalls() {
    for channel in &Channel::ALL[..Channel::AXI] {
        let options = SimOptions {
            stalls: vec![(*channel, 0.9)],
            ..SimOptions::default()
        };
        let which = [0, 4, 9];
        let (mut rig, chain) = under_way(&configs()[0], &options, &which, 3);
        assert_answers(&mut rig, &chain, &which);
    }
}

/// What a length says and what is there differ; `spoil` changes descriptors of a job's chain.
/// Returns the error bits of MM2S and S2MM.
#[track_caller]
fn overrun(config: &str, spoil: impl FnOnce(&mut Rig, &Chain)) -> (Rig, [u32; 2]) {
    let mut rig = Rig::new(config, MEMORY, &SimOptions::default());
    let chain = lay(&mut rig, &packets(&[0, 1]), 2);
    spoil(&mut rig, &chain);
    go(&mut rig, &chain);
    rig.sim.run(20_000).unwrap();
    let errors = [MM2S, S2MM].map(|channel| rig.read(channel, DMASR) & ERRORS);
    (rig, errors)
}

/// The length in a descriptor, times or plus.
fn set_length(rig: &mut Rig, desc: usize, length: impl FnOnce(u32) -> u32) {
    let control = rig.word(desc + 0x18);
    let length = length(control & LENGTH);
    rig.put_word(desc + 0x18, control & !LENGTH | length);
}

#[test]
fn lengths_that_lie() {
    const SHORT: u32 = 1 << 17;
    const LONG: u32 = 1 << 18;
    for config in configs() {
        let status = |rig: &mut Rig| {
            let at = ANSWERS;
            let length = (rig.status(S2MM_RING) & LENGTH) as usize;
            footer(&rig.arena.bytes()[at..at + length]).1
        };
        // A packet that goes on behind its last weight, and one that ends before it.
        let (mut rig, errors) = overrun(&config, |rig, chain| {
            set_length(rig, chain.mm2s[1], |length| length + 1000);
        });
        assert_eq!((errors, status(&mut rig)), ([0, 0], LONG), "{config}");
        recover(&mut rig);
        assert_works(&mut rig, [2, 3]);
        let (mut rig, errors) = overrun(&config, |rig, chain| {
            set_length(rig, chain.mm2s[1], |length| length - 200);
        });
        assert_eq!((errors, status(&mut rig)), ([0, 0], SHORT), "{config}");
        recover(&mut rig);
        assert_works(&mut rig, [2, 3]);

        // The largest length there is: the chain leaves the memory.
        let (mut rig, errors) = overrun(&config, |rig, chain| {
            set_length(rig, chain.mm2s[1], |_| LENGTH);
            let end = BASE + MEMORY as u64 - 4096;
            rig.put_word(chain.mm2s[1] + 0x08, end as u32);
            rig.put_word(chain.mm2s[1] + 0x0C, (end >> 32) as u32);
        });
        assert_eq!(errors, [DMA_DEC, 0], "{config}");
        recover(&mut rig);
        assert_works(&mut rig, [2, 3]);

        // No length at all, in each ring.
        for (n, ring) in [0, 1].into_iter().zip([MM2S_RING, S2MM_RING]) {
            let (mut rig, errors) = overrun(&config, |rig, _| {
                set_length(rig, ring + 0x40, |_| 0);
            });
            let mut expected = [0, 0];
            expected[n] = DMA_INT;
            assert_eq!(errors, expected, "{config}");
            recover(&mut rig);
            assert_works(&mut rig, [2, 3]);
        }

        // An answer's buffer that is too small and ends within a bus word.
        let (mut rig, errors) = overrun(&config, |rig, chain| {
            set_length(rig, chain.s2mm[0], |_| 20);
        });
        assert_eq!(errors, [0, DMA_INT], "{config}");
        recover(&mut rig);
        assert_works(&mut rig, [2, 3]);

        // One that is too small by whole bus words: the answer goes on in the next.
        let (mut rig, errors) = overrun(&config, |rig, chain| {
            set_length(rig, chain.s2mm[0], |_| 64);
        });
        assert_eq!(errors, [0, 0], "{config}");
        assert_eq!(rig.status(S2MM_RING), 64 | SOF | CMPLT, "{config}");
        assert_eq!(
            rig.status(S2MM_RING + 0x40) & (SOF | EOF | CMPLT),
            EOF | CMPLT
        );
        recover(&mut rig);
        assert_works(&mut rig, [2, 3]);

        // No buffer is left for the rest of the answer: the channel waits, and is not halted.
        let (mut rig, errors) = overrun(&config, |rig, chain| {
            for &desc in &chain.s2mm {
                set_length(rig, desc, |_| 64);
            }
            rig.put_word(chain.s2mm[0] + 0x1C, 0);
        });
        assert_eq!(errors, [0, 0], "{config}");
        assert_eq!(rig.read(S2MM, DMASR) & HALTED, 0);
        recover(&mut rig);
        assert_works(&mut rig, [2, 3]);
    }
}
