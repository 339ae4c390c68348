//! The functions of ggml that the backend calls, as one table of pointers.
//!
//! ggml is in the process before the backend is: linked in statically, or loaded by whoever loads
//! the backend. Whoever registers the backend fills the table, so this module needs no ggml to link.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::abi::{
    Buffer, BufferInterface, BufferType, Graph, Tensor, TypeTraits, VERSIONS, Version,
};

/// ggml's functions; each is the one named `ggml_` and then the field (`backend_` in between where
/// it says so).
#[derive(Clone, Copy)]
pub struct Api {
    pub version: unsafe extern "C" fn() -> *const c_char,
    pub op_name: unsafe extern "C" fn(u32) -> *const c_char,
    pub get_type_traits: unsafe extern "C" fn(u32) -> *const TypeTraits,
    pub nbytes: unsafe extern "C" fn(*const Tensor) -> usize,
    pub graph_n_nodes: unsafe extern "C" fn(*mut Graph) -> c_int,
    pub graph_node: unsafe extern "C" fn(*mut Graph, c_int) -> *mut Tensor,
    /// `ggml_backend_buffer_init`
    pub buffer_init:
        unsafe extern "C" fn(*mut BufferType, BufferInterface, *mut c_void, usize) -> *mut Buffer,
    /// `ggml_backend_buft_is_host`
    pub buft_is_host: unsafe extern "C" fn(*mut BufferType) -> bool,
}

/// Why the backend cannot serve this ggml.
#[derive(Debug, thiserror::Error)]
pub enum GgmlError {
    #[error("ggml {version} is not known to this backend, which knows {}", known())]
    UnknownVersion { version: String },
    #[error("ggml {version} has no operation named {name}")]
    MissingOp { version: String, name: &'static str },
}

fn known() -> String {
    let versions: Vec<String> = VERSIONS.iter().map(|v| format!("{}x", v.ggml)).collect();
    versions.join(" and ")
}

/// What a node asks of the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Nothing: another view of data that is there.
    View,
    MulMat,
    MulMatId,
    GetRows,
}

/// ggml's numbers of the operations. They move between versions, the names do not.
#[derive(Debug)]
pub struct Ops(Vec<(u32, Op)>);

const OP_NAMES: [(&str, Op); 8] = [
    ("NONE", Op::View),
    ("RESHAPE", Op::View),
    ("VIEW", Op::View),
    ("PERMUTE", Op::View),
    ("TRANSPOSE", Op::View),
    ("MUL_MAT", Op::MulMat),
    ("MUL_MAT_ID", Op::MulMatId),
    ("GET_ROWS", Op::GetRows),
];

/// Operations below this number exist in every known version, and those looked for are among them.
const OPS_SEARCHED: u32 = 64;

impl Api {
    /// Finds out which version of the interface this ggml has, and its operations by name.
    ///
    /// # Errors
    /// [`GgmlError`] if ggml is not one of the known versions, or lacks an operation.
    pub fn check(&self) -> Result<(&'static Version, Ops), GgmlError> {
        // SAFETY: the table's pointers are ggml's functions; they return static strings.
        let text = |p: *const c_char| unsafe { CStr::from_ptr(p).to_string_lossy().into_owned() };
        let version = text(unsafe { (self.version)() });
        let Some(&abi) = VERSIONS.iter().find(|v| version.starts_with(v.ggml)) else {
            return Err(GgmlError::UnknownVersion { version });
        };
        let names: Vec<String> = (0..OPS_SEARCHED)
            .map(|n| text(unsafe { (self.op_name)(n) }))
            .collect();
        let found = OP_NAMES.iter().map(|&(name, op)| {
            let at = names.iter().position(|n| n == name);
            at.map(|n| (n as u32, op)).ok_or(GgmlError::MissingOp {
                version: version.clone(),
                name,
            })
        });
        Ok((abi, Ops(found.collect::<Result<_, _>>()?)))
    }
}

impl Ops {
    /// The operation with ggml's number `n`, if the backend knows it.
    pub fn get(&self, n: u32) -> Option<Op> {
        self.0.iter().find(|o| o.0 == n).map(|o| o.1)
    }
}
