//! What a node asks: whether the kernel can do it, and its columns and rows as addresses.

use std::ffi::CStr;
use std::ops::Range;

use super::abi::{BUFFER_USAGE_WEIGHTS, Buffer, TYPE_F32, TYPE_I32, Tensor};
use super::api::Op;
use super::buffer::DmaBuffer;
use super::{LeftToCpu, Shared, lock};
use crate::quant::WeightType;
use crate::regs::job::MAX_ROWS;

/// A product of one weight matrix: the rows' first byte, and for each column where its
/// activations are and where its results go (CPU addresses).
pub struct Product {
    pub weights: usize,
    pub inputs: Vec<*const f32>,
    pub outputs: Vec<*mut f32>,
}

impl Tensor {
    /// The tensor's name, for messages.
    pub fn name(&self) -> String {
        // SAFETY: ggml ends names with NUL.
        unsafe { CStr::from_ptr(self.name.as_ptr()) }
            .to_string_lossy()
            .into_owned()
    }

    /// Whether ggml has nothing to compute here.
    pub fn is_empty(&self) -> bool {
        self.ne.contains(&0)
    }

    /// Bytes from the first to behind the last element, of blocks as [`WeightType`] says or of 4
    /// bytes an element.
    fn span(&self) -> usize {
        let row = match WeightType::from_ggml(self.type_) {
            Some(ty) => (self.ne[0] as usize).div_ceil(ty.block_len()) * ty.block_bytes(),
            None => (self.ne[0] as usize - 1) * self.nb[0] + 4,
        };
        (1..self.ne.len()).fold(row, |bytes, d| {
            bytes + (self.ne[d] as usize - 1) * self.nb[d]
        })
    }

    /// The addresses of the tensor's elements.
    pub fn range(&self) -> Range<usize> {
        let start = self.data as usize;
        start..start + self.span()
    }

    /// The `n`th source.
    pub fn source(&self, n: usize) -> Result<&Tensor, String> {
        // SAFETY: a source is NULL or a tensor that lives as long as its graph.
        unsafe { self.src[n].as_ref() }.ok_or_else(|| format!("no source {n}"))
    }

    /// The tensor whose memory this one looks at.
    fn root(&self) -> &Tensor {
        // SAFETY: as in `source`.
        unsafe { self.view_src.as_ref() }.unwrap_or(self)
    }

    /// The buffer this tensor lies in, NULL before it is allocated.
    pub fn buffer(&self) -> *mut Buffer {
        match self.buffer.is_null() {
            true => self.root().buffer,
            false => self.buffer,
        }
    }

    fn address(&self, at: [usize; 4]) -> usize {
        self.data as usize + (0..4).map(|d| at[d] * self.nb[d]).sum::<usize>()
    }
}

impl Shared {
    /// Whether `op` is computed here.
    pub fn supports(&self, op: &Tensor) -> bool {
        match self.ops.get(op.op) {
            Some(Op::View) => true,
            Some(Op::MulMat) => self.takes_weights(op, check_mul_mat(op)),
            Some(Op::MulMatId) => self.takes_weights(op, check_mul_mat_id(op)),
            Some(Op::GetRows) => {
                self.gather() && check_get_rows(op).is_ok_and(|w| self.place(w).is_ok())
            }
            None => false,
        }
    }

    /// The verdict on a product, given the verdict on its shapes. A weight that is refused is
    /// noted with the reason.
    fn takes_weights(&self, op: &Tensor, shapes: Result<&Tensor, String>) -> bool {
        let verdict = shapes.and_then(|weights| {
            let ty = weight_type(weights)?;
            let k = weights.ne[0] as usize;
            if !self.capabilities.supports(ty, k) {
                return Err(match self.capabilities.types & ty.mask() {
                    0 => "this kernel is built without its type".to_owned(),
                    _ => format!("k {k} is beyond the kernel's {}", self.capabilities.max_k),
                });
            }
            self.place(weights)
        });
        match verdict {
            Ok(ours) => ours,
            Err(reason) => {
                if let Ok(weights) = op.source(0) {
                    self.note_refused(weights, reason);
                }
                false
            }
        }
    }

    /// Whether a weight lies in DMA memory, or may come to: it has no memory yet, and nothing
    /// computes it. An error if it is being loaded and does not go there.
    fn place(&self, weights: &Tensor) -> Result<bool, String> {
        let buffer = weights.buffer();
        if buffer.is_null() {
            return Ok(self.ops.get(weights.root().op) == Some(Op::View));
        }
        if self.is_being_loaded(weights) {
            let bytes = weights.range().len() as u64;
            let mut placement = lock(&self.placement);
            let placed = placement.ask(&weights.name(), bytes, self.heap.free());
            return placed.map(|()| true);
        }
        // SAFETY: a tensor's buffer lives as long as the tensor.
        Ok(unsafe { DmaBuffer::of(self, buffer) }.is_some_and(|(buffer, _)| buffer.is_dma()))
    }

