use super::*;
use std::io::Write;

/// A GGUF file under construction.
pub(crate) struct Maker(pub Vec<u8>);

impl Maker {
    pub fn new(version: u32, tensors: u64, entries: u64) -> Maker {
        let mut maker = Maker(b"GGUF".to_vec());
        maker
            .bytes(&version.to_le_bytes())
            .bytes(&tensors.to_le_bytes())
            .bytes(&entries.to_le_bytes());
        maker
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Maker {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn string(&mut self, s: &str) -> &mut Maker {
        self.bytes(&(s.len() as u64).to_le_bytes())
            .bytes(s.as_bytes())
    }

    pub fn tensor(&mut self, name: &str, shape: &[u64], ty: u32, offset: u64) -> &mut Maker {
        self.string(name).bytes(&(shape.len() as u32).to_le_bytes());
        for n in shape {
            self.bytes(&n.to_le_bytes());
        }
        self.bytes(&ty.to_le_bytes()).bytes(&offset.to_le_bytes())
    }

    /// Pads to `align` and adds `data` bytes that count up.
    pub fn data(&mut self, align: usize, data: usize) -> &mut Maker {
        self.0.resize(self.0.len().next_multiple_of(align), 0);
        self.0.extend((0..data).map(|n| n as u8));
        self
    }

    fn open(&self) -> Result<Gguf, GgufError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&self.0).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        Gguf::from_file(file, "made.gguf")
    }

    fn error(&self) -> String {
        self.open().err().expect("the file is bad").to_string()
    }
}

fn good() -> Maker {
    let mut maker = Maker::new(3, 2, 3);
    maker
        .string("general.alignment")
        .bytes(&4u32.to_le_bytes())
        .bytes(&64u32.to_le_bytes());
    maker
        .string("general.name")
        .bytes(&8u32.to_le_bytes())
        .string("made");
    maker
        .string("tokens")
        .bytes(&9u32.to_le_bytes())
        .bytes(&8u32.to_le_bytes());
    maker.bytes(&2u64.to_le_bytes()).string("a").string("bc");
    maker
        .tensor("one", &[64, 3], 3, 0)
        .tensor("two", &[5], 0, 128)
        .data(64, 148);
    maker
}

#[test]
fn tensors_and_their_bytes_are_found() {
    let gguf = good().open().unwrap();
    let one = gguf.tensor("one").unwrap();
    assert_eq!(
        (one.shape.as_slice(), one.type_name(), one.bytes),
        ([64, 3].as_slice(), "Q4_1", 120)
    );
    let two = gguf.tensor("two").unwrap();
    assert_eq!(two.file_offset, one.file_offset + 128);
    assert_eq!(one.file_offset % 64, 0);
    let mut bytes = vec![0; two.bytes as usize];
    gguf.read_tensor(two, &mut bytes).unwrap();
    assert_eq!(bytes, (128..148).map(|n| n as u8).collect::<Vec<_>>());
    assert!(gguf.tensor("three").is_none());
}

#[test]
fn every_truncation_is_named() {
    let whole = good();
    for len in 0..whole.0.len() {
        let error = Maker(whole.0[..len].to_vec()).error();
        assert!(
            error.contains("made.gguf: the file is cut short: "),
            "{len}: {error}"
        );
    }
}

#[test]
fn bad_fields_are_named() {
    assert_eq!(
        Maker(b"PK\x03\x04 and more bytes".to_vec()).error(),
        "made.gguf: magic is PK\\u{3}\\u{4}, expected GGUF"
    );
    assert_eq!(
        Maker::new(1, 0, 0).error(),
        "made.gguf: version is 1, expected 2 or 3"
    );
    assert!(
        Maker::new(3, u64::MAX, 0)
            .error()
            .contains("name of tensor 0")
    );
    assert!(
        Maker::new(3, 0, u64::MAX)
            .error()
            .contains("key of metadata entry 0")
    );

    let odd_rows = Maker::new(3, 1, 0)
        .tensor("w", &[33], 2, 0)
        .data(32, 64)
        .error();
    assert!(
        odd_rows.contains("shape of tensor w is [33], expected rows of whole Q4_0 blocks of 32")
    );
    let no_type = Maker::new(3, 1, 0)
        .tensor("w", &[32], 99, 0)
        .data(32, 64)
        .error();
    assert!(no_type.contains("type of tensor w is 99"));
    let many_dims = Maker::new(3, 1, 0)
        .tensor("w", &[1; 5], 0, 0)
        .data(32, 64)
        .error();
    assert!(many_dims.contains("dimensions of tensor w is 5, expected at most 4"));
    let huge = Maker::new(3, 1, 0)
        .tensor("w", &[1 << 40, 1 << 40], 0, 0)
        .data(32, 64)
        .error();
    assert!(huge.contains("shape of tensor w"));
    let off = Maker::new(3, 1, 0)
        .tensor("w", &[1], 0, 7)
        .data(32, 64)
        .error();
    assert!(off.contains("offset of tensor w is 7, expected a multiple of 32"));
    let far = Maker::new(3, 1, 0)
        .tensor("w", &[1], 0, u64::MAX - 31)
        .data(32, 64)
        .error();
    assert!(far.contains("offset of tensor w"));
    let twice = Maker::new(3, 2, 0)
        .tensor("w", &[1], 0, 0)
        .tensor("w", &[1], 0, 0)
        .data(32, 64)
        .error();
    assert!(twice.contains("name of tensor 1 is w, expected a new name"));

    let mut alignment = Maker::new(3, 0, 1);
    alignment
        .string("general.alignment")
        .bytes(&4u32.to_le_bytes())
        .bytes(&48u32.to_le_bytes());
    assert!(
        alignment
            .error()
            .contains("general.alignment is 48, expected an unsigned power of two")
    );
    let mut kind = Maker::new(3, 0, 1);
    kind.string("x").bytes(&77u32.to_le_bytes());
    assert!(kind.error().contains("type of x is 77"));
}

