//! Jobs for the kernel, as bytes in memory (`docs/stream.md`).
#![allow(dead_code, reason = "every test file uses its own part")]

use std::{fs, path::Path};

use safetensors::SafeTensors;

/// A weight type: its number, and weights and bytes of a block.
#[derive(Debug, Clone, Copy)]
pub struct Type {
    pub name: &'static str,
    pub number: u32,
    pub weights: usize,
    pub bytes: usize,
}

#[rustfmt::skip]
pub const TYPES: [Type; 10] = [
    Type { name: "Q4_0", number: 2, weights: 32, bytes: 18 },
    Type { name: "Q4_1", number: 3, weights: 32, bytes: 20 },
    Type { name: "Q5_0", number: 6, weights: 32, bytes: 22 },
    Type { name: "Q5_1", number: 7, weights: 32, bytes: 24 },
    Type { name: "Q8_0", number: 8, weights: 32, bytes: 34 },
    Type { name: "Q2_K", number: 10, weights: 256, bytes: 84 },
    Type { name: "Q3_K", number: 11, weights: 256, bytes: 110 },
    Type { name: "Q4_K", number: 12, weights: 256, bytes: 144 },
    Type { name: "Q5_K", number: 13, weights: 256, bytes: 176 },
    Type { name: "Q6_K", number: 14, weights: 256, bytes: 210 },
];

/// The header of a job.
pub fn header(ty: Type, k: usize, rows: usize, cols: usize, skip: usize, tag: u32) -> [u8; 64] {
    let mut header = [0; 64];
    let fields = [
        0x314A_5357,
        1,
        ty.number,
        k as u32,
        rows as u32,
        cols as u32,
        skip as u32,
        0,
        tag,
    ];
    for (to, field) in header.chunks_exact_mut(4).zip(fields) {
        to.copy_from_slice(&field.to_le_bytes());
    }
    header
}

/// A golden vector: its shape and its bytes.
pub struct Vector {
    pub ty: Type,
    pub k: usize,
    pub rows: usize,
    pub cols: usize,
    pub weights: Vec<u8>,
    pub activations: Vec<u8>,
    /// The results in the kernel's order: row 0 of every column, then row 1, and so on.
    pub results: Vec<u8>,
}

impl Vector {
    pub fn read(path: &Path) -> Vector {
        let bytes = fs::read(path).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let metadata = metadata.metadata().as_ref().unwrap();
        let number = |name: &str| metadata[name].parse::<usize>().unwrap();
        let (k, rows, cols) = (number("k"), number("rows"), number("cols"));
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let tensor = |name: &str| tensors.tensor(name).unwrap().data().to_vec();
        let expected = tensor("expected");
        let results = (0..rows)
            .flat_map(|row| (0..cols).map(move |col| (col * rows + row) * 4))
            .flat_map(|at| expected[at..at + 4].to_vec())
            .collect();
        Vector {
            ty: *TYPES
                .iter()
                .find(|t| t.name == metadata["type"])
                .expect("a known type"),
            k,
            rows,
            cols,
            weights: tensor("weights"),
            activations: tensor("activations"),
            results,
        }
    }
}