    /// Whether this is llama.cpp's question while loading, with an empty buffer of ours in place of
    /// the weight's. Later it asks about weights where they lie.
    fn is_being_loaded(&self, weights: &Tensor) -> bool {
        // SAFETY: as in `place`.
        let buffer = unsafe { weights.buffer().as_ref() };
        buffer.is_some_and(|b| b.buft == self.buffer_type() && b.size == 0) && !weights.is_empty()
    }

    /// Notes a refused weight if it is one.
    fn note_refused(&self, weights: &Tensor, reason: String) {
        // SAFETY: as in `place`.
        let buffer = unsafe { weights.buffer().as_ref() };
        let is_weight = self.is_being_loaded(weights)
            || buffer.is_some_and(|b| b.usage == BUFFER_USAGE_WEIGHTS) && !weights.is_empty();
        if is_weight {
            let left = self.left_to_cpu(weights, reason);
            lock(&self.left_to_cpu).insert(weights.name(), left);
        }
    }

    /// A contiguous tensor of any type as it is counted.
    fn left_to_cpu(&self, tensor: &Tensor, reason: String) -> LeftToCpu {
        // SAFETY: ggml has traits for each type that a tensor can have, with a static name.
        let (traits, name) = unsafe {
            let traits = &*(self.api.get_type_traits)(tensor.type_);
            (traits, CStr::from_ptr(traits.type_name))
        };
        let elements: i64 = tensor.ne.iter().product();
        LeftToCpu {
            type_name: name.to_string_lossy().into_owned(),
            bytes: elements as u64 / traits.blck_size.max(1) as u64 * traits.type_size as u64,
            reason,
        }
    }

    /// Computes GET_ROWS: dequantises the rows that `op` names, on the CPU.
    ///
    /// # Safety
    /// The tensors are allocated in memory of the CPU.
    pub unsafe fn get_rows(&self, op: &Tensor) -> Result<(), String> {
        let weights = check_get_rows(op)?;
        let ids = op.source(1)?;
        // SAFETY: as in `left_to_cpu`.
        let to_float = unsafe { &*(self.api.get_type_traits)(weights.type_) }
            .to_float
            .ok_or("ggml cannot dequantise this type")?;
        for i in indices(ids) {
            // SAFETY: an element of an allocated I32 tensor.
            let id = unsafe { *(ids.address(i) as *const i32) };
            let row = row_index(id, weights.ne[1])?;
            let from = weights.address([0, row, i[1], i[2]]);
            let to = op.address([0, i[0], i[1], i[2]]);
            // SAFETY: a whole row of the weights, and one as long of the result.
            unsafe { to_float(from as _, to as _, weights.ne[0]) };
        }
        Ok(())
    }
}

/// The positions of a tensor's elements.
fn indices(t: &Tensor) -> impl Iterator<Item = [usize; 4]> {
    let [n0, n1, n2, n3] = t.ne.map(|n| n as usize);
    (0..n0 * n1 * n2 * n3).map(move |i| [i % n0, i / n0 % n1, i / n0 / n1 % n2, i / n0 / n1 / n2])
}

fn row_index(id: i32, rows: i64) -> Result<usize, String> {
    match (0..rows).contains(&i64::from(id)) {
        true => Ok(id as usize),
        false => Err(format!("index {id} is not one of 0 to {}", rows - 1)),
    }
}

/// The weight type of a tensor whose rows are whole blocks without gaps.
fn weight_type(weights: &Tensor) -> Result<WeightType, String> {
    let ty = WeightType::from_ggml(weights.type_).ok_or("its type is not one of the kernel's")?;
    let [k, rows, ..] = weights.ne;
    if weights.nb[0] != ty.block_bytes() || ty.row_bytes(k as usize) != Some(weights.nb[1]) {
        return Err("its rows are not whole blocks one after the other".into());
    }
    if rows > i64::from(MAX_ROWS) {
        return Err(format!("it has {rows} rows, more than {MAX_ROWS}"));
    }
    Ok(ty)
}

/// Checks that activations and results are f32, each column without gaps.
fn check_columns(op: &Tensor, x: &Tensor) -> Result<(), String> {
    for (what, t) in [("activations", x), ("results", op)] {
        if t.type_ != TYPE_F32 || t.nb[0] != 4 || t.nb.iter().any(|nb| nb % 4 != 0) {
            return Err(format!("its {what} are not columns of f32"));
        }
    }
    Ok(())
}

