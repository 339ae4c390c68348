//! A model's file as a stream of C's that leaves tensors to the backend.
//!
//! llama.cpp loads a model from a `FILE` as well, and ours is made by fopencookie(3). glibc reads such
//! a stream through its buffer only, so what llama.cpp reads is copied once. For a tensor in DMA
//! memory that is avoided: llama.cpp goes to its offset, asks for the position there and reads no
//! more than the file has from it on. It is told the end, reads nothing, and the backend reads the
//! bytes into their place. Headers, and tensors that stay with the CPU, take the way through the
//! buffer.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::num::NonZero;
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use rustix::fs::{Advice, fadvise};

use super::LlamaError;
use crate::ggml::Registration;
use crate::gguf::{Gguf, GgufError};
use crate::loader::Reads;

/// Bytes of the file read at once for what goes through the buffer.
const AHEAD: usize = 1 << 20;
/// Most bytes of the stream's own buffer.
const LARGEST_BUFFER: usize = 1 << 16;

/// A model's one file, being loaded.
pub struct Stream {
    file: NonNull<libc::FILE>,
    cookie: *mut Cookie,
    _buffer: Box<[u8]>,
}

/// What the stream's functions get.
struct Cookie {
    gguf: Arc<Gguf>,
    backend: Registration,
    /// Tensors' numbers by offset in the file.
    tensors: HashMap<u64, usize>,
    /// Bytes of the file.
    size: u64,
    position: u64,
    /// Whether the position is that of a tensor which the backend reads.
    taken: bool,
    /// Bytes of the file from `ahead_at` on.
    ahead: Vec<u8>,
    ahead_at: u64,
    error: Option<GgufError>,
}

/// `cookie_io_functions_t` of glibc.
#[repr(C)]
struct CookieFunctions {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> isize,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> isize>,
    seek: unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int,
    close: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

unsafe extern "C" {
    // glibc's; the crate libc leaves it out.
    fn fopencookie(
        cookie: *mut c_void,
        mode: *const c_char,
        functions: CookieFunctions,
    ) -> *mut libc::FILE;
}

impl Stream {
    /// A stream of `gguf`'s file, whose tensors `backend` reads.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn open(gguf: Arc<Gguf>, backend: Registration) -> Result<Stream, LlamaError> {
        let path = || gguf.parts()[0].path.clone();
        let io_error = |source| GgufError::Io {
            path: path(),
            source,
        };
        let size = gguf.parts()[0].file.metadata().map_err(io_error)?.len();
        let tensors = gguf.tensors().iter().enumerate();
        let tensors = tensors.filter(|(_, t)| t.bytes > 0);
        let tensors: HashMap<u64, usize> = tensors.map(|(n, t)| (t.file_offset, n)).collect();
        // glibc goes to the multiple of the buffer's size before an offset and reads from there.
        let buffer = tensors
            .keys()
            .fold(LARGEST_BUFFER as u64, |all, at| all | at);
        let buffer = 1usize << buffer.trailing_zeros();
        let cookie = Box::into_raw(Box::new(Cookie {
            tensors,
            size,
            backend,
            position: 0,
            taken: false,
            ahead: Vec::new(),
            ahead_at: 0,
            error: None,
            gguf: gguf.clone(),
        }));
        let functions = CookieFunctions {
            read,
            write: None,
            seek,
            close: None,
        };
        // SAFETY: the cookie is what the functions want and lives as long as the stream.
        let file = unsafe { fopencookie(cookie.cast(), c"r".as_ptr(), functions) };
        let Some(file) = NonNull::new(file) else {
            // SAFETY: made above, and nobody has it.
            drop(unsafe { Box::from_raw(cookie) });
            return Err(io_error(io::Error::last_os_error()).into());
        };
        let mut memory = vec![0u8; buffer].into_boxed_slice();
        let at = memory.as_mut_ptr().cast();
        // SAFETY: an open stream that was not used yet; the buffer is kept longer.
        unsafe { libc::setvbuf(file.as_ptr(), at, libc::_IOFBF, buffer) };
        backend.begin_file(gguf);
        Ok(Stream {
            file,
            cookie,
            _buffer: memory,
        })
    }

    /// What llama.cpp takes; it is read until [`Stream::finish`].
    pub fn as_ptr(&self) -> *mut libc::FILE {
        self.file.as_ptr()
    }

    /// Waits for what is being read: how the tensors were read.
    ///
    /// # Errors
    /// If the file was cut short since it was opened, or could not be read.
    pub fn finish(self) -> Result<Reads, GgufError> {
        let reads = self.end();
        // SAFETY: the stream, which calls the functions, is not used meanwhile.
        match unsafe { (*self.cookie).error.take() } {
            Some(error) => Err(error),
            None => reads,
        }
    }

