//! The backend's manners: what it claims, how it shares, syncs and fails.

#![cfg(feature = "llama")]

mod ggml_support;

use std::ffi::CStr;
use std::ptr::null_mut;

use ggml_support::*;
use llama_cpp_sys_2 as sys;
use weightstream::ggml::{Api, GgmlError, abi};
use weightstream::quant::{WeightType, q8_0_row_bytes};
use weightstream::regs::job::{HEADER_BYTES, PART_ALIGN};
use weightstream::target::{Fault, TargetOptions};

const TY: WeightType = WeightType::Q4_0;

fn claims(device: &Backend, op: Tensor) -> bool {
    unsafe { sys::ggml_backend_supports_op(device.0, op) }
}

#[test]
fn ggml_finds_the_device() {
    let (registration, device) = device("found", &strict());
    unsafe {
        let found = sys::ggml_backend_dev_by_name(c"found".as_ptr());
        assert_eq!(found.cast(), registration.device());
        assert_eq!(
            sys::ggml_backend_dev_type(found),
            sys::GGML_BACKEND_DEVICE_TYPE_ACCEL
        );
        let (mut free, mut total) = (0, 0);
        sys::ggml_backend_dev_memory(found, &mut free, &mut total);
        assert_eq!(total, 64 << 20);
        assert_eq!(free as u64, registration.heap().free());
        let description = CStr::from_ptr(sys::ggml_backend_dev_description(found));
        assert!(description.to_str().unwrap().contains("128-bit bus"));
        let buft = sys::ggml_backend_dev_buffer_type(found);
        assert!(sys::ggml_backend_buft_is_host(buft));
        assert!(sys::ggml_backend_supports_buft(device.0, buft));
        let cpu = sys::ggml_backend_cpu_buffer_type();
        assert!(sys::ggml_backend_supports_buft(device.0, cpu));
    }
}

#[test]
fn what_the_kernel_lacks_is_not_claimed() {
    let (registration, device) = device("claims", &strict());
    let mut b = Builder::new(0);
    let x = b.floats([256, 4, 1, 1]);
    for ty in WeightType::all() {
        let w = b.leaf(ty.ggml(), [256, 8, 1, 1], Vec::new());
        let has = registration.capabilities().types & ty.mask() != 0;
        let op = b.mul_mat(w, x);
        assert_eq!(claims(&device, op), has, "{ty}");
    }
    for ty in [
        sys::GGML_TYPE_F32,
        sys::GGML_TYPE_F16,
        sys::GGML_TYPE_IQ4_NL,
    ] {
        let w = b.leaf(ty, [256, 8, 1, 1], Vec::new());
        let op = b.mul_mat(w, x);
        assert!(!claims(&device, op), "type {ty}");
    }
    let w = b.leaf(TY.ggml(), [256, 8, 1, 1], Vec::new());
    let halves = b.leaf(sys::GGML_TYPE_F16, [256, 4, 1, 1], Vec::new());
    let op = b.mul_mat(w, halves);
    assert!(!claims(&device, op), "f16 activations");
    let longest = registration.capabilities().max_k as i64;
    for (k, fits) in [(longest, true), (longest + 32, false)] {
        let (w, x) = (
            b.leaf(TY.ggml(), [k, 1, 1, 1], Vec::new()),
            b.leaf(sys::GGML_TYPE_F32, [k, 1, 1, 1], Vec::new()),
        );
        let op = b.mul_mat(w, x);
        assert_eq!(claims(&device, op), fits, "k {k}");
    }
    let sum = unsafe { sys::ggml_add(b.ctx, x, x) };
    assert!(!claims(&device, sum));
    let id = b.ints([2, 1, 1, 1], &[0, 1]);
    let rows = unsafe { sys::ggml_get_rows(b.ctx, w, id) };
    assert!(!claims(&device, rows));
    registration.set_gather(true);
    assert!(claims(&device, rows));
}

