//! Small ggml graphs on the backend under test and on ggml's own CPU backend.
#![allow(dead_code)] // Each test file uses its part.

use std::ptr::null_mut;

use llama_cpp_sys_2 as sys;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weightstream::dma::Coherence;
use weightstream::driver::Accelerator;
use weightstream::ggml::Registration;
use weightstream::llama::register;
use weightstream::quant::WeightType;
use weightstream::target::{TargetOptions, TargetSpec, open};

pub type Tensor = *mut sys::ggml_tensor;

/// A ggml backend, freed in the end.
pub struct Backend(pub sys::ggml_backend_t);

impl Drop for Backend {
    fn drop(&mut self) {
        unsafe { sys::ggml_backend_free(self.0) };
    }
}

/// Strict, so that a forgotten sync shows.
pub fn strict() -> TargetOptions {
    TargetOptions {
        coherence: Coherence::Strict,
        heap_bytes: 64 << 20,
        threads: 1,
        ..TargetOptions::default()
    }
}

/// The behavioural model behind a backend of its own, and a ggml backend on it.
pub fn device(name: &str, options: &TargetOptions) -> (Registration, Backend) {
    let target = open(&TargetSpec::Model, options).unwrap();
    let registration = register(name, Accelerator::new(target).unwrap()).unwrap();
    let backend =
        unsafe { sys::ggml_backend_dev_init(registration.device().cast(), std::ptr::null()) };
    (registration, Backend(backend))
}

pub fn cpu() -> Backend {
    let backend = unsafe { sys::ggml_backend_cpu_init() };
    // The graphs are small, and the tests side by side already.
    unsafe { sys::ggml_backend_cpu_set_n_threads(backend, 1) };
    Backend(backend)
}

/// The weight types of the device's kernel.
pub fn types(registration: Registration) -> impl Iterator<Item = WeightType> {
    let mask = registration.capabilities().types;
    WeightType::all().filter(move |t| mask & t.mask() != 0)
}

/// A graph in the making, with the data of its leaves.
pub struct Builder {
    pub ctx: *mut sys::ggml_context,
    data: Vec<(Tensor, Vec<u8>)>,
    rng: SmallRng,
}

