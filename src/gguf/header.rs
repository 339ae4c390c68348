//! One file's header.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;

use super::cursor::{self, Cursor, Value};
use super::{TensorInfo, type_info};

/// ggml's most dimensions of a tensor.
const MAX_DIMS: u32 = 4;
/// Alignment of tensor data where `general.alignment` is absent.
const DEFAULT_ALIGNMENT: u64 = 32;

/// What one file's header says.
pub(super) struct Header {
    pub tensors: Vec<TensorInfo>,
    pub split: Split,
    /// Metadata that are integers of at least 0.
    pub numbers: BTreeMap<String, u64>,
}

/// Whether the tensors' bytes have to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Each tensor's bytes are checked to lie within the file.
    Whole,
    /// The file may end behind its header.
    HeaderOnly,
}

/// The file's place among the files of a model; source: the keys `split.*` that llama.cpp's
/// `gguf-split` writes.
pub(super) struct Split {
    /// Counts from 0, although the numbers in the files' names count from 1.
    pub no: u64,
    pub count: u64,
    /// Tensors in all files.
    pub tensors: Option<u64>,
}

/// Reads the header of `file`, the `part`th of a model's files.
pub(super) fn read(file: &File, part: usize, extent: Extent) -> Result<Header, cursor::Error> {
    let mut cursor = Cursor::new(file)?;
    let magic = cursor.array::<4>("magic")?;
    if &magic != b"GGUF" {
        let found = String::from_utf8_lossy(&magic).escape_debug().to_string();
        return Err(cursor::bad("magic", found, "GGUF"));
    }
    let version = cursor.u32("version")?;
    if !matches!(version, 2 | 3) {
        return Err(cursor::bad("version", version, "2 or 3"));
    }
    let tensor_count = cursor.u64("tensor count")?;
    let entry_count = cursor.u64("metadata count")?;

    let mut alignment = DEFAULT_ALIGNMENT;
    let mut split = Split {
        no: 0,
        count: 1,
        tensors: None,
    };
    let mut numbers = BTreeMap::new();
    for n in 0..entry_count {
        let key = cursor.string(&format!("key of metadata entry {n}"))?;
        let value = cursor.value(&key)?;
        if let Some(number) = value.count() {
            numbers.insert(key.clone(), number);
        }
        let count = || {
            value
                .count()
                .ok_or_else(|| cursor::bad(&key, value, "a number of at least 0"))
        };
        match key.as_str() {
            "general.alignment" => {
                alignment = match value {
                    Value::Unsigned(a) if a.is_power_of_two() => a,
                    _ => return Err(cursor::bad(&key, value, "an unsigned power of two")),
                };
            }
            "split.no" => split.no = count()?,
            "split.count" => split.count = count()?,
            "split.tensors.count" => split.tensors = Some(count()?),
            _ => {}
        }
    }

    // The count is not trusted to reserve memory: each entry has to be there.
    let mut tensors = Vec::new();
    let mut names = HashSet::new();
    for n in 0..tensor_count {
        let tensor = read_tensor(&mut cursor, n, part)?;
        if !names.insert(tensor.name.clone()) {
            return Err(cursor::bad(
                &format!("name of tensor {n}"),
                tensor.name,
                "a new name",
            ));
        }
        tensors.push(tensor);
    }
    let data = cursor.offset().next_multiple_of(alignment);
    for tensor in &mut tensors {
        let field = format!("offset of tensor {}", tensor.name);
        if !tensor.file_offset.is_multiple_of(alignment) {
            let expected = format!("a multiple of {alignment}");
            return Err(cursor::bad(&field, tensor.file_offset, &expected));
        }
        tensor.file_offset = data
            .checked_add(tensor.file_offset)
            .ok_or_else(|| cursor::bad(&field, tensor.file_offset, "an offset in the file"))?;
        let field = format!("data of tensor {}", tensor.name);
        if extent == Extent::Whole {
            cursor.check(&field, tensor.file_offset, tensor.bytes)?;
        }
    }
    Ok(Header {
        tensors,
        split,
        numbers,
    })
}

/// Reads one tensor entry; its offset still counts from the start of the data.
fn read_tensor(cursor: &mut Cursor<'_>, n: u64, part: usize) -> Result<TensorInfo, cursor::Error> {
    let name = cursor.string(&format!("name of tensor {n}"))?;
    let field = |what: &str| format!("{what} of tensor {name}");
    let dims = cursor.u32(&field("dimensions"))?;
    if dims > MAX_DIMS {
        return Err(cursor::bad(
            &field("dimensions"),
            dims,
            &format!("at most {MAX_DIMS}"),
        ));
    }
    let mut shape = Vec::new();
    for _ in 0..dims {
        shape.push(cursor.u64(&field("shape"))?);
    }
    let ggml_type = cursor.u32(&field("type"))?;
    let Some(info) = type_info(ggml_type) else {
        return Err(cursor::bad(
            &field("type"),
            ggml_type,
            "a type number of ggml 0.26",
        ));
    };
    let row = shape.first().copied().unwrap_or(1);
    if !row.is_multiple_of(info.block_len) {
        let expected = format!("rows of whole {} blocks of {}", info.name, info.block_len);
        return Err(cursor::bad(
            &field("shape"),
            format!("{shape:?}"),
            &expected,
        ));
    }
    let bytes = shape
        .iter()
        .try_fold(1u64, |all, n| all.checked_mul(*n))
        .and_then(|elements| (elements / info.block_len).checked_mul(info.block_bytes))
        .ok_or_else(|| {
            cursor::bad(
                &field("shape"),
                format!("{shape:?}"),
                "a size below 2^64 bytes",
            )
        })?;
    let file_offset = cursor.u64(&field("offset"))?;
    Ok(TensorInfo {
        name,
        shape,
        ggml_type,
        part,
        file_offset,
        bytes,
    })
}
