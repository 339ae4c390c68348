//! The activations of a forward pass.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};

use llama_cpp_sys_2 as sys;

/// Collects the columns that chosen weights are multiplied with, through the callback that
/// llama.cpp's scheduler offers for each node of the graph. It does not matter which backend
/// computes them.
pub struct Capture {
    columns: HashMap<String, Vec<Vec<f32>>>,
}

impl Capture {
    /// For the weights of these names.
    pub fn of(weights: impl IntoIterator<Item = String>) -> Capture {
        let columns = weights.into_iter().map(|name| (name, Vec::new()));
        Capture {
            columns: columns.collect(),
        }
    }

    /// The columns that the weights `name` were multiplied with so far, in the order of the
    /// tokens; none if they were in no product.
    pub fn columns(&self, name: &str) -> &[Vec<f32>] {
        self.columns.get(name).map_or(&[], Vec::as_slice)
    }

    /// The columns of the weights in `node`, if it is a product of weights that are wanted.
    ///
    /// # Safety
    /// `node` is a live tensor.
    unsafe fn wanted(&mut self, node: *const sys::ggml_tensor) -> Option<&mut Vec<Vec<f32>>> {
        // SAFETY: a node of a product has two sources.
        let (node, weights) = unsafe { (&*node, (*node).src[0].as_ref()?) };
        if node.op != sys::GGML_OP_MUL_MAT {
            return None;
        }
        // SAFETY: ggml ends names with NUL.
        let name = unsafe { CStr::from_ptr(weights.name.as_ptr()) };
        self.columns.get_mut(name.to_str().ok()?)
    }

    /// Takes in the columns of a product that has been computed.
    ///
    /// # Safety
    /// `node` is a live tensor with data.
    unsafe fn take(&mut self, node: *const sys::ggml_tensor) {
        // SAFETY: as this function's contract; a product has activations as its second source.
        let (Some(columns), x) = (unsafe { self.wanted(node) }, unsafe { (*node).src[1] }) else {
            return;
        };
        // SAFETY: the source of a live node lives as long.
        let Some(x_ref) = (unsafe { x.as_ref() }) else {
            return;
        };
        let [k, n1, n2, n3] = x_ref.ne.map(|n| n as usize);
        if x_ref.type_ != sys::GGML_TYPE_F32 || x_ref.nb[0] != 4 {
            return;
        }
        for i in 0..n1 * n2 * n3 {
            let at = [i % n1, i / n1 % n2, i / n1 / n2];
            let offset: usize = (0..3).map(|d| at[d] * x_ref.nb[d + 1]).sum();
            let mut column = vec![0f32; k];
            // SAFETY: the column lies within the tensor, and there is room for it.
            unsafe {
                sys::ggml_backend_tensor_get(x, column.as_mut_ptr().cast(), offset, 4 * k);
            }
            columns.push(column);
        }
    }
}

/// Called for each node before it is computed (`ask`: is it wanted?) and, if so, after.
pub(super) unsafe extern "C" fn on_node(
    node: *mut sys::ggml_tensor,
    ask: bool,
    user_data: *mut c_void,
) -> bool {
    // SAFETY: `Context` passes the capture that it borrows; the node is the scheduler's.
    unsafe {
        let capture = &mut *user_data.cast::<Capture>();
        match ask {
            true => capture.wanted(node).is_some(),
            false => {
                capture.take(node);
                true
            }
        }
    }
}
