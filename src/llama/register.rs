//! The backend in this process: ggml's functions as linked, and registration.

use std::ffi::c_void;

use llama_cpp_sys_2 as sys;

use super::{LlamaError, quiet};
use crate::driver::Accelerator;
use crate::ggml::abi::{Buffer, BufferInterface, BufferType};
use crate::ggml::{Api, Registration};

unsafe extern "C" {
    // Of ggml-backend-impl.h, which the crate's bindings leave out; the library is the same.
    fn ggml_backend_buffer_init(
        buft: *mut BufferType,
        iface: BufferInterface,
        context: *mut c_void,
        size: usize,
    ) -> *mut Buffer;
}

/// ggml as it is linked into this process.
fn api() -> Api {
    /// The same function with this crate's types for the bindings' structs.
    macro_rules! cast {
        ($function:expr, fn($($arg:ty),*) -> $result:ty) => {
            // SAFETY: the same C signature, with pointers to the same structs under other names.
            unsafe {
                std::mem::transmute::<*const (), unsafe extern "C" fn($($arg),*) -> $result>(
                    $function as *const (),
                )
            }
        };
    }
    Api {
        version: sys::ggml_version,
        op_name: sys::ggml_op_name,
        get_type_traits: cast!(sys::ggml_get_type_traits, fn(u32) -> *const _),
        nbytes: cast!(sys::ggml_nbytes, fn(*const _) -> usize),
        graph_n_nodes: cast!(sys::ggml_graph_n_nodes, fn(*mut _) -> _),
        graph_node: cast!(sys::ggml_graph_node, fn(*mut _, i32) -> *mut _),
        buffer_init: ggml_backend_buffer_init,
        buft_is_host: cast!(sys::ggml_backend_buft_is_host, fn(*mut _) -> bool),
    }
}

/// Registers a backend named `name` on `accelerator`, so that models loaded from now on use it.
///
/// # Errors
/// [`LlamaError::Ggml`] if the linked ggml is not one that the backend knows.
pub fn register(name: &str, accelerator: Accelerator) -> Result<Registration, LlamaError> {
    quiet();
    let registration = Registration::new(api(), name, accelerator)?;
    // SAFETY: the structs live as long as the process and are laid out as this ggml's.
    unsafe { sys::ggml_backend_register(registration.reg().cast()) };
    Ok(registration)
}