impl Builder {
    pub fn new(seed: u64) -> Builder {
        let params = sys::ggml_init_params {
            mem_size: 4 << 20,
            mem_buffer: null_mut(),
            no_alloc: true,
        };
        Builder {
            ctx: unsafe { sys::ggml_init(params) },
            data: Vec::new(),
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    fn values(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.rng.random_range(-1.0..1.0)).collect()
    }

    /// A leaf of ggml's type `ty` with these bytes.
    pub fn leaf(&mut self, ty: u32, ne: [i64; 4], bytes: Vec<u8>) -> Tensor {
        let tensor = unsafe { sys::ggml_new_tensor_4d(self.ctx, ty, ne[0], ne[1], ne[2], ne[3]) };
        self.data.push((tensor, bytes));
        tensor
    }

    /// Random values, quantised to `ty` by ggml.
    pub fn weights(&mut self, ty: WeightType, ne: [i64; 4]) -> Tensor {
        let (k, rows) = (ne[0], ne[1] * ne[2] * ne[3]);
        let values = self.values((k * rows) as usize);
        let mut bytes = vec![0; ty.row_bytes(k as usize).unwrap() * rows as usize];
        let (from, to) = (values.as_ptr(), bytes.as_mut_ptr().cast());
        let done =
            unsafe { sys::ggml_quantize_chunk(ty.ggml(), from, to, 0, rows, k, std::ptr::null()) };
        assert_eq!(done, bytes.len());
        self.leaf(ty.ggml(), ne, bytes)
    }

    /// Random f32.
    pub fn floats(&mut self, ne: [i64; 4]) -> Tensor {
        let values = self.values(ne.iter().product::<i64>() as usize);
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.leaf(sys::GGML_TYPE_F32, ne, bytes)
    }

    pub fn ints(&mut self, ne: [i64; 4], values: &[i32]) -> Tensor {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.leaf(sys::GGML_TYPE_I32, ne, bytes)
    }

    /// Random choices of `used` different ones of `experts` for each token.
    pub fn choices(&mut self, experts: i32, used: i64, tokens: i64) -> Tensor {
        let mut ids = Vec::new();
        for _ in 0..tokens {
            let mut left: Vec<i32> = (0..experts).collect();
            for _ in 0..used {
                ids.push(left.swap_remove(self.rng.random_range(0..left.len())));
            }
        }
        self.ints([used, tokens, 1, 1], &ids)
    }

    /// Allocates what is there so far in the backend's memory and fills the leaves.
    pub fn alloc(&mut self, backend: &Backend) -> sys::ggml_backend_buffer_t {
        unsafe {
            let buffer = sys::ggml_backend_alloc_ctx_tensors(self.ctx, backend.0);
            assert!(!buffer.is_null());
            self.fill();
            buffer
        }
    }

    /// Fills the leaves, which are allocated.
    pub fn fill(&mut self) {
        for (tensor, bytes) in self.data.drain(..) {
            unsafe {
                assert_eq!(sys::ggml_nbytes(tensor), bytes.len());
                sys::ggml_backend_tensor_set(tensor, bytes.as_ptr().cast(), 0, bytes.len());
            }
        }
    }

    pub fn mul_mat(&mut self, weights: Tensor, x: Tensor) -> Tensor {
        unsafe { sys::ggml_mul_mat(self.ctx, weights, x) }
    }

    pub fn mul_mat_id(&mut self, weights: Tensor, x: Tensor, ids: Tensor) -> Tensor {
        unsafe { sys::ggml_mul_mat_id(self.ctx, weights, x, ids) }
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        unsafe { sys::ggml_free(self.ctx) };
    }
}

/// Builds a graph with `build`, which returns the nodes that are wanted, allocates it in the
/// backend's memory and computes it.
///
/// # Errors
/// The status, if it is not success.
pub fn compute(
    backend: &Backend,
    seed: u64,
    build: impl Fn(&mut Builder) -> Vec<Tensor>,
) -> Result<Vec<Vec<f32>>, i32> {
    let mut builder = Builder::new(seed);
    let outputs = build(&mut builder);
    unsafe {
        let graph = sys::ggml_new_graph(builder.ctx);
        for &output in &outputs {
            sys::ggml_build_forward_expand(graph, output);
        }
        let buffer = builder.alloc(backend);
        let status = sys::ggml_backend_graph_compute(backend.0, graph);
        let results = outputs.iter().map(|&t| floats_of(t)).collect();
        sys::ggml_backend_buffer_free(buffer);
        match status {
            sys::GGML_STATUS_SUCCESS => Ok(results),
            status => Err(status),
        }
    }
}

/// The contents of a contiguous f32 tensor.
pub fn floats_of(tensor: Tensor) -> Vec<f32> {
    unsafe {
        let mut values = vec![0f32; sys::ggml_nelements(tensor) as usize];
        let (to, len) = (values.as_mut_ptr().cast(), sys::ggml_nbytes(tensor));
        sys::ggml_backend_tensor_get(tensor, to, 0, len);
        values
    }
}

/// Mean squared error, normalised by the expected values' mean square; a value that is not finite
/// on one side alone makes it infinite.
pub fn nmse(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let square = |x: f64| x * x;
    let error: f64 = found
        .iter()
        .zip(expected)
        .map(|(a, b)| square(f64::from(*a) - f64::from(*b)))
        .sum();
    let power: f64 = expected.iter().map(|b| square(f64::from(*b))).sum();
    match (error / power).is_nan() {
        true => f64::INFINITY,
        false => error / power,
    }
}
