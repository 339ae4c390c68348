//! What ggml passes across its backend interface: the structs of `ggml-backend-impl.h` and the
//! tensor of `ggml.h`.
//!
//! Members keep ggml's names, so that the layout can be held against the header by a compiler
//! (`tests/ggml_layout.rs`). Members that this backend leaves empty have the type [`Unused`].
//! What the versions of the interface have in common is here; a file by itself holds what a version
//! has of its own and says which ggml it is of ([`Version`]).

pub mod v2;
pub mod v3;

use std::ffi::{c_char, c_int, c_void};

/// A version of the interface.
#[derive(Debug)]
pub struct Version {
    /// `GGML_BACKEND_API_VERSION`.
    pub api_version: c_int,
    /// What `ggml_version()` of a ggml with this layout begins with. Layouts have changed without
    /// a new API version, so it is ggml's version that counts.
    pub ggml: &'static str,
    /// Makes a buffer type with these functions, of a device, with a context; it is never freed.
    pub buffer_type: fn(BufferTypeFunctions, *mut Device, *mut c_void) -> *mut BufferType,
    /// The functions for this version's buffer type.
    pub buffer_type_functions: fn() -> BufferTypeFunctions,
}

/// The versions that the backend knows.
pub const VERSIONS: [&Version; 2] = [&v2::VERSION, &v3::VERSION];

/// Dimensions of a tensor.
pub const MAX_DIMS: usize = 4;
/// Sources of an operation.
pub const MAX_SRC: usize = 10;
/// Bytes of an operation's parameters.
pub const MAX_OP_PARAMS: usize = 64;
/// Bytes of a tensor's name, with the final NUL.
pub const MAX_NAME: usize = 64;

/// `enum ggml_type`: numbers that GGUF files hold as well.
pub const TYPE_F32: u32 = 0;
pub const TYPE_I32: u32 = 26;

/// `enum ggml_status`.
pub const STATUS_FAILED: c_int = -1;
pub const STATUS_SUCCESS: c_int = 0;

/// `enum ggml_backend_dev_type`: an accelerator used together with the CPU backend.
pub const DEVICE_TYPE_ACCEL: u32 = 3;
/// `enum ggml_backend_buffer_usage`: the buffer holds weights, which do not change any more.
pub const BUFFER_USAGE_WEIGHTS: u32 = 1;
/// `enum ggml_tensor_flag`: the node's result is wanted.
pub const TENSOR_FLAG_COMPUTE: i32 = 16;

/// A function pointer that stays NULL: an optional one that is not offered.
pub type Unused = Option<unsafe extern "C" fn()>;

/// `struct ggml_cgraph`, seen only through ggml's functions.
#[repr(C)]
pub struct Graph {
    _opaque: [u8; 0],
}

/// `struct ggml_tensor`.
#[repr(C)]
pub struct Tensor {
    pub type_: u32,
    pub buffer: *mut Buffer,
    /// Elements in each dimension.
    pub ne: [i64; MAX_DIMS],
    /// Bytes from one element (of a quantised type: one block) to the next in each dimension.
    pub nb: [usize; MAX_DIMS],
    pub op: u32,
    pub op_params: [i32; MAX_OP_PARAMS / 4],
    pub flags: i32,
    pub src: [*mut Tensor; MAX_SRC],
    pub view_src: *mut Tensor,
    pub view_offs: usize,
    pub data: *mut c_void,
    pub name: [c_char; MAX_NAME],
    pub extra: *mut c_void,
    pub padding: [c_char; 8],
}

/// `struct ggml_backend_buffer_type`, whose layout is its version's.
#[repr(C)]
pub struct BufferType {
    _opaque: [u8; 0],
}

/// The functions of a buffer type that the backend offers, in any version.
pub struct BufferTypeFunctions {
    pub get_name: unsafe extern "C" fn(*mut BufferType) -> *const c_char,
    pub alloc_buffer: unsafe extern "C" fn(*mut BufferType, usize) -> *mut Buffer,
    pub get_alignment: unsafe extern "C" fn(*mut BufferType) -> usize,
    pub get_alloc_size: unsafe extern "C" fn(*mut BufferType, *const Tensor) -> usize,
    pub is_host: unsafe extern "C" fn(*mut BufferType) -> bool,
}

/// A version's layout of the buffer type.
pub trait BufferTypeLayout {
    fn context(&self) -> *mut c_void;
}

/// `struct ggml_backend_buffer_i`.
#[repr(C)]
pub struct BufferInterface {
    pub free_buffer: Option<unsafe extern "C" fn(*mut Buffer)>,
    pub get_base: Option<unsafe extern "C" fn(*mut Buffer) -> *mut c_void>,
    pub init_tensor: Option<unsafe extern "C" fn(*mut Buffer, *mut Tensor) -> c_int>,
    pub memset_tensor: Option<unsafe extern "C" fn(*mut Buffer, *mut Tensor, u8, usize, usize)>,
    pub set_tensor:
        Option<unsafe extern "C" fn(*mut Buffer, *mut Tensor, *const c_void, usize, usize)>,
    pub get_tensor:
        Option<unsafe extern "C" fn(*mut Buffer, *const Tensor, *mut c_void, usize, usize)>,
    pub set_tensor_2d: Unused,
    pub get_tensor_2d: Unused,
    pub cpy_tensor: Unused,
    pub clear: Option<unsafe extern "C" fn(*mut Buffer, u8)>,
    pub reset: Unused,
}

