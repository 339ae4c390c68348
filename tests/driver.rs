//! The driver on every target of this build, with memory in strict mode.

mod common;

use common::*;
use weightstream::dma::Coherence;
use weightstream::driver::{Accelerator, DriverError, Input, MatMul, Packet, Part};
use weightstream::quant::WeightType;
use weightstream::regs::job::{self, FOOTER_BYTES, Footer, Header, header, status};
use weightstream::target::{Fault, TargetOptions};
use weightstream::vectors::Case;

/// Runs all `cases` as one chain, each with its own input, and compares every bit.
fn assert_chain(accelerator: &mut Accelerator, cases: &[Case]) {
    let weights: Vec<_> = cases
        .iter()
        .enumerate()
        .map(|(n, c)| place(accelerator, &c.weights, n % 64))
        .collect();
    let mut results: Vec<_> = cases.iter().map(|c| vec![0f32; c.rows * c.cols]).collect();
    let inputs: Vec<Input> = cases.iter().map(columns).collect();
    let mut matmuls: Vec<MatMul> = Vec::new();
    for (n, (case, results)) in cases.iter().zip(&mut results).enumerate() {
        matmuls.push(MatMul {
            weights: weights[n].device_addr() + (n % 64) as u64,
            ty: case.ty,
            k: case.k,
            rows: case.rows,
            input: n,
            out: results.chunks_exact_mut(case.rows).collect(),
        });
    }
    accelerator.run(&inputs, &mut matmuls).unwrap();
    for (case, results) in cases.iter().zip(&results) {
        assert_eq!(bits(results), case.expected, "{}", case.name());
    }
}

#[test]
fn golden_cases_run_as_one_chain() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let cases = cases(&accelerator);
        assert!(cases.len() > 30, "the folder has the golden cases");
        let nonfinite = accelerator.stats().nonfinite_jobs;
        assert_chain(&mut accelerator, &cases);
        assert!(accelerator.stats().nonfinite_jobs > nonfinite);
    });
}

#[test]
fn short_length_fields_split_regions() {
    on_all(|spec| {
        // 192 bytes a descriptor at most: weights, activations and answers all take several.
        let mut accelerator = accelerator(
            spec,
            &TargetOptions {
                length_width: 8,
                ..options()
            },
        );
        let cases: Vec<_> = cases(&accelerator)
            .into_iter()
            .filter(|c| c.weights.len() < 40_000)
            .collect();
        assert_chain(&mut accelerator, &cases);
        // More descriptors than a ring has is an error and no hang.
        let rows = 1024 * 192 / 18 * 2;
        let weights = place(&accelerator, &vec![0; rows * 18], 0);
        let mut out = vec![0f32; rows];
        let activations = vec![0f32; 32];
        let matmul = MatMul {
            weights: weights.device_addr(),
            ty: WeightType::Q4_0,
            k: 32,
            rows,
            input: 0,
            out: vec![&mut out],
        };
        let error = accelerator
            .run(&[Input::F32(vec![&activations])], &mut [matmul])
            .unwrap_err();
        assert!(matches!(error, DriverError::RingTooSmall { .. }), "{error}");
        assert_works(&mut accelerator);
    });
}

#[test]
fn products_share_an_input_and_columns_beyond_the_kernels_most_are_tiled() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let case = case("q8_0_rows");
        let cols = 2 * accelerator.capabilities().max_cols + 1;
        let weights = place(&accelerator, &case.weights, 3);
        let input = Input::Q8_0(vec![case.column(0); cols]);
        let mut results = vec![vec![0f32; case.rows * cols]; 3];
        let jobs = accelerator.stats().jobs;
        let mut matmuls: Vec<MatMul> = results
            .iter_mut()
            .map(|results| MatMul {
                weights: weights.device_addr() + 3,
                ty: case.ty,
                k: case.k,
                rows: case.rows,
                input: 0,
                out: results.chunks_exact_mut(case.rows).collect(),
            })
            .collect();
        accelerator
            .run(std::slice::from_ref(&input), &mut matmuls)
            .unwrap();
        assert_eq!(
            accelerator.stats().jobs - jobs,
            9,
            "three tiles of columns for three products"
        );
        for column in results.iter().flat_map(|r| r.chunks_exact(case.rows)) {
            assert_eq!(bits(column), case.expected);
        }
    });
}

