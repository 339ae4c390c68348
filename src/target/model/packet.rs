//! A job packet on its way into the kernel: the pieces of memory it is made of.

use std::borrow::Cow;

/// Bytes that lie together: a descriptor's, or those of several that continue each other.
#[derive(Clone, Copy)]
struct Piece {
    ptr: *const u8,
    len: usize,
    /// It lies in the packet's own memory.
    owned: bool,
}

/// What came of a packet so far. The bytes are used where they lie; [`Packet::own`] copies them.
#[derive(Default)]
pub struct Packet {
    pieces: Vec<Piece>,
    /// Memory of pieces that were copied.
    owned: Vec<Box<[u8]>>,
    beats: u64,
    /// Bytes, counting all lanes of every beat but the last.
    len: u64,
    bad_keep: bool,
    partial: bool,
}

// SAFETY: the pieces point to mapped DMA memory, which may be used from any thread, or to memory
// that the packet owns.
unsafe impl Send for Packet {}

impl Packet {
    /// Takes the `len` bytes at `ptr` in beats of `bus_bytes`, and says how many beats they are.
    ///
    /// # Safety
    /// `len` rounded up to whole beats can be read at `ptr` until the packet is cleared or owns
    /// its bytes.
    pub unsafe fn push(&mut self, ptr: *const u8, len: usize, bus_bytes: usize) -> u64 {
        // The beat before was not the packet's last, and only then may it be partial.
        self.bad_keep |= self.partial;
        self.partial = !len.is_multiple_of(bus_bytes);
        self.len = self.beats * bus_bytes as u64 + len as u64;
        let whole = len.next_multiple_of(bus_bytes);
        let beats = (whole / bus_bytes) as u64;
        self.beats += beats;
        match self.pieces.last_mut() {
            Some(last) if !last.owned && last.ptr.wrapping_add(last.len) == ptr => {
                last.len += whole
            }
            _ => self.pieces.push(Piece {
                ptr,
                len: whole,
                owned: false,
            }),
        }
        beats
    }

    pub fn is_empty(&self) -> bool {
        self.beats == 0
    }

    /// Bytes; a partial beat before the last counts whole.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn beats(&self) -> u64 {
        self.beats
    }

    /// Whether a beat before the last was partial.
    pub fn bad_keep(&self) -> bool {
        self.bad_keep
    }

    /// Copies what still lies in DMA memory, which the host may change once the descriptors are
    /// done.
    pub fn own(&mut self) {
        for piece in self.pieces.iter_mut().filter(|piece| !piece.owned) {
            // SAFETY: `push` was promised that the bytes can be read.
            let bytes = unsafe { std::slice::from_raw_parts(piece.ptr, piece.len) };
            let copy: Box<[u8]> = bytes.into();
            piece.ptr = copy.as_ptr();
            piece.owned = true;
            self.owned.push(copy);
        }
    }

    /// `len` bytes from `at` on, in place if they lie in one piece.
    ///
    /// # Panics
    /// If the packet is shorter.
    pub fn bytes(&self, at: usize, len: usize) -> Cow<'_, [u8]> {
        let mut start = at;
        let mut gathered = Vec::new();
        for piece in &self.pieces {
            if start >= piece.len {
                start -= piece.len;
                continue;
            }
            let here = (piece.len - start).min(len - gathered.len());
            // SAFETY: within the piece, which `push` was promised can be read.
            let bytes = unsafe { std::slice::from_raw_parts(piece.ptr.add(start), here) };
            if here == len {
                return Cow::Borrowed(bytes);
            }
            gathered.extend_from_slice(bytes);
            if gathered.len() == len {
                break;
            }
            start = 0;
        }
        assert_eq!(
            gathered.len(),
            len,
            "the packet ends before byte {at} + {len}"
        );
        Cow::Owned(gathered)
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
        self.owned.clear();
        (self.beats, self.len) = (0, 0);
        (self.bad_keep, self.partial) = (false, false);
    }
}
