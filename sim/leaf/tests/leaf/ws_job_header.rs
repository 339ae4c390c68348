//! The job header: its fields and every check of `docs/stream.md`.

use proptest::prelude::*;
use weightstream_leaf::{Bits, Leaf, LeafError};

const BYTES: usize = 64;
const MAX_COLS: u32 = 4;
const MAX_K: u32 = 4096;
/// ggml's number of each type, and the weights in its block.
const TYPES: [(u32, u32); 10] = [
    (2, 32),
    (3, 32),
    (6, 32),
    (7, 32),
    (8, 32),
    (10, 256),
    (11, 256),
    (12, 256),
    (13, 256),
    (14, 256),
];

#[derive(Debug, Clone, Copy)]
struct Header {
    magic: u32,
    version: u32,
    weight_type: u32,
    k: u32,
    rows: u32,
    cols: u32,
    skip: u32,
    flags: u32,
    tag: u32,
    reserved: [u32; 7],
}

impl Header {
    fn words(&self) -> Vec<u32> {
        let Header {
            magic,
            version,
            weight_type,
            k,
            rows,
            cols,
            skip,
            flags,
            tag,
            reserved,
        } = *self;
        let mut words = vec![magic, version, weight_type, k, rows, cols, skip, flags, tag];
        words.extend(reserved);
        words
    }
}

/// Activations that the kernel holds: their k and columns.
type Held = Option<(u32, u32)>;

/// The status bits of a header by itself.
fn reference(h: &Header, held: Held, bus: u32) -> u32 {
    if h.magic != 0x314A_5357 {
        return 1 << 8;
    }
    if h.version != 1 {
        return 1 << 9;
    }
    let block = TYPES.iter().find(|t| t.0 == h.weight_type).map(|t| t.1);
    let reuse = h.flags & 1 == 1;
    let checks = [
        (10, block.is_none()),
        (
            11,
            h.k == 0 || h.k > MAX_K || block.is_some_and(|block| !h.k.is_multiple_of(block)),
        ),
        (12, h.rows == 0 || h.rows > 0xFF_FFFF),
        (13, h.cols == 0 || h.cols > MAX_COLS),
        (14, h.skip >= bus),
        (
            15,
            h.flags & !1 != 0 || h.reserved.iter().any(|&word| word != 0),
        ),
        (16, reuse && held != Some((h.k, h.cols))),
    ];
    checks
        .iter()
        .map(|&(bit, broken)| u32::from(broken) << bit)
        .sum()
}

/// Values at and around a bound, mostly good ones.
fn around(good: impl Strategy<Value = u32> + 'static, odd: Vec<u32>) -> impl Strategy<Value = u32> {
    prop_oneof![
        12 => good,
        2 => prop::sample::select(odd),
        1 => (0u32..32).prop_map(|bit| 1 << bit),
        1 => any::<u32>(),
    ]
}

fn header(bus: u32) -> impl Strategy<Value = Header> {
    let weight_type = around(
        prop::sample::select(TYPES.to_vec()).prop_map(|t| t.0),
        (0..20).collect(),
    );
    let k = around(
        (1..=16u32).prop_map(|n| 256 * n),
        vec![0, 31, 32, 64, 96, 255, 4064, 4097, 4128, 4352],
    );
    let rows = around(
        1..=0xFF_FFFFu32,
        vec![0, 1, 0xFF_FFFF, 0x100_0000, 0x100_0001],
    );
    let cols = around(1..=MAX_COLS, vec![0, MAX_COLS + 1, 1 << 16]);
    let skip = around(0..bus, vec![bus - 1, bus, bus + 1, 128, 1 << 31]);
    let flags = around(0..=1u32, vec![2, 3]);
    let reserved = prop_oneof![
        6 => Just([0; 7]),
        1 => (0usize..7, 0u32..32).prop_map(|(word, bit)| {
            let mut words = [0; 7];
            words[word] = 1 << bit;
            words
        }),
    ];
    (
        around(Just(0x314A_5357), vec![0x324A_5357, 0x314A_5356]),
        around(Just(1), vec![0, 2, 0x1_0001]),
        weight_type,
        k,
        rows,
        cols,
        skip,
        flags,
        any::<u32>(),
        reserved,
    )
        .prop_map(
            |(magic, version, weight_type, k, rows, cols, skip, flags, tag, reserved)| Header {
                magic,
                version,
                weight_type,
                k,
                rows,
                cols,
                skip,
                flags,
                tag,
                reserved,
            },
        )
}

