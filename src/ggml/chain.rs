//! From a graph's nodes to the accelerator's runs.
//!
//! Products that do not depend on each other (Q, K and V; gate and up) go down in one run, and
//! those with the same activations share them. Whether a node depends on another is decided by the
//! memory they touch: ggml gives the memory of a tensor that is used no more to a later one, so a
//! node waits both for what it reads to be written and for what it overwrites to be read.

use std::ops::Range;
use std::time::Instant;

use super::abi::{Graph, TENSOR_FLAG_COMPUTE, Tensor};
use super::api::Op;
use super::buffer::DmaBuffer;
use super::ops::{Product, mul_mat, mul_mat_id};
use super::profile::Visit;
use super::{Shared, lock};
use crate::driver::{Accelerator, Input, MatMul};
use crate::profile::{Run, WeightId};
use crate::quant::WeightType;

/// Products that wait to go down together.
#[derive(Default)]
struct Chain<'g> {
    inputs: Vec<Columns>,
    jobs: Vec<Job>,
    reads: Vec<Range<usize>>,
    writes: Vec<Range<usize>>,
    /// Where they come from, for messages.
    nodes: Vec<&'g Tensor>,
}

/// Activation columns of `k` values each.
#[derive(PartialEq)]
struct Columns {
    k: usize,
    columns: Vec<*const f32>,
}

struct Job {
    /// Device address of the first row.
    weights: u64,
    ty: WeightType,
    k: usize,
    rows: usize,
    input: usize,
    outputs: Vec<*mut f32>,
    /// Index of its node among the chain's.
    node: usize,
    /// CPU address of the first row.
    address: usize,
}

/// Computes the nodes of `graph` in an order that gives the same results as theirs.
///
/// # Safety
/// `graph` is a live graph whose tensors are allocated, those of weights in our buffers and all
/// others in memory of the CPU, and nothing else uses them meanwhile.
pub unsafe fn compute(shared: &Shared, graph: *mut Graph) -> Result<(), String> {
    let mut accelerator = lock(&shared.accelerator);
    let (start, before) = (Instant::now(), accelerator.stats());
    let recording = lock(&shared.profiler).is_recording();
    let mut runs = recording.then(Vec::new);
    let mut chain = Chain::default();
    let mut products = Products::default();
    // SAFETY: the graph is live; the table's pointers are ggml's functions.
    let nodes = unsafe { (shared.api.graph_n_nodes)(graph) };
    for n in 0..nodes {
        // SAFETY: as above, and `n` is below the number of nodes.
        let node = unsafe { &*(shared.api.graph_node)(graph, n) };
        if node.flags & TENSOR_FLAG_COMPUTE == 0 || node.is_empty() {
            continue;
        }
        let in_node = |e: String| format!("node {}: {e}", node.name());
        match shared.ops.get(node.op) {
            Some(Op::View) => {}
            Some(op @ (Op::MulMat | Op::MulMatId | Op::GetRows)) => {
                if chain.must_precede(node) {
                    chain.run(&mut accelerator, &mut runs)?;
                }
                // SAFETY: see this function's contract.
                match op {
                    Op::MulMat => {
                        let found = mul_mat(node).map_err(in_node)?;
                        products.note(&found);
                        chain.add(shared, node, found)
                    }
                    Op::MulMatId => {
                        let found = unsafe { mul_mat_id(node) }.map_err(in_node)?;
                        products.note(&found);
                        chain.add(shared, node, found)
                    }
                    _ => unsafe { shared.get_rows(node) },
                }
                .map_err(in_node)?;
            }
            None => return Err(in_node(format!("operation {} is not ours", node.op))),
        }
    }
    chain.run(&mut accelerator, &mut runs)?;
    lock(&shared.profiler).add(Visit {
        weights: products.weights,
        columns: products.columns,
        start,
        stats: [before, accelerator.stats()],
        runs: runs.unwrap_or_default(),
    });
    Ok(())
}

/// What a graph's products were, for the profile.
#[derive(Default)]
struct Products {
    weights: Vec<usize>,
    columns: usize,
}

impl Products {
    fn note(&mut self, products: &[Product]) {
        self.weights.extend(products.iter().map(|p| p.weights));
        let columns = products.iter().map(|p| p.outputs.len()).max();
        self.columns = self.columns.max(columns.unwrap_or(0));
    }
}

impl<'g> Chain<'g> {
    /// Whether the chain must have run before `node` can be computed.
    fn must_precede(&self, node: &Tensor) -> bool {
        let meets = |ranges: &[Range<usize>], range: &Range<usize>| {
            ranges
                .iter()
                .any(|r| r.start < range.end && range.start < r.end)
        };
        let write = node.range();
        meets(&self.writes, &write)
            || meets(&self.reads, &write)
            || sources(node).any(|source| meets(&self.writes, &source.range()))
    }