#[test]
fn a_file_cut_short_after_it_was_opened_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.gguf");
    std::fs::write(&path, &good().0).unwrap();
    let gguf = Gguf::open(&path).unwrap();
    let two = gguf.tensor("two").unwrap().clone();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(two.file_offset + 1)
        .unwrap();
    let error = gguf
        .read_tensor(&two, &mut [0; 20])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("cut.gguf: the file is cut short: data of tensor two"),
        "{error}"
    );
}

/// Writes a model of `count` files, each with one tensor and numbers as given; the first one's path.
fn write_split(dir: &std::path::Path, count: u64, files: &[(u64, u64, &str)]) -> PathBuf {
    for (n, (no, said, name)) in files.iter().enumerate() {
        let mut maker = Maker::new(3, 1, 3);
        // Types as llama.cpp's gguf-split writes them: u16, u16, i32.
        for (key, kind, bytes) in [
            ("split.no", 2u32, &(*no as u16).to_le_bytes()[..]),
            ("split.count", 2, &(*said as u16).to_le_bytes()),
            ("split.tensors.count", 5, &3i32.to_le_bytes()),
        ] {
            maker.string(key).bytes(&kind.to_le_bytes()).bytes(bytes);
        }
        maker.tensor(name, &[32], 8, 0).data(32, 34 + n);
        let path = dir.join(format!("m-{:05}-of-{count:05}.gguf", n + 1));
        std::fs::write(path, &maker.0).unwrap();
    }
    dir.join(format!("m-00001-of-{count:05}.gguf"))
}

#[test]
fn a_model_in_several_files_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let first = write_split(dir.path(), 3, &[(0, 3, "a"), (1, 3, "b"), (2, 3, "c")]);
    let gguf = Gguf::open(&first).unwrap();
    let tensors: Vec<_> = gguf.tensors().iter().map(|t| (&*t.name, t.part)).collect();
    assert_eq!(tensors, [("a", 0), ("b", 1), ("c", 2)]);
    for tensor in gguf.tensors() {
        let mut bytes = vec![0; 34];
        gguf.read_tensor(tensor, &mut bytes).unwrap();
        assert_eq!(bytes, (0..34).collect::<Vec<u8>>());
    }
}

#[test]
fn what_is_wrong_with_a_model_in_several_files_is_named() {
    let error = |files: &[(u64, u64, &str)], open: usize| {
        let dir = tempfile::tempdir().unwrap();
        write_split(dir.path(), 3, files);
        let path = dir.path().join(format!("m-0000{open}-of-00003.gguf"));
        Gguf::open(path)
            .err()
            .expect("the model is bad")
            .to_string()
    };
    let whole = [(0, 3, "a"), (1, 3, "b"), (2, 3, "c")];
    assert!(
        error(&whole, 2)
            .contains("m-00002-of-00003.gguf: split.no is 1, expected 0, a model's first file")
    );
    let missing = error(&whole[..2], 1);
    assert!(
        missing.contains("m-00003-of-00003.gguf: No such file"),
        "{missing}"
    );
    let other = error(&[(0, 3, "a"), (2, 3, "b"), (2, 3, "c")], 1);
    assert!(other.contains("m-00002-of-00003.gguf: split.no is 2, expected 1"));
    let count = error(&[(0, 3, "a"), (1, 4, "b"), (2, 3, "c")], 1);
    assert!(count.contains("m-00002-of-00003.gguf: split.count is 4, expected 3"));
    let twice = error(&[(0, 3, "a"), (1, 3, "b"), (2, 3, "a")], 1);
    assert!(twice.contains("m-00003-of-00003.gguf: name of tensor 0 is a, expected a new name"));
    let few = error(&[(0, 2, "a"), (1, 2, "b")], 1);
    assert!(few.contains("the file's name is"), "{few}");

    let dir = tempfile::tempdir().unwrap();
    let first = write_split(dir.path(), 2, &[(0, 2, "a"), (1, 2, "b")]);
    let few = Gguf::open(first).err().unwrap().to_string();
    assert!(few.contains("split.tensors.count is 3, expected 2, the tensors in its 2 files"));
}
