//! What goes wrong on the bus comes back from the driver as an error of its own type that names
//! channel, cause and descriptor, and the next job is right. On every target of this build.

mod common;

use common::*;
use weightstream::dma::Buffer;
use weightstream::driver::{Accelerator, DriverError, Packet, Part};
use weightstream::regs::job::{self, Header};
use weightstream::target::{Fault, TargetOptions};
use weightstream::vectors::Case;

const ANSWER: usize = 1 << 12;
const DESCRIPTOR: u64 = 64;

/// The packet of a case's job.
fn job(case: &Case) -> Vec<u8> {
    let header = Header {
        magic: job::MAGIC,
        version: job::VERSION,
        ty: case.ty.ggml(),
        k: case.k as u32,
        rows: case.rows as u32,
        cols: case.cols as u32,
        skip: 0,
        flags: 0,
        tag: 7,
    };
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend_from_slice(&case.activations);
    bytes.resize(bytes.len().next_multiple_of(job::PART_ALIGN), 0);
    bytes.extend_from_slice(&case.weights);
    bytes
}

/// A job and a buffer for its answer, in memory.
struct Placed {
    packet: Buffer,
    answer: Buffer,
}

impl Placed {
    fn new(accelerator: &Accelerator) -> Placed {
        Placed {
            packet: place(accelerator, &job(&case("q4_1_small")), 0),
            answer: accelerator.heap().alloc(ANSWER).unwrap(),
        }
    }

    fn part(&self) -> Part {
        Part {
            addr: self.packet.device_addr(),
            len: self.packet.len(),
        }
    }

    fn answer(&self) -> Part {
        Part {
            addr: self.answer.device_addr(),
            len: ANSWER,
        }
    }

    /// The job in pieces of a bus word's largest size, so that it takes many descriptors.
    fn parts(&self) -> Vec<Part> {
        (0..self.packet.len())
            .step_by(64)
            .map(|at| Part {
                addr: self.packet.device_addr() + at as u64,
                len: 64.min(self.packet.len() - at),
            })
            .collect()
    }
}

/// The channel, its errors and its descriptor, where a channel halted.
#[track_caller]
fn halted(error: &DriverError) -> (&str, &str, u64) {
    match error {
        DriverError::Halted {
            channel,
            errors,
            curdesc,
            ..
        } => (channel, errors, *curdesc),
        _ => panic!("{error}"),
    }
}

#[track_caller]
fn run(accelerator: &mut Accelerator, parts: Vec<Part>, answer: Part) -> DriverError {
    let packets = [Packet { parts, answer }];
    accelerator
        .engine(0)
        .run(&packets)
        .expect_err("the job fails")
}

/// The first descriptors of both rings, which errors about them name.
fn rings(accelerator: &mut Accelerator) -> [u64; 2] {
    let placed = Placed::new(accelerator);
    let off = |part: Part| Part {
        addr: part.addr + 1,
        ..part
    };
    let error = run(accelerator, vec![off(placed.part())], placed.answer());
    let (channel, errors, mm2s) = halted(&error);
    assert_eq!((channel, errors), ("MM2S", "DMAIntErr"), "{error}");
    assert_works(accelerator);
    let error = run(accelerator, vec![placed.part()], off(placed.answer()));
    let (channel, errors, s2mm) = halted(&error);
    assert_eq!((channel, errors), ("S2MM", "DMAIntErr"), "{error}");
    assert_works(accelerator);
    [mm2s, s2mm]
}

#[test]
fn addresses_off_the_bus_word_halt_their_channel() {
    on_all(|spec| {
        let [mm2s, s2mm] = rings(&mut accelerator(spec, &options()));
        assert_ne!(mm2s, s2mm);
    });
}

#[test]
fn answers_that_cannot_be_written_halt_s2mm() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let placed = Placed::new(&accelerator);
        let end = accelerator.heap().device_base() + accelerator.heap().total();
        for addr in [end, 0x1000] {
            let answer = Part { addr, len: ANSWER };
            let error = run(&mut accelerator, vec![placed.part()], answer);
            let (channel, errors, _) = halted(&error);
            assert_eq!((channel, errors), ("S2MM", "DMADecErr"), "{error}");
            assert_works(&mut accelerator);
        }
    });
    on_all(|spec| {
        // The same heap hands out the same addresses.
        let at = Placed::new(&accelerator(spec, &options())).answer().addr;
        let mut accelerator = accelerator(spec, &with_fault(Fault::SlaveError(at..at + 16)));
        let placed = Placed::new(&accelerator);
        assert_eq!(placed.answer().addr, at);
        let error = run(&mut accelerator, vec![placed.part()], placed.answer());
        let (channel, errors, _) = halted(&error);
        assert_eq!((channel, errors), ("S2MM", "DMASlvErr"), "{error}");
        assert_works(&mut accelerator);
    });
}

#[test]
fn answers_that_outrun_their_buffer_are_errors() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let placed = Placed::new(&accelerator);
        // A buffer that ends within a bus word can take the end of an answer only.
        let odd = Part {
            len: 20,
            ..placed.answer()
        };
        let error = run(&mut accelerator, vec![placed.part()], odd);
        let (channel, errors, _) = halted(&error);
        assert_eq!((channel, errors), ("S2MM", "DMAIntErr"), "{error}");
        assert_works(&mut accelerator);
    });
}

#[test]
fn a_descriptor_that_cannot_be_accessed_halts_its_channel() {
    // Down the ring, where a job with many parts, or many jobs, come to and a single one does not.
    const FAR: usize = 20;
    on_all(|spec| {
        let rings = rings(&mut accelerator(spec, &options()));
        for (ring, name) in rings.into_iter().zip(["MM2S", "S2MM"]) {
            let at = ring + FAR as u64 * DESCRIPTOR;
            let options = TargetOptions {
                faults: vec![Fault::SlaveError(at..at + 4)],
                ..options()
            };
            let mut accelerator = accelerator(spec, &options);
            let placed = Placed::new(&accelerator);
            let packets: Vec<Packet> = (0..2 * FAR)
                .map(|_| Packet {
                    parts: if name == "MM2S" {
                        placed.parts()
                    } else {
                        vec![placed.part()]
                    },
                    answer: placed.answer(),
                })
                .collect();
            let error = accelerator
                .engine(0)
                .run(&packets)
                .expect_err("the chain comes to the descriptor");
            assert_eq!(halted(&error), (name, "SGSlvErr", at), "{error}");
            assert_works(&mut accelerator);
        }
    });
}

#[test]
fn resets_between_jobs_cost_nothing_but_the_job() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        for _ in 0..3 {
            assert_works(&mut accelerator);
            accelerator.engine(0).reset().unwrap();
        }
        assert_works(&mut accelerator);
    });
}
