//! API version 2, as in ggml 0.25.x: the current llama-cpp-python's.

use std::ffi::{c_char, c_void};

use super::{BufferTypeFunctions, BufferTypeLayout, Device, Unused, Version};
use crate::ggml::buffer;

pub const VERSION: Version = Version {
    api_version: 2,
    ggml: "0.25.",
    buffer_type,
    buffer_type_functions: buffer::functions::<BufferType>,
};

/// `struct ggml_backend_buffer_type_i`.
#[repr(C)]
pub struct BufferTypeInterface {
    pub get_name: Option<unsafe extern "C" fn(*mut super::BufferType) -> *const c_char>,
    pub alloc_buffer:
        Option<unsafe extern "C" fn(*mut super::BufferType, usize) -> *mut super::Buffer>,
    pub get_alignment: Option<unsafe extern "C" fn(*mut super::BufferType) -> usize>,
    pub get_max_size: Unused,
    pub get_alloc_size:
        Option<unsafe extern "C" fn(*mut super::BufferType, *const super::Tensor) -> usize>,
    pub is_host: Option<unsafe extern "C" fn(*mut super::BufferType) -> bool>,
}

/// `struct ggml_backend_buffer_type`.
#[repr(C)]
pub struct BufferType {
    pub iface: BufferTypeInterface,
    pub device: *mut Device,
    pub context: *mut c_void,
}

impl BufferTypeLayout for BufferType {
    fn context(&self) -> *mut c_void {
        self.context
    }
}

fn buffer_type(
    functions: BufferTypeFunctions,
    device: *mut Device,
    context: *mut c_void,
) -> *mut super::BufferType {
    let iface = BufferTypeInterface {
        get_name: Some(functions.get_name),
        alloc_buffer: Some(functions.alloc_buffer),
        get_alignment: Some(functions.get_alignment),
        get_max_size: None,
        get_alloc_size: Some(functions.get_alloc_size),
        is_host: Some(functions.is_host),
    };
    let buffer_type = BufferType {
        iface,
        device,
        context,
    };
    Box::into_raw(Box::new(buffer_type)).cast()
}
