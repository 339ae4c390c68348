//! Job packets, good and broken (`docs/stream.md`).

use super::*;
use crate::quant::q8_0_row_bytes;
use crate::regs::job::{HEADER_BYTES, MAX_ROWS, REUSE_ACTIVATIONS, status};
use crate::regs::kernel;

fn rig() -> Rig {
    Rig::new(ModelConfig {
        max_k: 1024,
        max_cols: 4,
        threads: 2,
        ..ModelConfig::default()
    })
}

#[test]
fn results_are_row_major_and_the_footer_ends_them() {
    let mut rig = rig();
    for (rows, cols) in [(1, 1), (3, 2), (12, 4)] {
        let job = small(rows, cols);
        let (results, footer) = job.send(&mut rig);
        assert_eq!(results, job.expected());
        assert_eq!((footer.tag, footer.status.0, footer.cycles), (0xC0DE, 0, 0));
    }
}

#[test]
fn many_rows_are_shared_among_threads() {
    let mut rig = rig();
    // Far more than one thread takes at a time; every row is row 7.
    let (rows, one) = (3000, small(8, 1));
    let mut job = small(1, 1);
    job.header.rows = rows as u32;
    job.weights = one.weights[7 * 34..].repeat(rows);
    let (results, footer) = job.send(&mut rig);
    assert_eq!(footer.status.0, 0);
    assert_eq!(results, vec![2170.0; rows]);
}

#[test]
fn weights_begin_at_any_byte_of_the_bus_word() {
    let mut rig = rig();
    for skip in 0..16 {
        let mut job = small(2, 1);
        job.header.skip = skip;
        let mut bytes = vec![0xEE; skip as usize];
        bytes.append(&mut job.weights);
        job.weights = bytes;
        assert_eq!(job.send(&mut rig).0, job.expected());
    }
}

#[test]
fn each_broken_header_field_has_its_bit() {
    type Break = fn(&mut Header);
    let broken: [(Break, u32); 17] = [
        (|h| h.magic ^= 1, status::BAD_MAGIC),
        (|h| h.version = 2, status::BAD_VERSION),
        (|h| (h.magic, h.version) = (0, 0), status::BAD_MAGIC),
        (|h| (h.version, h.rows) = (0, 0), status::BAD_VERSION),
        // A wrong magic or version hides what is behind it.
        (|h| (h.magic, h.k) = (0, 0), status::BAD_MAGIC),
        (|h| h.ty = 1, status::BAD_TYPE),
        (|h| h.ty = u32::MAX, status::BAD_TYPE),
        (|h| h.k = 0, status::BAD_K),
        (|h| h.k = 48, status::BAD_K),
        (|h| h.k = 1056, status::BAD_K),
        (|h| h.rows = 0, status::BAD_ROWS),
        (|h| h.rows = MAX_ROWS + 1, status::BAD_ROWS),
        (|h| h.cols = 0, status::BAD_COLS),
        (|h| h.cols = 5, status::BAD_COLS),
        (|h| h.skip = 16, status::BAD_SKIP),
        (|h| h.flags = 2, status::BAD_FLAGS),
        (
            |h| (h.ty, h.k, h.cols, h.flags) = (0, 0, 9, 3),
            status::BAD_TYPE
                | status::BAD_K
                | status::BAD_COLS
                | status::BAD_FLAGS
                | status::NO_ACTIVATIONS,
        ),
    ];
    let mut rig = rig();
    for (i, (spoil, expected)) in broken.into_iter().enumerate() {
        let mut job = small(2, 1);
        spoil(&mut job.header);
        let (results, footer) = job.send(&mut rig);
        assert_eq!((results.len(), footer.status.0), (0, expected), "case {i}");
        assert_eq!(footer.tag, 0xC0DE);
        assert_eq!(rig.kernel(kernel::ERROR), expected, "case {i}");
        rig.device
            .write32(Window::Kernel, kernel::ERROR, expected)
            .unwrap();
        assert_eq!(rig.kernel(kernel::ERROR), 0);
        // The next job runs.
        let good = small(2, 1);
        assert_eq!(good.send(&mut rig).0, good.expected());
    }
    for at in job::header::RESERVED..HEADER_BYTES {
        let job = small(1, 1);
        let mut header = job.header.to_bytes();
        header[at] = 0x80;
        let (_, footer) = rig.send(&[&header, &job.activations, &job.weights]);
        assert_eq!(footer.status.0, status::BAD_FLAGS, "byte {at}");
    }
}

