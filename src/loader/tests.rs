#[path = "../../tests/common/page_cache.rs"]
mod page_cache;

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::fs::{MemfdFlags, memfd_create};

use page_cache::{cached, forget};

use super::direct::DirectFile;
use super::*;
use crate::dma::{Coherence, SimMemory};
use crate::gguf::tests::Maker;

const Q8_0: u32 = 8;
const ALL_TYPES: u32 = u32::MAX;

fn heap() -> Heap {
    let memory = SimMemory::new(1 << 26, 0x8_0000_0000, Coherence::Strict, 3).unwrap();
    Heap::new(Arc::new(memory)).unwrap()
}

/// Matrices of these many Q8_0 blocks in rows, one behind the other at multiples of 32 bytes, with
/// random bytes.
fn model(blocks: &[u64]) -> Vec<u8> {
    let mut maker = Maker::new(3, blocks.len() as u64, 0);
    let mut offset = 0;
    for (n, blocks) in blocks.iter().enumerate() {
        maker.tensor(&format!("t{n}"), &[32, *blocks], Q8_0, offset);
        offset = (offset + blocks * 34).next_multiple_of(32);
    }
    let header = maker.0.len().next_multiple_of(32);
    let end = header + blocks.last().map_or(0, |last| last * 34) as usize;
    maker.0.resize(header, 0);
    let before_last = offset - blocks.last().map_or(0, |b| (b * 34).next_multiple_of(32));
    let mut bytes = vec![0; before_last as usize + end - header];
    SmallRng::seed_from_u64(1).fill_bytes(&mut bytes);
    maker.bytes(&bytes);
    maker.0
}

/// Some within a block, some over many pieces, one empty; the last ends within a block.
const SIZES: [u64; 8] = [3, 100, 200_000, 1, 0, 61_681, 15, 77];

fn memory_file(bytes: &[u8]) -> Arc<Gguf> {
    let mut file = File::from(memfd_create("model", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    Arc::new(Gguf::from_file(file, "made.gguf").unwrap())
}

fn disk_file(path: &Path, bytes: &[u8]) -> Arc<Gguf> {
    std::fs::write(path, bytes).unwrap();
    forget(path);
    Arc::new(Gguf::open(path).unwrap())
}

/// Loads `gguf` and checks every tensor against `file`, after all are there.
fn load_and_compare(gguf: &Arc<Gguf>, file: &[u8]) -> Load {
    let mut told = 0;
    let load = load(gguf.clone(), &heap(), ALL_TYPES, true, |n| told += n).unwrap();
    let names = load.tensors.iter().map(|t| &t.tensor.name);
    assert!(names.eq(gguf.tensors().iter().map(|t| &t.name)));
    for Loaded {
        tensor,
        buffer,
        sha256,
    } in &load.tensors
    {
        let mut found = vec![0; buffer.len()];
        buffer.read(0, &mut found).unwrap();
        let at = tensor.file_offset as usize;
        let bytes = &file[at..at + tensor.bytes as usize];
        assert!(found == bytes, "{}", tensor.name);
        assert_eq!(sha256.as_deref(), Some(&*hex(&Sha256::digest(bytes))));
    }
    assert_eq!(load.bytes(), told);
    assert_eq!(load.bytes(), load.reads.direct + load.reads.plain);
    load.verify(|_| {}).unwrap();
    load
}

/// Runs `body` where the kernel answers io_uring_setup(2) with `errno`.
fn without_io_uring<T: Send>(errno: i32, body: impl FnOnce() -> T + Send) -> T {
    let statement = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    // Of a thread by itself: loads the call's number and compares it.
    let (load, unequal, answer) = (0x20, 0x15, 0x06);
    let refuse = move || {
        let filter = [
            statement(load, 0, 0),
            statement(unequal, 1, libc::SYS_io_uring_setup as u32),
            statement(answer, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
            statement(answer, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_ptr().cast_mut(),
        };
        // SAFETY: a filter of four statements that jumps within itself.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            let mode = libc::SECCOMP_MODE_FILTER;
            assert_eq!(
                libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program),
                0
            );
        }
    };
    thread::scope(|scope| {
        let body = scope.spawn(move || {
            refuse();
            body()
        });
        body.join().unwrap()
    })
}

#[test]
fn direct_reads_put_every_byte_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let bytes = model(&SIZES);
    let gguf = disk_file(&path, &bytes);
    let load = load_and_compare(&gguf, &bytes);
    match DirectFile::open(&File::open(&path).unwrap()).err() {
        None => assert_eq!(load.reads.plain, 0, "{:?}", load.reads),
        why => assert_eq!(load.reads.why_plain, why),
    }
}

#[test]
fn the_page_cache_is_not_left_full() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let bytes = model(&SIZES);
    let direct = load_once(&disk_file(&path, &bytes));
    if direct.direct == 0 && direct.why_plain.is_some_and(|why| why.contains("tmpfs")) {
        return;
    }
    // The header is read with what the kernel reads ahead of it.
    assert!(cached(&path) < bytes.len() / 4, "{}", cached(&path));
    let gguf = disk_file(&path, &bytes);
    let plain = without_io_uring(libc::EPERM, || load_once(&gguf));
    assert_eq!(plain.direct, 0);
    assert!(cached(&path) < bytes.len() / 4, "{}", cached(&path));
}