#[test]
fn rows_are_shared_out_among_engines() {
    on_all(|spec| {
        for engines in 2..=4 {
            let mut accelerator = accelerator(
                spec,
                &TargetOptions {
                    engines,
                    ..options()
                },
            );
            assert_eq!(accelerator.engines(), engines);
            let cases = cases(&accelerator);
            let jobs = accelerator.stats().jobs;
            assert_chain(&mut accelerator, &cases);
            // Cases of a single row leave all engines but one idle.
            assert!(accelerator.stats().jobs - jobs > cases.len() as u64);
        }
    });
}

#[test]
fn more_jobs_than_a_chain_carries_go_down_in_several() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let case = case("q4_0_smallest");
        let weights = place(&accelerator, &case.weights, 0);
        let mut results = vec![0f32; 700];
        let mut matmuls: Vec<MatMul> = results
            .iter_mut()
            .map(|y| MatMul {
                weights: weights.device_addr(),
                ty: case.ty,
                k: case.k,
                rows: 1,
                input: 0,
                out: vec![std::slice::from_mut(y)],
            })
            .collect();
        accelerator.run(&[columns(&case)], &mut matmuls).unwrap();
        assert!(results.iter().all(|y| y.to_bits() == case.expected[0]));
    });
}

#[test]
fn results_beyond_the_answer_buffer_are_split_by_rows() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let case = case("q4_0_smallest");
        // Two jobs' worth of answers at most of 4 MiB each.
        let rows = (4 << 20) / 4 + 1000;
        let all: Vec<u8> = case
            .weights
            .iter()
            .copied()
            .cycle()
            .take(rows * case.weights.len())
            .collect();
        let weights = place(&accelerator, &all, 1);
        let mut out = vec![0f32; rows];
        let matmul = MatMul {
            weights: weights.device_addr() + 1,
            ty: case.ty,
            k: case.k,
            rows,
            input: 0,
            out: vec![&mut out],
        };
        let jobs = accelerator.stats().jobs;
        accelerator.run(&[columns(&case)], &mut [matmul]).unwrap();
        assert_eq!(accelerator.stats().jobs - jobs, 2);
        assert!(out.iter().all(|y| y.to_bits() == case.expected[0]));
    });
}

#[test]
fn f32_activations_are_quantised_as_the_golden_ones() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let cases: Vec<_> = cases(&accelerator)
            .into_iter()
            .filter(|c| c.x.is_some())
            .collect();
        assert!(!cases.is_empty(), "there are cases with x");
        for case in cases {
            let weights = place(&accelerator, &case.weights, 0);
            let x = case.x.as_ref().unwrap();
            let mut results = vec![0f32; case.rows * case.cols];
            let matmul = MatMul {
                weights: weights.device_addr(),
                ty: case.ty,
                k: case.k,
                rows: case.rows,
                input: 0,
                out: results.chunks_exact_mut(case.rows).collect(),
            };
            let input = Input::F32(x.chunks_exact(case.k).collect());
            accelerator.run(&[input], &mut [matmul]).unwrap();
            assert_eq!(bits(&results), case.expected, "{}", case.name());
        }
    });
}

#[test]
fn a_forgotten_sync_gives_wrong_data_in_strict_memory_only() {
    on_all(|spec| {
        for (coherence, right) in [(Coherence::Strict, false), (Coherence::Coherent, true)] {
            let mut accelerator = accelerator(
                spec,
                &TargetOptions {
                    coherence,
                    ..options()
                },
            );
            let case = case("q8_0_rows");
            let weights = accelerator.heap().alloc(case.weights.len()).unwrap();
            weights.write(0, &case.weights).unwrap();
            let unsynced = run_case(&mut accelerator, &case, weights.device_addr()).unwrap();
            assert_eq!(bits(&unsynced) == case.expected, right, "{coherence:?}");
            weights.sync_for_device(0, weights.len()).unwrap();
            let synced = run_case(&mut accelerator, &case, weights.device_addr()).unwrap();
            assert_eq!(bits(&synced), case.expected);
        }
    });
}