#[test]
fn short_packets() {
    let mut rig = rig();
    let job = small(3, 2);
    let whole = [&job.header.to_bytes()[..], &job.activations, &job.weights].concat();
    for len in 1..whole.len() {
        let (results, footer) = rig.send(&[&whole[..len]]);
        assert_eq!(
            (results.len(), footer.status.0),
            (0, status::SHORT),
            "{len} bytes"
        );
        let tag = if len < job::header::RESERVED {
            0
        } else {
            0xC0DE
        };
        assert_eq!(footer.tag, tag, "{len} bytes");
    }
    assert_eq!(rig.send(&[&whole]).0, job.expected());
}

#[test]
fn bytes_in_the_last_beat_are_ignored_and_beats_after_it_are_not() {
    for bus_bytes in [8, 16, 32, 64] {
        let mut rig = Rig::new(ModelConfig {
            bus_bytes,
            ..ModelConfig::default()
        });
        let job = small(3, 1);
        let whole = [&job.header.to_bytes()[..], &job.activations, &job.weights].concat();
        let beats = whole.len().next_multiple_of(bus_bytes);
        for len in whole.len()..beats + bus_bytes + 2 {
            let mut longer = whole.clone();
            longer.resize(len, 0x55);
            let (results, footer) = rig.send(&[&longer]);
            if len <= beats {
                assert_eq!((results, footer.status.0), (job.expected(), 0));
            } else {
                assert_eq!((results.len(), footer.status.0), (0, status::LONG));
            }
        }
    }
}

#[test]
fn a_partial_beat_within_the_packet_is_bad_keep() {
    let mut rig = rig();
    let job = small(3, 1);
    let header = job.header.to_bytes();
    let (first, second) = job.weights.split_at(35);
    let (results, footer) = rig.send(&[&header, &job.activations, first, second]);
    // The beats are as many as of a good packet: 35 and 67 bytes against 102.
    assert_eq!(
        (results.len(), footer.status.0),
        (0, status::BAD_KEEP | status::LONG)
    );
    let (results, footer) = rig.send(&[&header, &job.activations[..60], &job.weights]);
    assert_eq!((results.len(), footer.status.0), (0, status::BAD_KEEP));
    // Of a broken header only the header is judged.
    let mut broken = job.header;
    broken.rows = 0;
    let (_, footer) = rig.send(&[&broken.to_bytes(), first, second]);
    assert_eq!(footer.status.0, status::BAD_ROWS);
}

#[test]
fn parts_may_be_split_and_joined_anyhow() {
    let mut rig = rig();
    let job = small(9, 2);
    let whole = [&job.header.to_bytes()[..], &job.activations, &job.weights].concat();
    for piece in [16, 48, 64, 80, 208] {
        let parts: Vec<&[u8]> = whole.chunks(piece).collect();
        assert_eq!(rig.send(&parts).0, job.expected(), "pieces of {piece}");
    }
}