/// Held activations: none, the header's own, or nearly those.
fn held() -> impl Strategy<Value = (bool, u32, u32)> {
    let off = || prop_oneof![4 => Just(0u32), 1 => (0u32..32).prop_map(|bit| 1 << bit)];
    (prop::bool::weighted(0.8), off(), off())
}

/// Gives the module the first `length` bytes of a header, word by word.
fn feed(leaf: &mut Leaf, header: &Header, length: usize, bus: usize) -> Result<(), LeafError> {
    let mut bytes: Vec<u8> = header
        .words()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    // What stands in the last word past the packet's end.
    bytes[length..].fill(0xA5);
    leaf.set("clear_i", true)?;
    leaf.tick()?;
    leaf.set("clear_i", false)?;
    for at in (0..length).step_by(bus) {
        let held = (length - at).min(4 * bus);
        leaf.set_bits("data_i", &Bits::from_bytes(&bytes[at..at + bus]))?;
        leaf.set("bytes_i", held as u64)?;
        leaf.set("word_i", true)?;
        leaf.eval()?;
        assert_eq!(leaf.is("last_o")?, at + bus == BYTES, "word at {at}");
        leaf.tick()?;
        leaf.set("word_i", false)?;
        // A pause between the words changes nothing.
        if at / bus % 2 == 1 && at + bus < BYTES {
            leaf.tick()?;
        }
    }
    Ok(())
}

fn check(
    module: &str,
    bus: usize,
    headers: &[(Header, (bool, u32, u32))],
) -> Result<(), TestCaseError> {
    let mut leaf = Leaf::new(module)?;
    leaf.reset()?;
    for (h, (is_held, k_off, cols_off)) in headers {
        let held = is_held.then_some((h.k ^ k_off, h.cols ^ cols_off));
        leaf.set("held_i", *is_held)?;
        leaf.set("held_k_i", h.k ^ k_off)?;
        leaf.set("held_cols_i", h.cols ^ cols_off)?;
        feed(&mut leaf, h, BYTES, bus)?;
        let fields = [
            ("tag_o", h.tag),
            ("type_o", h.weight_type & 15),
            ("k_o", h.k),
            ("rows_o", h.rows & 0xFF_FFFF),
            ("cols_o", h.cols),
            ("skip_o", h.skip & 127),
            ("reuse_o", h.flags & 1),
        ];
        for (port, value) in fields {
            prop_assert_eq!(leaf.get(port)?, u64::from(value), "{} of {:x?}", port, h);
        }
        leaf.tick()?;
        let expected = reference(h, held, bus as u32);
        prop_assert_eq!(
            leaf.get("error_o")?,
            u64::from(expected),
            "{:x?}, held {:?}",
            h,
            held
        );
    }
    Ok(())
}

fn headers(bus: u32) -> impl Strategy<Value = Vec<(Header, (bool, u32, u32))>> {
    prop::collection::vec((header(bus), held()), 1..8)
}

proptest! {
    #[test]
    fn bus_of_8_bytes(headers in headers(8)) {
        check("ws_job_header_8", 8, &headers)?;
    }

    #[test]
    fn bus_of_16_bytes(headers in headers(16)) {
        check("ws_job_header_16", 16, &headers)?;
    }

    #[test]
    fn bus_of_64_bytes(headers in headers(64)) {
        check("ws_job_header_64", 64, &headers)?;
    }

    /// The tag of a packet that ends within its header counts if all four of its bytes came.
    #[test]
    fn cut_short(header in header(16), length in 1..BYTES) {
        for (module, bus) in [("ws_job_header_8", 8), ("ws_job_header_16", 16), ("ws_job_header_64", 64)] {
            let mut leaf = Leaf::new(module)?;
            leaf.reset()?;
            feed(&mut leaf, &header, length, bus)?;
            let tag = if length >= 36 { header.tag } else { 0 };
            prop_assert_eq!(leaf.get("tag_o")?, u64::from(tag), "{} of {} bytes", module, length);
        }
    }
}