/// Sends a job of `case` with its header changed, and returns the footer of the answer.
fn send_with(
    accelerator: &mut Accelerator,
    case: &Case,
    cut: usize,
    change: impl Fn(&mut [u8]),
) -> (usize, Footer) {
    let mut bytes = Header {
        magic: job::MAGIC,
        version: job::VERSION,
        ty: case.ty.ggml(),
        k: case.k as u32,
        rows: case.rows as u32,
        cols: case.cols as u32,
        skip: 0,
        flags: 0,
        tag: 77,
    }
    .to_bytes()
    .to_vec();
    change(&mut bytes);
    bytes.extend_from_slice(&case.activations);
    bytes.resize(bytes.len().next_multiple_of(job::PART_ALIGN), 0);
    bytes.extend_from_slice(&case.weights);
    let packet = place(accelerator, &bytes, 0);
    let answer = accelerator.heap().alloc(1 << 16).unwrap();
    let packets = [Packet {
        parts: vec![Part {
            addr: packet.device_addr(),
            len: bytes.len() - cut,
        }],
        answer: Part {
            addr: answer.device_addr(),
            len: 1 << 16,
        },
    }];
    let answers = accelerator.engine(0).run(&packets).unwrap();
    answer.sync_for_cpu(0, answer.len()).unwrap();
    let mut footer = [0; FOOTER_BYTES];
    answer
        .read(answers[0].len - FOOTER_BYTES, &mut footer)
        .unwrap();
    (answers[0].len, Footer::from_bytes(&footer))
}

#[test]
fn a_header_broken_in_any_field_is_answered_with_its_status() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let case = case("q4_1_small");
        let limits = accelerator.capabilities();
        let (max_k, max_cols) = (limits.max_k as u32, limits.max_cols as u32);
        let cases: [(&str, usize, u32, u32); 17] = [
            ("magic", header::MAGIC, job::MAGIC ^ 1, status::BAD_MAGIC),
            ("version", header::VERSION, 2, status::BAD_VERSION),
            ("type", header::TYPE, 1, status::BAD_TYPE),
            ("type", header::TYPE, 0xFFFF_FFFF, status::BAD_TYPE),
            ("type", header::TYPE, 32 + 3, status::BAD_TYPE),
            ("k", header::K, 0, status::BAD_K),
            ("k", header::K, 33, status::BAD_K),
            ("k", header::K, max_k + 32, status::BAD_K),
            ("k", header::K, 0x8000_0020, status::BAD_K),
            ("rows", header::ROWS, 0, status::BAD_ROWS),
            ("rows", header::ROWS, job::MAX_ROWS + 1, status::BAD_ROWS),
            ("cols", header::COLS, 0, status::BAD_COLS),
            ("cols", header::COLS, max_cols + 1, status::BAD_COLS),
            (
                "skip",
                header::SKIP,
                limits.bus_bytes as u32,
                status::BAD_SKIP,
            ),
            ("flags", header::FLAGS, 2, status::BAD_FLAGS),
            ("reserved", header::RESERVED, 0x100, status::BAD_FLAGS),
            ("reserved", 60, 0x8000_0000, status::BAD_FLAGS),
        ];
        for (field, at, value, expected) in cases {
            let (len, footer) = send_with(&mut accelerator, &case, 0, |h| {
                h[at..at + 4].copy_from_slice(&value.to_le_bytes())
            });
            assert_eq!(
                footer.status.0, expected,
                "{field} {value:#x}: {}",
                footer.status
            );
            assert_eq!((footer.tag, len), (77, FOOTER_BYTES), "{field}");
            assert_works(&mut accelerator);
        }
        let (_, both) = send_with(&mut accelerator, &case, 0, |h| {
            h[header::K..][..4].copy_from_slice(&0u32.to_le_bytes());
            h[header::SKIP..][..4].copy_from_slice(&64u32.to_le_bytes());
        });
        assert_eq!(both.status.0, status::BAD_K | status::BAD_SKIP);
        assert_works(&mut accelerator);
    });
}

#[test]
fn a_packet_of_the_wrong_length_is_answered_with_its_status() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let case = case("q4_1_small");
        let whole = 64 + case.activations.len().next_multiple_of(64) + case.weights.len();
        // Cut within the weights, the activations, the header's last word and its tag.
        for cut in [1, case.weights.len(), whole - 80, whole - 48, whole - 16] {
            let (_, footer) = send_with(&mut accelerator, &case, cut, |_| {});
            assert_eq!(
                footer.status.0,
                status::SHORT,
                "cut {cut}: {}",
                footer.status
            );
            assert_works(&mut accelerator);
        }
        let (_, footer) = send_with(&mut accelerator, &case, 0, |h| {
            h[header::ROWS] = case.rows as u8 - 1
        });
        assert_eq!(footer.status.0, status::LONG, "{}", footer.status);
        assert_works(&mut accelerator);
        // Reuse of activations that are not those held: the job before had three columns.
        let (_, footer) = send_with(&mut accelerator, &case, 0, |h| {
            h[header::FLAGS] = 1;
            h[header::COLS] = 2;
        });
        assert_eq!(footer.status.0, status::NO_ACTIVATIONS, "{}", footer.status);
        assert_works(&mut accelerator);
    });
}