fn load_once(gguf: &Arc<Gguf>) -> Reads {
    load(gguf.clone(), &heap(), ALL_TYPES, false, |_| {})
        .unwrap()
        .reads
}

#[test]
fn what_cannot_be_read_directly_is_read_plainly_and_says_why() {
    let bytes = model(&SIZES);
    let reads = load_and_compare(&memory_file(&bytes), &bytes).reads;
    assert_eq!(reads.direct, 0);
    assert_eq!(
        reads.why_plain.as_deref(),
        Some("the file is in memory (tmpfs)")
    );

    let dir = tempfile::tempdir().unwrap();
    let gguf = disk_file(&dir.path().join("model.gguf"), &bytes);
    for (errno, words) in [
        (libc::ENOSYS, "Function not implemented"),
        (libc::EPERM, "Operation not permitted"),
    ] {
        let reads = without_io_uring(errno, || load_and_compare(&gguf, &bytes).reads);
        let why = reads.why_plain.unwrap();
        assert!(why.starts_with("the kernel gives no io_uring: "), "{why}");
        assert!(why.contains(words), "{why}");
    }

    let refused = DirectFile::open(&File::open("/proc/self/status").unwrap());
    let why = refused.err().unwrap();
    assert!(
        why.starts_with("the file cannot be opened with O_DIRECT"),
        "{why}"
    );
}

#[test]
fn a_file_cut_short_while_it_is_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let bytes = model(&SIZES);
    let cut = |gguf: Arc<Gguf>, file: &File| {
        let last = gguf.tensors().last().unwrap();
        let (at, len) = (last.file_offset, last.bytes);
        file.set_len(at + 1).unwrap();
        let error = load(gguf.clone(), &heap(), ALL_TYPES, true, |_| {});
        let error = error.err().unwrap().to_string();
        let expected = format!(
            "the file is cut short: data of tensor t7 needs {len} bytes from offset {at}, the file has {}",
            at + 1
        );
        assert!(error.contains(&expected), "{error}");
    };
    let gguf = disk_file(&path, &bytes);
    let writable = File::options().write(true).open(&path).unwrap();
    cut(gguf, &writable);
    let gguf = memory_file(&bytes);
    cut(gguf.clone(), &gguf.parts()[0].file);

    // Within a large tensor, many reads being under way.
    let gguf = disk_file(&path, &bytes);
    writable.set_len(3 << 20).unwrap();
    let error = load(gguf, &heap(), ALL_TYPES, false, |_| {}).err().unwrap();
    assert!(
        error.to_string().contains("data of tensor t2 needs"),
        "{error}"
    );
}

#[test]
fn a_heap_without_room_is_an_error_and_gets_its_memory_back() {
    let dir = tempfile::tempdir().unwrap();
    let gguf = disk_file(&dir.path().join("model.gguf"), &model(&SIZES));
    let memory = SimMemory::new(7 << 20, 1 << 35, Coherence::Coherent, 3).unwrap();
    let small = Heap::new(Arc::new(memory)).unwrap();
    let error = load(gguf, &small, ALL_TYPES, false, |_| {}).err().unwrap();
    assert!(
        error
            .to_string()
            .starts_with("tensor t5: heap simulated: 2097154 bytes asked for"),
        "{error}"
    );
    assert_eq!(small.free(), small.total());
}
