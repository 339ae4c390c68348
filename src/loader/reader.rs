//! Reads tensors into DMA buffers, several large reads at once.

use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{Advice, fadvise};

use super::direct::DirectFile;
use super::ring::Ring;
use crate::gguf::{Gguf, GgufError};

/// Bytes of one read. Larger ones do not make a disk faster, and progress is told by them.
const PIECE: u64 = 2 << 20;
/// Reads under way at once.
const DEPTH: u32 = 8;

/// How bytes got from the files into memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Bytes read by O_DIRECT and io_uring.
    pub direct: u64,
    /// Bytes read by pread(2), through the page cache.
    pub plain: u64,
    /// Why the first of the plain ones were not read directly.
    pub why_plain: Option<String>,
}

/// Reads the tensors of one model.
pub struct Reader {
    gguf: Arc<Gguf>,
    /// None where no file is read directly. Dropped, and with it waited for, before the rest.
    ring: Option<Ring>,
    /// One for each of the model's files; none for those that cannot be read directly.
    direct: Vec<Option<DirectFile>>,
    /// Files whose direct reads the system has refused.
    refused: Vec<bool>,
    /// What is under way, by place.
    pieces: Vec<Option<Piece>>,
    reads: Reads,
}

/// A part of a tensor, in whole blocks where it is read directly.
#[derive(Clone, Copy)]
struct Piece {
    /// Index of the tensor in the model.
    tensor: usize,
    offset: u64,
    len: u64,
    to: NonNull<u8>,
    /// Bytes of it that are there.
    read: u64,
}

// SAFETY: the memory is named and not shared; who may use it says `Reader::start`.
unsafe impl Send for Piece {}

/// A part of a tensor that is there.
pub struct Done {
    /// Index of the tensor in the model.
    pub tensor: usize,
    /// Bytes of the tensor that were read.
    pub bytes: u64,
}

impl Reader {
    pub fn new(gguf: Arc<Gguf>) -> Reader {
        let mut reads = Reads::default();
        let mut note = |why| {
            reads.why_plain.get_or_insert(why);
        };
        let ring = Ring::new(DEPTH).map_err(|e| note(format!("the kernel gives no io_uring: {e}")));
        let ring = ring.ok();
        let mut direct = Vec::new();
        for part in gguf.parts() {
            let file = ring.as_ref().and_then(|_| {
                let file = DirectFile::open(&part.file);
                file.map_err(&mut note).ok()
            });
            direct.push(file);
        }
        Reader {
            gguf,
            ring,
            refused: vec![false; direct.len()],
            direct,
            pieces: vec![None; DEPTH as usize],
            reads,
        }
    }

    /// Starts to read tensor number `tensor` of the model to `to`, waiting for other reads where
    /// too many are under way. `done` is told each part that is there.
    ///
    /// # Errors
    /// If the file was cut short since it was opened, or cannot be read; and what `done` says.
    ///
    /// # Safety
    /// `to` is as far past a multiple of [`GRANULE`](crate::dma::GRANULE) as the tensor's offset in
    /// its file. All granules from there to the tensor's end are memory that nobody else uses, until
    /// the tensor is read or the reader dropped.
    pub unsafe fn start<E: From<GgufError>>(
        &mut self,
        tensor: usize,
        to: NonNull<u8>,
        done: &mut impl FnMut(Done) -> Result<(), E>,
    ) -> Result<(), E> {
        for piece in self.split(tensor, to) {
            let room = loop {
                match self.pieces.iter().position(Option::is_none) {
                    Some(room) => break room,
                    None => self.wait(done)?,
                };
            };
            if self.submit(room, piece) {
                self.pieces[room] = Some(piece);
            } else {
                self.read_plainly(&piece)?;
                done(self.done(&piece))?;
            }
        }
        Ok(())
    }

    /// The model.
    pub fn gguf(&self) -> &Gguf {
        &self.gguf
    }

    /// Waits until all that was started is read.
    ///
    /// # Errors
    /// As [`Reader::start`].
    pub fn wait_all<E: From<GgufError>>(
        &mut self,
        done: &mut impl FnMut(Done) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.wait(done)? {}
        Ok(())
    }

    /// How what was read so far was read.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Waits for a read; false if none is under way.
    fn wait<E: From<GgufError>>(
        &mut self,
        done: &mut impl FnMut(Done) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some(ring) = &mut self.ring else {
            return Ok(false);
        };
        let next = ring.wait().map_err(|source| {
            let path = self.gguf.parts()[0].path.clone();
            GgufError::Io { path, source }
        })?;
        let Some((room, result)) = next else {
            return Ok(false);
        };
        let room = room as usize;
        let piece = self.pieces[room]
            .take()
            .expect("what is done was under way");
        if let Some(rest) = self.settle(&piece, result)? {
            // The same place: nothing else can have taken it.
            if self.submit(room, rest) {
                self.pieces[room] = Some(rest);
                return Ok(true);
            }
            self.read_plainly(&rest)?;
        }
        done(self.done(&piece))?;
        Ok(true)
    }