/// `struct ggml_backend_buffer`.
#[repr(C)]
pub struct Buffer {
    pub iface: BufferInterface,
    pub buft: *mut BufferType,
    pub context: *mut c_void,
    pub size: usize,
    pub usage: u32,
}

/// `struct ggml_backend_i`.
#[repr(C)]
pub struct BackendInterface {
    pub get_name: Option<unsafe extern "C" fn(*mut Backend) -> *const c_char>,
    pub free: Option<unsafe extern "C" fn(*mut Backend)>,
    pub set_tensor_async: Unused,
    pub get_tensor_async: Unused,
    pub set_tensor_2d_async: Unused,
    pub get_tensor_2d_async: Unused,
    pub cpy_tensor_async: Unused,
    pub synchronize: Unused,
    pub graph_plan_create: Unused,
    pub graph_plan_free: Unused,
    pub graph_plan_update: Unused,
    pub graph_plan_compute: Unused,
    pub graph_compute: Option<unsafe extern "C" fn(*mut Backend, *mut Graph) -> c_int>,
    pub event_record: Unused,
    pub event_wait: Unused,
    pub graph_optimize: Unused,
}

/// `struct ggml_backend`.
#[repr(C)]
pub struct Backend {
    pub guid: *const [u8; 16],
    pub iface: BackendInterface,
    pub device: *mut Device,
    pub context: *mut c_void,
}

/// `struct ggml_backend_dev_caps`.
#[repr(C)]
#[derive(Default)]
pub struct DeviceCaps {
    pub async_: bool,
    pub host_buffer: bool,
    pub buffer_from_host_ptr: bool,
    pub events: bool,
    pub mmap_support: bool,
}

/// `struct ggml_backend_dev_props`.
#[repr(C)]
pub struct DeviceProps {
    pub name: *const c_char,
    pub description: *const c_char,
    pub memory_free: usize,
    pub memory_total: usize,
    pub type_: u32,
    pub device_id: *const c_char,
    pub caps: DeviceCaps,
}

/// `struct ggml_backend_device_i`.
#[repr(C)]
pub struct DeviceInterface {
    pub get_name: Option<unsafe extern "C" fn(*mut Device) -> *const c_char>,
    pub get_description: Option<unsafe extern "C" fn(*mut Device) -> *const c_char>,
    pub get_memory: Option<unsafe extern "C" fn(*mut Device, *mut usize, *mut usize)>,
    pub get_type: Option<unsafe extern "C" fn(*mut Device) -> u32>,
    pub get_props: Option<unsafe extern "C" fn(*mut Device, *mut DeviceProps)>,
    pub init_backend: Option<unsafe extern "C" fn(*mut Device, *const c_char) -> *mut Backend>,
    pub get_buffer_type: Option<unsafe extern "C" fn(*mut Device) -> *mut BufferType>,
    pub get_host_buffer_type: Unused,
    pub buffer_from_host_ptr: Unused,
    pub supports_op: Option<unsafe extern "C" fn(*mut Device, *const Tensor) -> bool>,
    pub supports_buft: Option<unsafe extern "C" fn(*mut Device, *mut BufferType) -> bool>,
    pub offload_op: Unused,
    pub event_new: Unused,
    pub event_free: Unused,
    pub event_synchronize: Unused,
}

/// `struct ggml_backend_device`.
#[repr(C)]
pub struct Device {
    pub iface: DeviceInterface,
    pub reg: *mut Reg,
    pub context: *mut c_void,
}

/// `struct ggml_backend_reg_i`.
#[repr(C)]
pub struct RegInterface {
    pub get_name: Option<unsafe extern "C" fn(*mut Reg) -> *const c_char>,
    pub get_device_count: Option<unsafe extern "C" fn(*mut Reg) -> usize>,
    pub get_device: Option<unsafe extern "C" fn(*mut Reg, usize) -> *mut Device>,
    pub get_proc_address: Unused,
}

/// `struct ggml_backend_reg`.
#[repr(C)]
pub struct Reg {
    pub api_version: c_int,
    pub iface: RegInterface,
    pub context: *mut c_void,
}

/// The start of `struct ggml_type_traits`, seen through a pointer.
#[repr(C)]
pub struct TypeTraits {
    pub type_name: *const c_char,
    pub blck_size: i64,
    pub blck_size_interleave: i64,
    pub type_size: usize,
    pub is_quantized: bool,
    /// Dequantises values (the third argument, whole blocks) from the first to the second.
    pub to_float: Option<unsafe extern "C" fn(*const c_void, *mut f32, i64)>,
}
