//! The buffer type: DMA memory that ggml allocates tensors in.
//!
//! Tensors lie in it as in ggml's own CPU buffers, so the CPU uses them in place and a file's bytes
//! can be read straight into them. Only weights have to be in DMA memory: activations are quantised
//! into the driver's own, and results copied out of it. So a buffer for which there is no room is
//! one of ordinary memory, and products with weights that lie in it stay on the CPU.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use super::abi::{
    BUFFER_USAGE_WEIGHTS, Buffer, BufferInterface, BufferType, BufferTypeFunctions,
    BufferTypeLayout, STATUS_FAILED, STATUS_SUCCESS, Tensor,
};
use super::{Shared, guard, lock, report};
use crate::dma;

/// Tensors start on multiples of this many bytes: a bus word of the widest bus, and then some.
pub const ALIGNMENT: usize = 128;

/// Where a ggml buffer's bytes are.
enum Memory {
    Dma(dma::Buffer),
    Ordinary(Ordinary),
}

/// Memory of the process, aligned as DMA memory is.
struct Ordinary {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, and is no more than its address.
unsafe impl Send for Ordinary {}
// SAFETY: as above.
unsafe impl Sync for Ordinary {}

impl Ordinary {
    fn new(len: usize) -> Option<Ordinary> {
        let layout = Layout::from_size_align(len.max(1), dma::GRANULE).ok()?;
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        Some(Ordinary { start, layout })
    }
}

impl Drop for Ordinary {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Context of a ggml buffer.
pub struct DmaBuffer {
    memory: Memory,
    /// What the device has been given and the CPU has not changed since: start to end, in bytes
    /// from the buffer's start.
    synced: Mutex<BTreeMap<usize, usize>>,
}

impl DmaBuffer {
    /// The context of `buffer` if it is one of `shared`'s.
    ///
    /// # Safety
    /// `buffer` is NULL or a live ggml buffer, which outlives the result.
    pub unsafe fn of<'a>(shared: &Shared, buffer: *mut Buffer) -> Option<(&'a DmaBuffer, bool)> {
        // SAFETY: live by contract; the context of a buffer of our type is made in `alloc_buffer`.
        unsafe {
            let buffer = buffer.as_ref()?;
            if buffer.buft != shared.buffer_type() {
                return None;
            }
            let dma = &*buffer.context.cast::<DmaBuffer>();
            Some((dma, buffer.usage == BUFFER_USAGE_WEIGHTS))
        }
    }

    fn start(&self) -> NonNull<u8> {
        match &self.memory {
            Memory::Dma(buffer) => buffer.as_ptr(),
            Memory::Ordinary(memory) => memory.start,
        }
    }

    fn base(&self) -> usize {
        self.start().as_ptr() as usize
    }

    /// Whether the device reaches it.
    pub fn is_dma(&self) -> bool {
        matches!(self.memory, Memory::Dma(_))
    }

    /// Makes `len` bytes at CPU address `data` visible to the device and returns their device
    /// address. With `constant` (a weight), bytes handed over once are not handed over again until
    /// ggml writes them.
    pub fn hand_over(&self, data: usize, len: usize, constant: bool) -> Result<u64, String> {
        let Memory::Dma(buffer) = &self.memory else {
            return Err("weights are not in DMA memory".into());
        };
        let offset = data
            .checked_sub(self.base())
            .ok_or("weights lie before their buffer")?;
        let sync = || buffer.sync_for_device(offset, len);
        if constant {
            let mut synced = self.lock();
            if synced.get(&offset).is_none_or(|end| *end < offset + len) {
                sync().map_err(|e| e.to_string())?;
                synced.insert(offset, offset + len);
            }
        } else {
            sync().map_err(|e| e.to_string())?;
        }
        Ok(buffer.device_addr() + offset as u64)
    }