/// Checks a MUL_MAT's shapes (`ggml_mul_mat`: weights [k, rows, a2, a3], activations [k, cols,
/// b2, b3], where b2 and b3 are multiples of a2 and a3) and returns its weights.
fn check_mul_mat(op: &Tensor) -> Result<&Tensor, String> {
    let (w, x) = (op.source(0)?, op.source(1)?);
    check_columns(op, x)?;
    let broadcasts = |d: usize| w.ne[d] > 0 && x.ne[d] % w.ne[d] == 0 && op.ne[d] == x.ne[d];
    let fits = w.ne[0] == x.ne[0] && op.ne[0] == w.ne[1] && op.ne[1] == x.ne[1];
    match fits && broadcasts(2) && broadcasts(3) {
        true => Ok(w),
        false => Err(format!("shapes {:?} and {:?} do not match", w.ne, x.ne)),
    }
}

/// Checks a MUL_MAT_ID's shapes (`ggml_mul_mat_id`: weights [k, rows, experts], activations
/// [k, one or used, tokens], ids [used, tokens], results [rows, used, tokens]) and returns its
/// weights.
fn check_mul_mat_id(op: &Tensor) -> Result<&Tensor, String> {
    let (w, x, ids) = (op.source(0)?, op.source(1)?, op.source(2)?);
    check_columns(op, x)?;
    let [used, tokens, ..] = ids.ne;
    let fits = w.ne[0] == x.ne[0]
        && x.ne[1] > 0
        && used % x.ne[1] == 0
        && x.ne[2..] == [tokens, 1]
        && op.ne == [w.ne[1], used, tokens, 1]
        && ids.ne[2..] == [1, 1]
        && w.ne[3] == 1;
    match fits && ids.type_ == TYPE_I32 {
        true => Ok(w),
        false => Err(format!(
            "shapes {:?}, {:?} and {:?} do not match",
            w.ne, x.ne, ids.ne
        )),
    }
}

/// Checks a GET_ROWS's shapes (`ggml_get_rows`: weights [k, rows, a2, a3], ids [n, a2, a3],
/// results [k, n, a2, a3]) and returns its weights.
fn check_get_rows(op: &Tensor) -> Result<&Tensor, String> {
    let (w, ids) = (op.source(0)?, op.source(1)?);
    weight_type(w)?;
    let fits = op.ne == [w.ne[0], ids.ne[0], ids.ne[1], ids.ne[2]] && ids.ne[3] == 1;
    match fits && ids.type_ == TYPE_I32 && op.type_ == TYPE_F32 && op.nb[0] == 4 {
        true => Ok(w),
        false => Err(format!("shapes {:?} and {:?} do not match", w.ne, ids.ne)),
    }
}

/// Takes a MUL_MAT apart: one product for each matrix of the weights.
pub fn mul_mat(op: &Tensor) -> Result<Vec<Product>, String> {
    let w = check_mul_mat(op)?;
    let x = op.source(1)?;
    let [_, _, w2, w3] = w.ne.map(|n| n as usize);
    let [_, cols, x2, x3] = x.ne.map(|n| n as usize);
    let mut products = Vec::with_capacity(w2 * w3);
    for (i3, i2) in (0..w3).flat_map(|i3| (0..w2).map(move |i2| (i3, i2))) {
        let mut product = Product::new(w.address([0, 0, i2, i3]), cols * (x2 / w2) * (x3 / w3));
        for j3 in i3 * (x3 / w3)..(i3 + 1) * (x3 / w3) {
            for j2 in i2 * (x2 / w2)..(i2 + 1) * (x2 / w2) {
                for j1 in 0..cols {
                    let at = [0, j1, j2, j3];
                    product.push(x.address(at), op.address(at));
                }
            }
        }
        products.push(product);
    }
    Ok(products)
}

/// Takes a MUL_MAT_ID apart: one product for each expert that is used.
///
/// # Safety
/// The ids are allocated in memory of the CPU.
pub unsafe fn mul_mat_id(op: &Tensor) -> Result<Vec<Product>, String> {
    let w = check_mul_mat_id(op)?;
    let (x, ids) = (op.source(1)?, op.source(2)?);
    let mut experts: Vec<Product> = (0..w.ne[2] as usize)
        .map(|expert| Product::new(w.address([0, 0, expert, 0]), 0))
        .collect();
    for i @ [slot, token, ..] in indices(ids) {
        // SAFETY: an element of an allocated I32 tensor.
        let id = unsafe { *(ids.address(i) as *const i32) };
        let expert = row_index(id, w.ne[2])?;
        let from = x.address([0, slot % x.ne[1] as usize, token, 0]);
        experts[expert].push(from, op.address([0, slot, token, 0]));
    }
    experts.retain(|product| !product.inputs.is_empty());
    Ok(experts)
}

impl Product {
    fn new(weights: usize, cols: usize) -> Product {
        Product {
            weights,
            inputs: Vec::with_capacity(cols),
            outputs: Vec::with_capacity(cols),
        }
    }

    fn push(&mut self, input: usize, output: usize) {
        self.inputs.push(input as *const f32);
        self.outputs.push(output as *mut f32);
    }
}
