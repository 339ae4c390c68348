//! MUL_MAT, MUL_MAT_ID and GET_ROWS against ggml's CPU backend.

#![cfg(feature = "llama")]

mod ggml_support;

use ggml_support::*;
use llama_cpp_sys_2 as sys;
use weightstream::ggml::Registration;
use weightstream::quant::WeightType;

/// What llama.cpp's own tests of these operations allow.
const MAX_NMSE: f64 = 5e-4;

/// Computes the same graph on both backends and compares; the device must claim every output.
fn compare(
    (registration, device): &(Registration, Backend),
    cpu: &Backend,
    what: &str,
    build: impl Fn(&mut Builder) -> Vec<Tensor>,
) {
    let expected = compute(cpu, 1, &build).unwrap();
    let claimed = |b: &mut Builder| {
        let outputs = build(b);
        for &output in &outputs {
            let claimed = unsafe { sys::ggml_backend_supports_op(device.0, output) };
            assert!(claimed, "{what}: not supported");
        }
        outputs
    };
    let found = compute(device, 1, claimed)
        .unwrap_or_else(|status| panic!("{what}: {status}: {:?}", registration.take_error()));
    for (found, expected) in found.iter().zip(&expected) {
        let error = nmse(found, expected);
        assert!(error <= MAX_NMSE, "{what}: NMSE {error:e}");
    }
}

#[test]
fn mul_mat_is_ggml_s() {
    let device = device("mul_mat", &strict());
    let cpu = cpu();
    let mut cases = 0;
    for ty in types(device.0) {
        let block = ty.block_len() as i64;
        for k in [block, 3 * block, 512] {
            // At least some ten results: the NMSE of a single one says little.
            for (rows, cols) in [(1, 12), (16, 1), (77, 2), (5, 9), (33, 70)] {
                // Matrices of the weights in dimensions 2 and 3, and how often each is used.
                for (matrices, repeats) in [
                    ([1, 1], [1, 1]),
                    ([1, 1], [3, 2]),
                    ([2, 1], [1, 1]),
                    ([2, 3], [2, 1]),
                    ([3, 2], [2, 2]),
                ] {
                    let w = [k, rows, matrices[0], matrices[1]];
                    let x = [k, cols, matrices[0] * repeats[0], matrices[1] * repeats[1]];
                    compare(&device, &cpu, &format!("{ty} {w:?} x {x:?}"), |b| {
                        let (w, x) = (b.weights(ty, w), b.floats(x));
                        vec![b.mul_mat(w, x)]
                    });
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 3 * 5 * 5 * types(device.0).count());
}

#[test]
fn columns_may_lie_anywhere() {
    let device = device("columns", &strict());
    let cpu = cpu();
    for ty in types(device.0) {
        // Columns from dimension 2, as attention has them.
        compare(&device, &cpu, &format!("{ty} permuted"), |b| {
            let (w, x) = (b.weights(ty, [256, 12, 1, 1]), b.floats([256, 3, 5, 2]));
            let x = unsafe { sys::ggml_permute(b.ctx, x, 0, 2, 1, 3) };
            vec![b.mul_mat(w, x)]
        });
        // Columns that are parts of longer ones.
        compare(&device, &cpu, &format!("{ty} strided"), |b| {
            let (w, x) = (b.weights(ty, [256, 12, 1, 1]), b.floats([600, 7, 1, 1]));
            let x = unsafe { sys::ggml_view_2d(b.ctx, x, 256, 6, 600 * 4, 600 * 4 + 44) };
            vec![b.mul_mat(w, x)]
        });
    }
}

#[test]
fn weights_may_start_at_any_row() {
    let device = device("rows", &strict());
    let cpu = cpu();
    for ty in types(device.0) {
        let row_bytes = ty.row_bytes(512).unwrap();
        for first in 1..9 {
            compare(&device, &cpu, &format!("{ty} from row {first}"), |b| {
                let (w, x) = (b.weights(ty, [512, 20, 1, 1]), b.floats([512, 2, 1, 1]));
                let at = first * row_bytes;
                let w = unsafe { sys::ggml_view_2d(b.ctx, w, 512, 11, row_bytes, at) };
                vec![b.mul_mat(w, x)]
            });
        }
    }
}

#[test]
fn mul_mat_id_is_ggml_s() {
    let device = device("mul_mat_id", &strict());
    let cpu = cpu();
    for ty in types(device.0) {
        for (experts, used) in [(1, 1), (4, 1), (4, 2), (8, 4)] {
            for tokens in [1, 5, 33] {
                for shared in [true, false] {
                    let columns = if shared { 1 } else { used };
                    let what = format!("{ty} {used} of {experts}, {tokens} tokens, {columns}");
                    compare(&device, &cpu, &what, |b| {
                        let w = b.weights(ty, [256, 40, experts.into(), 1]);
                        let x = b.floats([256, columns, tokens, 1]);
                        let ids = b.choices(experts, used, tokens);
                        vec![b.mul_mat_id(w, x, ids)]
                    });
                }
            }
        }
    }
}

#[test]
fn products_of_products_wait_for_each_other() {
    let device = device("dependent", &strict());
    let cpu = cpu();
    let ty = WeightType::Q8_0;
    compare(&device, &cpu, "a chain of products", |b| {
        let x = b.floats([256, 3, 1, 1]);
        let (w1, w2, w3) = (
            b.weights(ty, [256, 512, 1, 1]),
            b.weights(ty, [512, 256, 1, 1]),
            b.weights(ty, [256, 64, 1, 1]),
        );
        let (y1, z) = (b.mul_mat(w1, x), b.mul_mat(w3, x));
        // Through a view: the same memory under another tensor.
        let view = unsafe { sys::ggml_view_2d(b.ctx, y1, 512, 3, 512 * 4, 0) };
        let y2 = b.mul_mat(w2, view);
        vec![b.mul_mat(w3, y2), z, y2, y1]
    });
}

#[test]
fn get_rows_is_ggml_s() {
    let device = device("get_rows", &strict());
    let cpu = cpu();
    device.0.set_gather(true);
    for ty in types(device.0) {
        for (ids, matrices) in [([7, 1, 1, 1], [1, 1]), ([4, 3, 2, 1], [3, 2])] {
            let found = [&device.1, &cpu].map(|backend| {
                compute(backend, 2, |b| {
                    let w = b.weights(ty, [512, 11, matrices[0], matrices[1]]);
                    let n: i64 = ids.iter().product();
                    let values: Vec<i32> = (0..n as i32).map(|i| i * 5 % 11).collect();
                    let ids = b.ints(ids, &values);
                    let rows = unsafe { sys::ggml_get_rows(b.ctx, w, ids) };
                    assert!(unsafe { sys::ggml_backend_supports_op(device.1.0, rows) });
                    vec![rows]
                })
                .unwrap()
            });
            assert_eq!(found[0], found[1], "{ty}");
        }
    }
}