#[test]
fn weights_left_to_the_cpu_are_counted() {
    let (registration, device) = device("left", &strict());
    let mut b = Builder::new(0);
    let w = b.leaf(sys::GGML_TYPE_F16, [256, 8, 2, 1], Vec::new());
    let (x, other) = (b.floats([256, 4, 2, 1]), b.floats([256, 4, 2, 1]));
    unsafe {
        sys::ggml_set_name(w, c"blk.0.some.weight".as_ptr());
        let buffer = sys::ggml_backend_alloc_ctx_tensors(b.ctx, cpu().0);
        let op = b.mul_mat(w, x);
        assert!(!claims(&device, op));
        assert!(registration.left_to_cpu().is_empty(), "not yet a weight");
        sys::ggml_backend_buffer_set_usage(buffer, sys::GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        for _ in 0..2 {
            assert!(!claims(&device, op));
        }
        let sum = sys::ggml_add(b.ctx, x, other);
        assert!(!claims(&device, sum));
        let left = registration.left_to_cpu();
        assert_eq!(left.keys().collect::<Vec<_>>(), ["blk.0.some.weight"]);
        assert_eq!(left["blk.0.some.weight"].bytes, 256 * 8 * 2 * 2);
        assert_eq!(left["blk.0.some.weight"].type_name, "f16");
        assert!(left["blk.0.some.weight"].reason.contains("its type"));
        sys::ggml_backend_buffer_free(buffer);
    }
}

#[test]
fn products_of_one_activation_share_it() {
    let (registration, device) = device("shared", &strict());
    let before = registration.stats();
    compute(&device, 3, |b| {
        let x = b.floats([256, 5, 1, 1]);
        [64, 32, 16]
            .map(|rows| {
                let w = b.weights(TY, [256, rows, 1, 1]);
                b.mul_mat(w, x)
            })
            .to_vec()
    })
    .unwrap();
    let after = registration.stats();
    assert_eq!(after.jobs - before.jobs, 3);
    let other =
        (after.bytes_streamed - after.weight_bytes) - (before.bytes_streamed - before.weight_bytes);
    let activations = (5 * q8_0_row_bytes(256)).next_multiple_of(PART_ALIGN);
    assert_eq!(other as usize, 3 * HEADER_BYTES + activations);
}

/// Computes W·x1, W·x2 and W·x1 again, in this order, with the result of the last at the address
/// that `overlap` picks from (x2, the result of the second). ggml does so with memory that nothing
/// reads any more. The products with the same activations are sent together, and are too large to
/// be in one chain with the other one. Returns the three results.
fn overlapping(name: &str, overlap: fn(usize, usize) -> usize) -> [Vec<f32>; 3] {
    const ROWS: i64 = 8192;
    const COLUMNS: i64 = 64;
    let (_, device) = device(name, &strict());
    unsafe {
        let mut b = Builder::new(4);
        let w = b.weights(TY, [32, ROWS, 1, 1]);
        let (x1, x2) = (b.floats([32, COLUMNS, 1, 1]), b.floats([32, COLUMNS, 1, 1]));
        let products = [x1, x2, x1].map(|x| b.mul_mat(w, x));
        let buft = sys::ggml_backend_get_default_buffer_type(device.0);
        let result_bytes = (ROWS * COLUMNS * 4) as usize;
        let buffer = sys::ggml_backend_buft_alloc_buffer(buft, 5 * result_bytes);
        let base = sys::ggml_backend_buffer_get_base(buffer) as usize;
        let place = |tensor, at: usize| {
            let status = sys::ggml_backend_tensor_alloc(buffer, tensor, at as *mut _);
            assert_eq!(status, sys::GGML_STATUS_SUCCESS);
            at
        };
        place(w, base);
        place(x1, base + result_bytes / 2);
        let first = place(products[0], base + result_bytes);
        let second = place(products[1], first + result_bytes);
        let x2 = place(x2, second + result_bytes);
        place(products[2], overlap(x2, second));
        b.fill();
        let graph = sys::ggml_new_graph(b.ctx);
        for node in products {
            sys::ggml_build_forward_expand(graph, node);
        }
        let status = sys::ggml_backend_graph_compute(device.0, graph);
        assert_eq!(status, sys::GGML_STATUS_SUCCESS);
        let results = products.map(floats_of);
        sys::ggml_backend_buffer_free(buffer);
        results
    }
}

#[test]
fn a_result_waits_for_what_it_overwrites_to_be_read() {
    let [first, second, again] = overlapping("overwrites_input", |x2, _| x2);
    assert_eq!(first, again);
    let [_, undisturbed, _] = overlapping("undisturbed", |x2, _| x2 + (1 << 14));
    assert_eq!(second, undisturbed);
}

#[test]
fn results_at_one_address_are_written_in_order() {
    let [first, _, again] = overlapping("overwrites_result", |_, second| second);
    assert_eq!(first, again);
}

#[test]
fn changed_weights_are_synced_again() {
    let (_, device) = device("changed", &strict());
    unsafe {
        let mut b = Builder::new(5);
        let w = b.weights(TY, [256, 8, 1, 1]);
        let x = b.floats([256, 1, 1, 1]);
        let buffer = b.alloc(&device);
        sys::ggml_backend_buffer_set_usage(buffer, sys::GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        let y = b.mul_mat(w, x);
        let results = sys::ggml_backend_alloc_ctx_tensors(b.ctx, device.0);
        let graph = sys::ggml_new_graph(b.ctx);
        sys::ggml_build_forward_expand(graph, y);
        let run = || {
            let status = sys::ggml_backend_graph_compute(device.0, graph);
            assert_eq!(status, sys::GGML_STATUS_SUCCESS);
            floats_of(y)
        };
        let first = run();
        assert_eq!(run(), first);

        // The last row's weights become those of the first.
        let row_bytes = TY.row_bytes(256).unwrap();
        let mut row = vec![0u8; row_bytes];
        sys::ggml_backend_tensor_get(w, row.as_mut_ptr().cast(), 0, row_bytes);
        sys::ggml_backend_tensor_set(w, row.as_ptr().cast(), 7 * row_bytes, row_bytes);
        let second = run();
        assert_eq!(second[..7], first[..7]);
        assert_eq!(second[7], first[0]);
        assert_ne!(first[7], first[0]);

        sys::ggml_backend_tensor_memset(w, 0, 0, row_bytes);
        assert_eq!(run()[0], 0.0);
        sys::ggml_backend_buffer_clear(buffer, 0);
        assert_eq!(run(), [0.0; 8]);
        sys::ggml_backend_buffer_free(results);
        sys::ggml_backend_buffer_free(buffer);
    }
}

#[test]
fn what_the_heap_cannot_hold_lies_in_ordinary_memory() {
    let options = TargetOptions {
        heap_bytes: 32 << 20,
        ..strict()
    };
    let (registration, device) = device("full", &options);
    let free = registration.heap().free();
    unsafe {
        let mut b = Builder::new(8);
        let (w, x) = (
            b.weights(TY, [256, 8, 1, 1]),
            b.floats([256, 33 << 10, 1, 1]),
        );
        let buffer = b.alloc(&device);
        assert_eq!(registration.heap().free(), free);
        let op = b.mul_mat(w, x);
        assert!(!claims(&device, op), "weights out of the device's reach");
        sys::ggml_backend_buffer_free(buffer);

        let empty = sys::ggml_backend_buft_alloc_buffer(
            sys::ggml_backend_dev_buffer_type(registration.device().cast()),
            0,
        );
        assert!(!empty.is_null());
        assert_eq!(registration.heap().free(), free);
        sys::ggml_backend_buffer_free(empty);
    }
}

#[test]
fn activations_and_results_may_lie_in_ordinary_memory() {
    let (registration, device) = device("ordinary", &strict());
    let found = unsafe {
        let mut b = Builder::new(9);
        let w = b.weights(TY, [256, 8, 1, 1]);
        let weights = b.alloc(&device);
        let x = b.floats([256, 3, 1, 1]);
        let y = b.mul_mat(w, x);
        // Takes all there is, so that the others find nothing.
        let rest = registration
            .heap()
            .alloc(registration.heap().free() as usize)
            .unwrap();
        let others = b.alloc(&device);
        let graph = sys::ggml_new_graph(b.ctx);
        sys::ggml_build_forward_expand(graph, y);
        assert!(claims(&device, y));
        let status = sys::ggml_backend_graph_compute(device.0, graph);
        assert_eq!(status, sys::GGML_STATUS_SUCCESS);
        drop(rest);
        let found = floats_of(y);
        sys::ggml_backend_buffer_free(others);
        sys::ggml_backend_buffer_free(weights);
        found
    };
    let expected = compute(&cpu(), 9, |b| {
        let (w, x) = (b.weights(TY, [256, 8, 1, 1]), b.floats([256, 3, 1, 1]));
        vec![b.mul_mat(w, x)]
    });
    assert!(nmse(&found, &expected.unwrap()[0]) < 1e-3);
}

#[test]
fn an_expert_that_is_not_there_is_an_error() {
    let (registration, device) = device("expert", &strict());
    for id in [-1, 4] {
        let failed = compute(&device, 6, |b| {
            let w = b.weights(TY, [256, 8, 4, 1]);
            let x = b.floats([256, 1, 1, 1]);
            let ids = b.ints([1, 1, 1, 1], &[id]);
            vec![b.mul_mat_id(w, x, ids)]
        });
        assert_eq!(failed, Err(sys::GGML_STATUS_FAILED));
        let error = registration.take_error().unwrap();
        let text = format!("index {id} is not one of 0 to 3");
        assert!(error.contains(&text), "{error}");
    }
}

#[test]
fn a_silent_kernel_is_an_error_and_not_a_hang() {
    let options = TargetOptions {
        faults: vec![Fault::NoAnswer],
        ..strict()
    };
    let (registration, device) = device("silent", &options);
    let failed = compute(&device, 7, |b| {
        let (w, x) = (b.weights(TY, [256, 8, 1, 1]), b.floats([256, 1, 1, 1]));
        vec![b.mul_mat(w, x)]
    });
    assert_eq!(failed, Err(sys::GGML_STATUS_FAILED));
    let error = registration.take_error().unwrap();
    assert!(error.contains("no interrupt"), "{error}");
}

#[test]
fn an_unknown_ggml_is_refused_by_its_version() {
    unsafe extern "C" fn version() -> *const std::ffi::c_char {
        c"0.27.1".as_ptr()
    }
    unsafe extern "C" fn op_name(_: u32) -> *const std::ffi::c_char {
        c"SOMETHING".as_ptr()
    }
    unsafe extern "C" fn known() -> *const std::ffi::c_char {
        c"0.26.3".as_ptr()
    }
    unsafe extern "C" fn never_1(_: u32) -> *const abi::TypeTraits {
        null_mut()
    }
    unsafe extern "C" fn never_2(_: *mut abi::Graph) -> i32 {
        0
    }
    unsafe extern "C" fn never_3(_: *mut abi::Graph, _: i32) -> *mut abi::Tensor {
        null_mut()
    }
    unsafe extern "C" fn never_4(
        _: *mut abi::BufferType,
        _: abi::BufferInterface,
        _: *mut std::ffi::c_void,
        _: usize,
    ) -> *mut abi::Buffer {
        null_mut()
    }
    unsafe extern "C" fn never_5(_: *mut abi::BufferType) -> bool {
        false
    }
    unsafe extern "C" fn never_6(_: *const abi::Tensor) -> usize {
        0
    }
    let mut api = Api {
        version,
        op_name,
        get_type_traits: never_1,
        nbytes: never_6,
        graph_n_nodes: never_2,
        graph_node: never_3,
        buffer_init: never_4,
        buft_is_host: never_5,
    };
    let refused = |api: Api| -> GgmlError { api.check().unwrap_err() };
    let unknown = refused(api).to_string();
    assert!(unknown.contains("ggml 0.27.1"), "{unknown}");
    api.version = known;
    let missing = refused(api).to_string();
    assert!(
        missing.contains("0.26.3 has no operation named NONE"),
        "{missing}"
    );
}