    /// Takes the products of `node` in.
    fn add(
        &mut self,
        shared: &Shared,
        node: &'g Tensor,
        products: Vec<Product>,
    ) -> Result<(), String> {
        let weights = node.source(0)?;
        let ty = WeightType::from_ggml(weights.type_)
            .ok_or_else(|| format!("weights of ggml's type {}", weights.type_))?;
        // SAFETY: an allocated tensor's buffer lives as long as the tensor.
        let (buffer, constant) = unsafe { DmaBuffer::of(shared, weights.buffer()) }
            .ok_or_else(|| format!("weights {} are not in DMA memory", weights.name()))?;
        let [k, rows, ..] = weights.ne.map(|n| n as usize);
        for product in products {
            let bytes = rows * weights.nb[1];
            let device_addr = buffer.hand_over(product.weights, bytes, constant)?;
            let input = self.input(Columns {
                k,
                columns: product.inputs,
            });
            self.jobs.push(Job {
                weights: device_addr,
                ty,
                k,
                rows,
                input,
                outputs: product.outputs,
                node: self.nodes.len(),
                address: product.weights,
            });
        }
        self.reads.extend(sources(node).map(Tensor::range));
        self.writes.push(node.range());
        self.nodes.push(node);
        Ok(())
    }

    /// The index of these activations, which may be there already.
    fn input(&mut self, columns: Columns) -> usize {
        let found = self.inputs.iter().position(|c| *c == columns);
        found.unwrap_or_else(|| {
            self.inputs.push(columns);
            self.inputs.len() - 1
        })
    }

    /// Runs what is waiting and leaves nothing. What the driver noted goes to `runs`, if it is
    /// wanted.
    fn run(
        &mut self,
        accelerator: &mut Accelerator,
        runs: &mut Option<Vec<Run>>,
    ) -> Result<(), String> {
        let Chain {
            inputs,
            jobs,
            nodes,
            ..
        } = std::mem::take(self);
        if jobs.is_empty() {
            return Ok(());
        }
        let input = |c: &Columns| {
            let column = |&x: &*const f32| {
                // SAFETY: a column of an activation tensor, which nothing writes while we run.
                unsafe { std::slice::from_raw_parts(x, c.k) }
            };
            Input::F32(c.columns.iter().map(column).collect())
        };
        let matmul = |job: Job| {
            let column = |y: *mut f32| {
                // SAFETY: a column of a result tensor; no two columns overlap, nor do results and
                // activations, else `must_precede` had parted them.
                unsafe { std::slice::from_raw_parts_mut(y, job.rows) }
            };
            MatMul {
                weights: job.weights,
                ty: job.ty,
                k: job.k,
                rows: job.rows,
                input: job.input,
                out: job.outputs.iter().map(|&y| column(y)).collect(),
            }
        };
        let weights: Option<Vec<WeightId>> = runs
            .is_some()
            .then(|| jobs.iter().map(|job| job.id(nodes[job.node])).collect());
        let start = Instant::now();
        let inputs: Vec<Input> = inputs.iter().map(input).collect();
        let mut matmuls: Vec<MatMul> = jobs.into_iter().map(matmul).collect();
        accelerator.run(&inputs, &mut matmuls).map_err(|e| {
            let names: Vec<String> = nodes.iter().map(|n| n.name()).collect();
            format!("nodes {}: {e}", names.join(", "))
        })?;
        if let Some((runs, weights)) = runs.as_mut().zip(weights) {
            runs.push(Run {
                weights,
                chains: accelerator.take_log(),
                wall: start.elapsed(),
            });
        }
        Ok(())
    }
}

impl Job {
    /// What the job of `node` computes with.
    fn id(&self, node: &Tensor) -> WeightId {
        let weights = node.source(0).ok();
        let matrices = weights.map_or(1, |w| w.ne[2]);
        let matrix = weights.map(|w| (self.address - w.data as usize) / w.nb[2].max(1));
        WeightId {
            tensor: crate::profile::Tensor {
                name: weights.map_or_else(String::new, Tensor::name),
                r#type: self.ty.to_string(),
                k: self.k,
                rows: self.rows,
            },
            expert: matrix.filter(|_| matrices > 1),
        }
    }
}

fn sources(node: &Tensor) -> impl Iterator<Item = &Tensor> {
    (0..node.src.len())
        .map_while(|n| node.source(n).ok())
        .filter(|source| !source.is_empty())
}