#[test]
fn activations_are_reused_by_rule() {
    let mut rig = rig();
    let job = small(2, 2);
    let mut reuse = small(4, 2);
    reuse.header.flags = REUSE_ACTIVATIONS;
    reuse.activations.clear();
    let send = |rig: &mut Rig, job: &Small| {
        let (results, footer) = rig.send(&[&job.header.to_bytes(), &job.weights]);
        assert_eq!(results.is_empty(), !footer.status.is_good());
        if footer.status.is_good() {
            assert_eq!(results, job.expected());
        }
        footer.status.0
    };
    assert_eq!(send(&mut rig, &reuse), status::NO_ACTIVATIONS);
    job.send(&mut rig);
    assert_eq!(send(&mut rig, &reuse), 0);
    assert_eq!(send(&mut rig, &reuse), 0);

    // Other columns, or another k.
    let mut other = small(4, 1);
    other.header.flags = REUSE_ACTIVATIONS;
    assert_eq!(send(&mut rig, &other), status::NO_ACTIVATIONS);
    let mut longer = small(4, 2);
    longer.header.flags = REUSE_ACTIVATIONS;
    longer.header.k = 64;
    assert_eq!(send(&mut rig, &longer), status::NO_ACTIVATIONS);

    // A malformed header leaves them held, and so does a malformed job that brought none.
    let mut broken = small(2, 2);
    broken.header.skip = 99;
    assert_eq!(broken.send(&mut rig).1.status.0, status::BAD_SKIP);
    let mut short = small(4, 2);
    short.header.flags = REUSE_ACTIVATIONS;
    short.weights.pop();
    assert_eq!(send(&mut rig, &short), status::SHORT);
    assert_eq!(send(&mut rig, &reuse), 0);

    // A malformed job that brought its own leaves none, even if it ends within them.
    let mut brought = small(2, 2);
    brought.weights.truncate(1);
    assert_eq!(brought.send(&mut rig).1.status.0, status::SHORT);
    assert_eq!(send(&mut rig, &reuse), status::NO_ACTIVATIONS);
    job.send(&mut rig);
    let (_, footer) = rig.send(&[&job.header.to_bytes(), &job.activations[..16]]);
    assert_eq!(footer.status.0, status::SHORT);
    assert_eq!(send(&mut rig, &reuse), status::NO_ACTIVATIONS);

    // The kernel's soft reset forgets them; the DMA engine's (as in `send`) does not.
    job.send(&mut rig);
    assert_eq!(send(&mut rig, &reuse), 0);
    rig.device
        .write32(Window::Kernel, kernel::CTRL, kernel::CTRL_SOFT_RESET)
        .unwrap();
    assert_eq!(send(&mut rig, &reuse), status::NO_ACTIVATIONS);
}

#[test]
fn scales_that_are_not_finite_give_nan_and_their_bit() {
    let mut rig = rig();
    let nan = f32::from_bits(0x7FC0_0000).to_bits();
    let bits = |results: Vec<f32>| results.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
    for scale in [0x7C00u16, 0xFC00, 0x7E00, 0x7C01] {
        let mut job = small(3, 2);
        job.weights[34..36].copy_from_slice(&scale.to_le_bytes());
        let mut expected = bits(job.expected());
        expected[2..4].fill(nan);
        let (results, footer) = job.send(&mut rig);
        assert_eq!(
            (bits(results), footer.status.0),
            (expected, status::NONFINITE)
        );

        let mut job = small(3, 2);
        job.activations[34..36].copy_from_slice(&scale.to_le_bytes());
        let mut expected = bits(job.expected());
        expected
            .iter_mut()
            .skip(1)
            .step_by(2)
            .for_each(|y| *y = nan);
        let (results, footer) = job.send(&mut rig);
        assert_eq!(
            (bits(results), footer.status.0),
            (expected, status::NONFINITE)
        );
    }
}

#[test]
fn the_largest_k_and_the_most_columns_run() {
    let mut rig = rig();
    let quants = vec![1i8; 1024];
    let column = q8_0(&quants);
    assert_eq!(column.len(), q8_0_row_bytes(1024));
    let header = header(WeightType::Q8_0, 1024, 1, 4);
    let (results, footer) = rig.send(&[&header.to_bytes(), &padded(column.repeat(4)), &column]);
    assert_eq!((results, footer.status.0), (vec![1024.0; 4], 0));
}
