//! A model's file while it is loaded: its tensors lie in DMA memory such that they can be read
//! straight into it, and are.
//!
//! Reads of whole blocks past the page cache want a tensor to start as far past a block in memory as
//! it does in the file, and write the blocks around it, too. So each tensor is given granules of its
//! own while a file is being loaded, and starts within the first of them where it does in the file.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::dma::GRANULE;
use crate::gguf::{Gguf, GgufError, TensorInfo};
use crate::loader::{Done, Reader, Reads};

/// A model in one file that is being loaded.
pub struct ModelFile {
    /// None after a read failed: `error` says why.
    reader: Option<Reader>,
    error: Option<GgufError>,
    tensors: HashMap<String, Place>,
    /// Where tensors were placed, with granules of their own, by number.
    placed: HashMap<usize, Vec<Placed>>,
    /// Numbers of tensors that were left to somebody else to read.
    left: HashSet<usize>,
}

/// Memory of a tensor's.
#[derive(Clone, Copy)]
struct Placed {
    data: NonNull<u8>,
    started: bool,
}

// SAFETY: no more than addresses; who may use the memory says `ModelFile::read`.
unsafe impl Send for Placed {}

/// A tensor's place in its file.
#[derive(Clone, Copy)]
struct Place {
    /// The tensor's number in the model.
    number: usize,
    /// Bytes from the granule's start.
    skip: usize,
    bytes: usize,
}

impl ModelFile {
    pub fn new(gguf: Arc<Gguf>) -> ModelFile {
        let place = |(number, t): (usize, &TensorInfo)| {
            let place = Place {
                number,
                skip: (t.file_offset % GRANULE as u64) as usize,
                bytes: t.bytes as usize,
            };
            (t.name.clone(), place)
        };
        let tensors = gguf.tensors().iter().enumerate();
        ModelFile {
            tensors: tensors.map(place).collect(),
            reader: Some(Reader::new(gguf)),
            error: None,
            placed: HashMap::new(),
            left: HashSet::new(),
        }
    }

    /// Bytes that the tensor called `name` of `bytes` takes in a buffer: whole granules, if it is one
    /// of the file's.
    pub fn footprint(&self, name: &str, bytes: usize) -> usize {
        match self.tensors.get(name) {
            Some(place) if place.bytes == bytes => (place.skip + bytes).next_multiple_of(GRANULE),
            _ => bytes,
        }
    }

    /// Where the tensor called `name` of `bytes` starts, to which [`ModelFile::footprint`] bytes at
    /// `data` were given.
    ///
    /// # Safety
    /// The bytes at `data` are the tensor's alone, and are not freed before [`ModelFile::wait`].
    pub unsafe fn place(&mut self, name: &str, bytes: usize, data: NonNull<u8>) -> NonNull<u8> {
        match self.tensors.get(name) {
            Some(place)
                if place.bytes == bytes && (data.as_ptr() as usize).is_multiple_of(GRANULE) =>
            {
                // SAFETY: within the tensor's first granule.
                let data = unsafe { data.add(place.skip) };
                let started = false;
                let placed = self.placed.entry(place.number).or_default();
                placed.push(Placed { data, started });
                data
            }
            _ => data,
        }
    }

    /// Starts to read tensor number `number` to where it was placed: it is there after
    /// [`ModelFile::wait`]. False if it was not placed, and whoever wants it has to read it. A tensor
    /// that was placed more than once is read to another place each time.
    ///
    /// # Errors
    /// If this or an earlier tensor cannot be read, or this one is read more often than it was
    /// placed; why is kept.
    pub fn read(&mut self, number: usize) -> Result<bool, Failed> {
        let reader = self.reader.as_mut().ok_or(Failed)?;
        let Some(placed) = self.placed.get_mut(&number) else {
            self.left.insert(number);
            return Ok(false);
        };
        let Some(next) = placed.iter_mut().find(|p| !p.started) else {
            let tensor = &reader.gguf().tensors()[number];
            let name = &tensor.name;
            let what = format!("tensor {name} is wanted in DMA memory and elsewhere as well");
            let other = io::Error::other(what);
            let error = reader.gguf().read_error(tensor, other);
            return self.note(Err(error)).map(|()| true);
        };
        next.started = true;
        // SAFETY: `place` has put it where reads want it, into memory that is the tensor's.
        let result = unsafe { reader.start(number, next.data, &mut ignore) };
        self.note(result).map(|()| true)
    }

    /// Waits until all that was started is read; afterwards nothing is under way, whatever happened.
    pub fn wait(&mut self) {
        if let Some(reader) = &mut self.reader {
            let result = reader.wait_all(&mut ignore);
            let _ = self.note(result);
        }
    }

    /// Ends the load.
    ///
    /// # Errors
    /// What the first read that failed failed with.
    pub fn finish(mut self) -> Result<Reads, GgufError> {
        self.wait();
        match (self.error, self.reader) {
            (None, Some(reader)) => {
                let mut reads = reader.reads().clone();
                let left = self.left.iter().filter(|n| !self.placed.contains_key(n));
                let left: u64 = left.map(|n| reader.gguf().tensors()[*n].bytes).sum();
                reads.plain += left;
                if left > 0 {
                    let why = || "these tensors are for the CPU".into();
                    reads.why_plain.get_or_insert_with(why);
                }
                Ok(reads)
            }
            (error, _) => Err(error.expect("without it the reader is kept")),
        }
    }

    /// Keeps an error. What is under way is waited for by dropping the reader.
    fn note(&mut self, result: Result<(), GgufError>) -> Result<(), Failed> {
        result.map_err(|e| {
            self.reader = None;
            self.error.get_or_insert(e);
            Failed
        })
    }
}

/// A read failed; why is kept.
pub struct Failed;

fn ignore(_: Done) -> Result<(), GgufError> {
    Ok(())
}