    /// What is left to do of `piece`, a read of which gave `result`.
    fn settle(
        &mut self,
        piece: &Piece,
        result: io::Result<usize>,
    ) -> Result<Option<Piece>, GgufError> {
        let info = &self.gguf.tensors()[piece.tensor];
        let error = |e| Err(self.gguf.read_error(info, e));
        let block = self.direct[info.part].as_ref().map_or(1, |d| d.block);
        match result {
            Ok(n) => {
                let rest = Piece {
                    read: piece.read + n as u64,
                    ..*piece
                };
                let (before, left) = (self.wanted(piece), self.wanted(&rest));
                self.reads.direct += length(&before) - length(&left);
                if left.is_empty() {
                    return Ok(None);
                }
                // Less than a block is the end of the file.
                if n == 0 || !(n as u64).is_multiple_of(block) {
                    return error(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(Some(rest))
            }
            Err(e) => match e.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => Ok(Some(*piece)),
                // The file system or the memory is not made for it: EINVAL of alignments,
                // EOPNOTSUPP of files, EFAULT of memory without page structures.
                Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EFAULT | libc::ENOMEM) => {
                    self.refused[info.part] = true;
                    let why = format!("a read with O_DIRECT failed: {e}");
                    self.reads.why_plain.get_or_insert(why);
                    Ok(Some(*piece))
                }
                _ => error(e),
            },
        }
    }

    /// Starts to read what is left of `piece` directly, if its file is read so.
    fn submit(&mut self, room: usize, piece: Piece) -> bool {
        let part = self.gguf.tensors()[piece.tensor].part;
        let (Some(ring), Some(direct), false) =
            (&mut self.ring, &self.direct[part], self.refused[part])
        else {
            return false;
        };
        let (fd, offset) = (direct.file.as_raw_fd(), piece.offset + piece.read);
        let (to, len) = (piece.at(offset), (piece.len - piece.read) as u32);
        // SAFETY: the file is closed after the ring; for the memory vouches who called `start`.
        unsafe { ring.read(room as u64, fd, offset, to.as_ptr(), len) }.is_ok()
    }

    /// Reads what is left of `piece`, its tensor's bytes alone, with pread(2), and does not leave it
    /// in the page cache.
    fn read_plainly(&mut self, piece: &Piece) -> Result<(), GgufError> {
        let range = self.wanted(piece);
        let info = &self.gguf.tensors()[piece.tensor];
        let file = &self.gguf.parts()[info.part].file;
        let (to, len) = (piece.at(range.start), length(&range));
        // SAFETY: within the tensor's memory, which nobody else uses.
        let bytes = unsafe { std::slice::from_raw_parts_mut(to.as_ptr(), len as usize) };
        let read = file.read_exact_at(bytes, range.start);
        read.map_err(|e| self.gguf.read_error(info, e))?;
        // Only advice.
        let _ = fadvise(file, range.start, NonZero::new(len), Advice::DontNeed);
        self.reads.plain += len;
        Ok(())
    }

    /// The parts in which `tensor` is read to `to`.
    fn split(&self, tensor: usize, to: NonNull<u8>) -> impl Iterator<Item = Piece> + use<> {
        let info = &self.gguf.tensors()[tensor];
        let block = self.direct[info.part].as_ref().map_or(1, |d| d.block);
        let first = info.file_offset / block * block;
        let end = (info.file_offset + info.bytes).next_multiple_of(block);
        let ahead = info.file_offset - first;
        // SAFETY: memory for the blocks around the tensor is there, too, as `start` demands.
        let to = unsafe { to.sub(ahead as usize) };
        let mut next = first;
        std::iter::from_fn(move || {
            let offset = next;
            next = (offset / PIECE + 1).saturating_mul(PIECE).min(end);
            (offset < end).then(|| Piece {
                tensor,
                offset,
                len: next - offset,
                // SAFETY: as above.
                to: unsafe { to.add((offset - first) as usize) },
                read: 0,
            })
        })
    }

    /// The bytes of the file that are left to read for `piece`, without those of blocks around the
    /// tensor.
    fn wanted(&self, piece: &Piece) -> Range<u64> {
        let info = &self.gguf.tensors()[piece.tensor];
        let start = (piece.offset + piece.read).max(info.file_offset);
        let end = (piece.offset + piece.len).min(info.file_offset + info.bytes);
        start..end.max(start)
    }

    fn done(&self, piece: &Piece) -> Done {
        let whole = Piece { read: 0, ..*piece };
        Done {
            tensor: piece.tensor,
            bytes: length(&self.wanted(&whole)),
        }
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

impl Piece {
    /// Where the byte at `offset` of the file goes.
    fn at(&self, offset: u64) -> NonNull<u8> {
        // SAFETY: within the piece.
        unsafe { self.to.add((offset - self.offset) as usize) }
    }
}