    /// Notes that the CPU writes `range` (in bytes from the buffer's start).
    fn forget(&self, range: Range<usize>) {
        self.lock()
            .retain(|start, end| *end <= range.start || *start >= range.end);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, usize>> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The functions of a buffer type whose layout is `L`.
pub fn functions<L: BufferTypeLayout>() -> BufferTypeFunctions {
    BufferTypeFunctions {
        get_name: get_name::<L>,
        alloc_buffer: alloc_buffer::<L>,
        get_alignment,
        get_alloc_size: get_alloc_size::<L>,
        is_host,
    }
}

/// The state behind a buffer type of ours.
unsafe fn shared<L: BufferTypeLayout>(buft: *mut BufferType) -> &'static Shared {
    // SAFETY: ggml passes our buffer type, laid out as `L`, whose context is the shared state.
    unsafe { Shared::from_context((*buft.cast::<L>()).context()) }
}

unsafe extern "C" fn get_name<L: BufferTypeLayout>(buft: *mut BufferType) -> *const c_char {
    unsafe { shared::<L>(buft) }.name_ptr()
}

unsafe extern "C" fn get_alignment(_: *mut BufferType) -> usize {
    ALIGNMENT
}

/// What a tensor takes in a buffer: more than its bytes while a file is loaded.
unsafe extern "C" fn get_alloc_size<L: BufferTypeLayout>(
    buft: *mut BufferType,
    tensor: *const Tensor,
) -> usize {
    let shared = unsafe { shared::<L>(buft) };
    // SAFETY: ggml passes a live tensor.
    let (tensor, bytes) = unsafe { (&*tensor, (shared.api().nbytes)(tensor)) };
    guard("get_alloc_size", bytes, || match &*lock(&shared.file) {
        Some(file) => file.footprint(&tensor.name(), bytes),
        None => bytes,
    })
}

/// The memory is the CPU's as well and tensors have ggml's layout, so ggml may use it in place.
unsafe extern "C" fn is_host(_: *mut BufferType) -> bool {
    true
}

/// NULL only if no memory at all is left. An empty buffer, with which a loader asks what we would
/// take, takes nothing of the heap.
unsafe extern "C" fn alloc_buffer<L: BufferTypeLayout>(
    buft: *mut BufferType,
    size: usize,
) -> *mut Buffer {
    let shared = unsafe { shared::<L>(buft) };
    guard("alloc_buffer", std::ptr::null_mut(), || {
        let Some(memory) = memory(shared, size) else {
            report(
                shared,
                format!("no memory for ggml's buffer of {size} bytes"),
            );
            return std::ptr::null_mut();
        };
        let context = Box::new(DmaBuffer {
            memory,
            synced: Mutex::default(),
        });
        let interface = BufferInterface {
            free_buffer: Some(free_buffer::<L>),
            get_base: Some(get_base),
            init_tensor: Some(init_tensor::<L>),
            memset_tensor: Some(memset_tensor),
            set_tensor: Some(set_tensor),
            get_tensor: Some(get_tensor),
            set_tensor_2d: None,
            get_tensor_2d: None,
            cpy_tensor: None,
            clear: Some(clear),
            reset: None,
        };
        let context = Box::into_raw(context).cast();
        // SAFETY: the table's pointer is ggml's function; the context is freed by `free_buffer`.
        unsafe { (shared.api().buffer_init)(buft, interface, context, size) }
    })
}

/// Memory for a buffer of `size` bytes.
fn memory(shared: &Shared, size: usize) -> Option<Memory> {
    let ordinary = || Ordinary::new(size).map(Memory::Ordinary);
    if size == 0 {
        return ordinary();
    }
    shared.end_load();
    let buffer = match &*lock(&shared.file) {
        Some(_) => shared.heap().alloc_for_file(0, size),
        None => shared.heap().alloc(size),
    };
    match buffer {
        Ok(buffer) => Some(Memory::Dma(buffer)),
        Err(e) => {
            log::info!("a buffer of ggml's in ordinary memory: {e}");
            ordinary()
        }
    }
}

unsafe fn context<'a>(buffer: *mut Buffer) -> &'a DmaBuffer {
    // SAFETY: ggml passes buffers that `alloc_buffer` made, until `free_buffer`.
    unsafe { &*(*buffer).context.cast::<DmaBuffer>() }
}

unsafe extern "C" fn free_buffer<L: BufferTypeLayout>(buffer: *mut Buffer) {
    guard("free_buffer", (), || {
        // SAFETY: a live buffer of our type.
        let shared = unsafe { shared::<L>((*buffer).buft) };
        if let Some(file) = &mut *lock(&shared.file) {
            // The system may be reading into it.
            file.wait();
        }
        // SAFETY: made by `Box::into_raw` in `alloc_buffer`, and freed once.
        drop(unsafe { Box::from_raw((*buffer).context.cast::<DmaBuffer>()) });
    });
}

unsafe extern "C" fn get_base(buffer: *mut Buffer) -> *mut c_void {
    // SAFETY: see `context`.
    unsafe { context(buffer) }.start().as_ptr().cast()
}

/// While a file is loaded, moves a weight within what `get_alloc_size` gave it.
unsafe extern "C" fn init_tensor<L: BufferTypeLayout>(
    buffer: *mut Buffer,
    tensor: *mut Tensor,
) -> c_int {
    guard("init_tensor", STATUS_FAILED, || {
        // SAFETY: ggml passes a live buffer of our type, and a tensor whose place in it it has set.
        let (shared, tensor) = unsafe { (shared::<L>((*buffer).buft), &mut *tensor) };
        // SAFETY: as above.
        let bytes = unsafe { (shared.api().nbytes)(tensor) };
        let data = NonNull::new(tensor.data.cast::<u8>()).filter(|_| tensor.view_src.is_null());
        if let (Some(file), Some(data)) = (&mut *lock(&shared.file), data) {
            // SAFETY: ggml gives tensors what `get_alloc_size` says; `free_buffer` waits.
            let placed = unsafe { file.place(&tensor.name(), bytes, data) };
            tensor.data = placed.as_ptr().cast();
        }
        STATUS_SUCCESS
    })
}

/// Where `len` bytes at `offset` of `tensor` lie, noted as written by the CPU.
unsafe fn written(buffer: *mut Buffer, tensor: *mut Tensor, offset: usize, len: usize) -> *mut u8 {
    // SAFETY: ggml passes a live tensor in this buffer and has checked the range.
    unsafe {
        let dma = context(buffer);
        let to = (*tensor).data.cast::<u8>().add(offset);
        let start = (to as usize).wrapping_sub(dma.base());
        dma.forget(start..start.saturating_add(len));
        to
    }
}

unsafe extern "C" fn memset_tensor(
    buffer: *mut Buffer,
    tensor: *mut Tensor,
    value: u8,
    offset: usize,
    len: usize,
) {
    guard("memset_tensor", (), || {
        // SAFETY: see `written`.
        unsafe { std::ptr::write_bytes(written(buffer, tensor, offset, len), value, len) }
    });
}

unsafe extern "C" fn set_tensor(
    buffer: *mut Buffer,
    tensor: *mut Tensor,
    data: *const c_void,
    offset: usize,
    len: usize,
) {
    guard("set_tensor", (), || {
        // SAFETY: see `written`; the caller's bytes may overlap the tensor's own.
        unsafe { std::ptr::copy(data.cast(), written(buffer, tensor, offset, len), len) }
    });
}

unsafe extern "C" fn get_tensor(
    _: *mut Buffer,
    tensor: *const Tensor,
    data: *mut c_void,
    offset: usize,
    len: usize,
) {
    // SAFETY: ggml passes a live tensor and has checked the range.
    unsafe { std::ptr::copy((*tensor).data.cast::<u8>().add(offset), data.cast(), len) }
}

unsafe extern "C" fn clear(buffer: *mut Buffer, value: u8) {
    guard("clear", (), || {
        // SAFETY: see `context`; the buffer is of this size.
        unsafe {
            let dma = context(buffer);
            dma.forget(0..usize::MAX);
            std::ptr::write_bytes(dma.start().as_ptr(), value, (*buffer).size);
        }
    });
}