    fn end(&self) -> Result<Reads, GgufError> {
        // SAFETY: as in `finish`.
        unsafe { (*self.cookie).backend }.end_file()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // After `finish` there is nothing more to end.
        let _ = self.end();
        // SAFETY: opened by `open`, closed once; then nothing has the cookie.
        unsafe {
            libc::fclose(self.file.as_ptr());
            drop(Box::from_raw(self.cookie));
        }
    }
}

impl Cookie {
    /// Reads bytes from the position on: how many were read, 0 at the end.
    fn read(&mut self, to: &mut [u8]) -> Result<usize, Failed> {
        let n = match self.read_ahead(to) {
            Ok(0) if self.position < self.size => Err(io::ErrorKind::UnexpectedEof.into()),
            result => result,
        };
        let n = n.map_err(|source| {
            let mut tensors = self.gguf.tensors().iter();
            let at = self.position;
            let tensor = tensors.find(|t| (t.file_offset..t.file_offset + t.bytes).contains(&at));
            let error = match tensor {
                Some(tensor) => self.gguf.read_error(tensor, source),
                None => {
                    let path = self.gguf.parts()[0].path.clone();
                    GgufError::Io { path, source }
                }
            };
            self.error.get_or_insert(error);
            Failed
        })?;
        self.position += n as u64;
        Ok(n)
    }

    fn read_ahead(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let within = |ahead: &[u8], at: u64| match self.position.checked_sub(at) {
            Some(skip) if skip < ahead.len() as u64 => Some(skip as usize),
            _ => None,
        };
        let skip = match within(&self.ahead, self.ahead_at) {
            Some(skip) => skip,
            None => {
                let file = &self.gguf.parts()[0].file;
                self.ahead.resize(AHEAD, 0);
                let n = file.read_at(&mut self.ahead, self.position);
                self.ahead.truncate(*n.as_ref().unwrap_or(&0));
                self.ahead_at = self.position;
                // Only advice; the start stays for whoever opens the model next.
                let after_header = NonZero::new(n? as u64).filter(|_| self.position > 0);
                if let Some(n) = after_header {
                    let _ = fadvise(file, self.position, Some(n), Advice::DontNeed);
                }
                0
            }
        };
        let n = to.len().min(self.ahead.len() - skip);
        to[..n].copy_from_slice(&self.ahead[skip..skip + n]);
        Ok(n)
    }

    fn seek(&mut self, offset: i64, whence: c_int) -> Result<u64, Failed> {
        let from = match (whence, self.taken) {
            (libc::SEEK_SET, _) => 0,
            (libc::SEEK_CUR, false) => self.position,
            (libc::SEEK_CUR, true) | (libc::SEEK_END, _) => self.size,
            _ => return Err(Failed),
        };
        let to = from.checked_add_signed(offset).ok_or(Failed)?;
        if whence == libc::SEEK_CUR && offset == 0 {
            // The position is asked for.
            return Ok(to);
        }
        self.position = to;
        self.taken = match self.tensors.get(&to) {
            Some(tensor) => self.backend.read(*tensor).ok_or(Failed)?,
            None => false,
        };
        Ok(to)
    }
}

/// Something failed; why is kept.
struct Failed;

unsafe extern "C" fn read(cookie: *mut c_void, to: *mut c_char, len: usize) -> isize {
    // SAFETY: `open` passes this, and it lives as long as the stream.
    let cookie = unsafe { &mut *cookie.cast::<Cookie>() };
    // SAFETY: C's library wants `len` bytes in its buffer there.
    let to = unsafe { slice::from_raw_parts_mut(to.cast::<u8>(), len) };
    // A panic must not unwind into C.
    match std::panic::catch_unwind(AssertUnwindSafe(|| cookie.read(to))) {
        Ok(Ok(n)) => n as isize,
        _ => failed(libc::EIO),
    }
}

unsafe extern "C" fn seek(cookie: *mut c_void, offset: *mut i64, whence: c_int) -> c_int {
    // SAFETY: as in `read`; C's library passes the offset and takes the new position there.
    let (cookie, offset) = unsafe { (&mut *cookie.cast::<Cookie>(), &mut *offset) };
    match std::panic::catch_unwind(AssertUnwindSafe(|| cookie.seek(*offset, whence))) {
        Ok(Ok(position)) => {
            *offset = position as i64;
            0
        }
        _ => failed(libc::EIO) as c_int,
    }
}

fn failed(errno: c_int) -> isize {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() = errno };
    -1
}
