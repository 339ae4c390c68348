//! Several reads under way at once, by io_uring.

use std::io;
use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, types};

/// A queue of reads.
pub struct Ring {
    uring: IoUring,
    under_way: usize,
}

impl Ring {
    /// A queue with room for `depth` reads.
    ///
    /// # Errors
    /// What io_uring_setup(2) or io_uring_enter(2) say: ENOSYS of a kernel without them, EPERM
    /// where they are forbidden.
    pub fn new(depth: u32) -> io::Result<Ring> {
        let mut ring = Ring {
            uring: IoUring::new(depth)?,
            under_way: 0,
        };
        // Once it works it goes on working: what could fail later is found here.
        // SAFETY: the operation refers to nothing.
        unsafe { ring.uring.submission().push(&opcode::Nop::new().build()) }
            .map_err(io::Error::other)?;
        while ring.uring.completion().next().is_none() {
            ring.enter()?;
        }
        Ok(ring)
    }

    /// Starts to read `len` bytes at `offset` of `fd` to `to`. [`Ring::wait`] tells `id` when it is
    /// done.
    ///
    /// # Errors
    /// If as many reads as the queue has room for are under way.
    ///
    /// # Safety
    /// Until the read is done or the ring is dropped, `fd` stays open and `to..to + len` is memory
    /// that nobody else uses.
    pub unsafe fn read(
        &mut self,
        id: u64,
        fd: RawFd,
        offset: u64,
        to: *mut u8,
        len: u32,
    ) -> io::Result<()> {
        let read = opcode::Read::new(types::Fd(fd), to, len)
            .offset(offset)
            .build()
            .user_data(id);
        // SAFETY: the file and the memory last, by contract.
        unsafe { self.uring.submission().push(&read) }.map_err(io::Error::other)?;
        self.under_way += 1;
        // Where the kernel does not take it now, it does so in `wait`.
        let _ = self.uring.submit();
        Ok(())
    }

    /// Waits until a read is done: its `id`, and the bytes read or why none could be. None if no
    /// read is under way.
    pub fn wait(&mut self) -> io::Result<Option<(u64, io::Result<usize>)>> {
        while self.under_way > 0 {
            if let Some(done) = self.uring.completion().next() {
                self.under_way -= 1;
                let result = usize::try_from(done.result())
                    .map_err(|_| io::Error::from_raw_os_error(-done.result()));
                return Ok(Some((done.user_data(), result)));
            }
            self.enter()?;
        }
        Ok(None)
    }

    /// Hands over what is queued and waits for something to be done.
    fn enter(&mut self) -> io::Result<()> {
        match self.uring.submit_and_wait(1) {
            Err(e)
                if !matches!(
                    e.raw_os_error(),
                    Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
                ) =>
            {
                Err(e)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Ring {
    /// The kernel writes to memory until the reads are done.
    fn drop(&mut self) {
        while self.under_way > 0 {
            if self.wait().is_err() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
}
