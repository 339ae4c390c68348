//! ggml's tensor types as far as a reader needs them.

/// Number, name, weights in a block, bytes of a block, for each type a GGUF file may hold.
///
/// Source: `enum ggml_type` and the block structs of ggml 0.26.
const TYPES: [(u32, &str, u64, u64); 34] = [
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
    (42, "Q2_0", 64, 18),
    (15, "Q8_K", 256, 292),
];

/// A type's name, weights in a block and bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    pub name: &'static str,
    pub block_len: u64,
    pub block_bytes: u64,
}

/// What is known of ggml's type number `n`.
pub fn type_info(n: u32) -> Option<TypeInfo> {
    TYPES
        .iter()
        .find(|t| t.0 == n)
        .map(|&(_, name, block_len, block_bytes)| TypeInfo {
            name,
            block_len,
            block_bytes,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quant::WeightType;

    #[test]
    fn the_kernels_types_agree() {
        for t in WeightType::all() {
            let info = type_info(t.ggml()).unwrap();
            assert_eq!(info.name, t.name());
            assert_eq!(
                (info.block_len, info.block_bytes),
                (t.block_len() as u64, t.block_bytes() as u64)
            );
        }
    }

    #[cfg(feature = "llama")]
    #[test]
    fn ggml_agrees() {
        for (n, name, block_len, block_bytes) in TYPES {
            // SAFETY: pure look-ups in ggml's table, within its range.
            unsafe {
                let theirs = std::ffi::CStr::from_ptr(llama_cpp_sys_2::ggml_type_name(n));
                assert_eq!(theirs.to_str().unwrap().to_uppercase(), name.to_uppercase());
                assert_eq!(
                    llama_cpp_sys_2::ggml_blck_size(n) as u64,
                    block_len,
                    "{name}"
                );
                assert_eq!(
                    llama_cpp_sys_2::ggml_type_size(n) as u64,
                    block_bytes,
                    "{name}"
                );
            }
        }
    }
}