#[test]
fn addresses_outside_the_heap_halt_the_dma_with_a_decode_error() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let end = accelerator.heap().device_base() + accelerator.heap().total();
        let case = case("q4_0_small");
        for address in [end, 0x1000, end - 64] {
            let error = run_case(&mut accelerator, &case, address).unwrap_err();
            match &error {
                DriverError::Halted {
                    channel: "MM2S",
                    errors,
                    ..
                } => assert!(errors.contains("DMADecErr"), "{error}"),
                _ => panic!("{address:#x}: {error}"),
            }
            assert_works(&mut accelerator);
        }
    });
}

#[test]
fn an_axi_error_response_halts_the_dma_with_a_slave_error() {
    on_all(|spec| {
        let probe = accelerator(spec, &options());
        let case = case("q4_0_small");
        // The same heap hands out the same addresses: find where the weights will lie.
        let at = place(&probe, &case.weights, 0).device_addr();
        drop(probe);
        let mut accelerator = accelerator(spec, &with_fault(Fault::SlaveError(at..at + 16)));
        let weights = place(&accelerator, &case.weights, 0);
        assert_eq!(weights.device_addr(), at);
        let error = run_case(&mut accelerator, &case, at).unwrap_err();
        match &error {
            DriverError::Halted {
                channel: "MM2S",
                errors,
                ..
            } => assert!(errors.contains("DMASlvErr"), "{error}"),
            _ => panic!("{error}"),
        }
        // `assert_works` places its weights behind, since these are still held.
        assert_works(&mut accelerator);
    });
}

#[test]
fn a_kernel_that_never_answers_is_an_error_and_no_hang() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &with_fault(Fault::NoAnswer));
        let case = case("q4_0_small");
        let weights = place(&accelerator, &case.weights, 0);
        let error = run_case(&mut accelerator, &case, weights.device_addr()).unwrap_err();
        assert!(
            matches!(
                error,
                DriverError::Unanswered {
                    answered: 0,
                    jobs: 1,
                    ..
                }
            ),
            "{error}"
        );
        println!("{error}");
    });
}

#[test]
fn what_the_kernel_lacks_and_what_does_not_fit_is_named() {
    on_all(|spec| {
        let mut accelerator = accelerator(spec, &options());
        let max_k = accelerator.capabilities().max_k;
        let case = case("q4_0_small");
        let mut check =
            |ty: WeightType, k: usize, rows: usize, columns: Vec<&[f32]>, says: &str| {
                let mut out = vec![0f32; 3];
                let matmul = MatMul {
                    weights: 0x8_0000_0000,
                    ty,
                    k,
                    rows,
                    input: 0,
                    out: vec![&mut out],
                };
                let error = accelerator
                    .run(&[Input::F32(columns)], &mut [matmul])
                    .unwrap_err()
                    .to_string();
                assert!(error.contains(says), "{error}");
            };
        let long = vec![0f32; max_k + 32];
        check(
            WeightType::Q4_0,
            max_k + 32,
            3,
            vec![&long],
            &format!("k {} is not supported", max_k + 32),
        );
        check(
            WeightType::Q4_0,
            40,
            3,
            vec![&long[..40]],
            "k 40 is not supported",
        );
        check(
            WeightType::Q4_0,
            32,
            3,
            vec![&long[..64]],
            "length of an f32 column is 64, expected 32",
        );
        check(
            WeightType::Q4_0,
            32,
            4,
            vec![&long[..32]],
            "length of an output column is 3, expected 4",
        );
        check(
            WeightType::Q4_0,
            32,
            3,
            vec![&long[..32]; 2],
            "number of output columns is 1, expected 2",
        );
        drop(case);
        assert_works(&mut accelerator);
    });
}

#[test]
fn a_heap_that_is_too_small_is_named() {
    on_all(|spec| {
        let target = weightstream::target::open(
            spec,
            &TargetOptions {
                heap_bytes: 1 << 20,
                ..options()
            },
        )
        .unwrap();
        let error = Accelerator::new(target)
            .err()
            .expect("1 MiB is too small for the driver's own buffers");
        assert!(error.to_string().contains("bytes asked for"), "{error}");
    });
}
