//! Which weights go to DMA memory where it cannot hold them all, or where the user wants some left
//! to the CPU.
//!
//! The policy: whole layers, most used first. A unit is all weights of a layer that every token
//! uses, or all its experts, or a weight outside of the layers (the output matrix); a unit goes to
//! DMA memory if it fits what is left of it. With the model's header at hand ([`Plan`]) units that
//! every token uses come before experts, of which a token uses some. llama.cpp's loader shows one
//! weight at a time and wants the answer at once ([`Placement::ask`]): a layer then counts as large
//! as the largest before it, and units come in the loader's order.

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;

use super::buffer::ALIGNMENT;
use crate::dma::GRANULE;

/// Weights that the loader may put into DMA memory, and what it has been told about them.
#[derive(Default)]
pub struct Placement {
    /// Names of weights that the user leaves to the CPU.
    cpu: Vec<Pattern>,
    plan: Option<Plan>,
    load: Option<Load>,
}

/// The weights of a load that go to DMA memory.
pub struct Taken {
    pub weights: usize,
    pub bytes: u64,
}

/// A model's weights as its header shows them, and those of them that go to DMA memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan(BTreeSet<String>);

/// A model being loaded: from the first question to the allocation that ends it.
struct Load {
    /// Size of each weight asked about, and whether it goes to DMA memory.
    answers: BTreeMap<String, (u64, bool)>,
    /// Bytes of DMA memory that are left.
    left: u64,
    layer: Option<Layer>,
    /// Bytes of the largest layer so far.
    largest: u64,
}

/// The layer that is asked about.
struct Layer {
    number: u32,
    /// Its weights so far.
    bytes: u64,
    /// Whether there was room for one like the largest.
    taken: bool,
}

/// Bytes that a weight of `bytes` takes in a buffer.
fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT as u64)
}

/// N of `blk.N.…`.
fn layer_of(name: &str) -> Option<u32> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// Whether a weight holds experts: `blk.N.ffn_…_exps.weight`.
fn holds_experts(name: &str) -> bool {
    name.contains("_exps.")
}

impl Plan {
    /// Places `weights` (name and bytes, in the file's order) into `room` bytes.
    pub fn new<'a>(weights: impl IntoIterator<Item = (&'a str, u64)>, room: u64) -> Plan {
        // By use, then the weights outside of the layers, then the layers in order.
        let mut units: BTreeMap<(bool, Option<u32>), Vec<_>> = BTreeMap::new();
        for (name, bytes) in weights {
            let unit = (holds_experts(name), layer_of(name));
            units.entry(unit).or_default().push((name, bytes));
        }
        let mut left = room.saturating_sub(GRANULE as u64);
        let mut placed = BTreeSet::new();
        for unit in units.into_values() {
            let bytes = unit.iter().map(|(_, bytes)| padded(*bytes)).sum();
            if let Some(rest) = left.checked_sub(bytes) {
                left = rest;
                placed.extend(unit.iter().map(|(name, _)| name.to_string()));
            }
        }
        Plan(placed)
    }

    /// Whether the weight called `name` goes to DMA memory.
    pub fn holds(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl Placement {
    /// Leaves weights whose names match one of `patterns` to the CPU.
    pub fn leave_to_cpu(&mut self, patterns: Vec<Pattern>) {
        self.cpu = patterns;
    }

    /// Whether the user leaves the weight called `name` to the CPU.
    pub fn is_excluded(&self, name: &str) -> bool {
        self.cpu.iter().any(|pattern| pattern.matches(name))
    }

    /// From now on `plan` says what goes to DMA memory.
    pub fn follow(&mut self, plan: Option<Plan>) {
        self.plan = plan;
    }

    /// Whether a weight of `bytes` goes to DMA memory, of which `free` bytes are free; if not, why.
    /// The answer stays the same until memory for the weights is allocated, because a loader may
    /// go over a model twice.
    pub fn ask(&mut self, name: &str, bytes: u64, free: u64) -> Result<(), String> {
        if self.is_excluded(name) {
            return Err("the settings leave it to the CPU".into());
        }
        let before = self.load.as_ref().and_then(|l| l.answers.get(name));
        let taken = match before {
            Some(&(size, taken)) if size == bytes => taken,
            _ => {
                if before.is_some() {
                    // Another model, and no memory was allocated for the one before.
                    self.load = None;
                }
                let load = self.load.get_or_insert_with(|| Load::new(free));
                let taken = match &self.plan {
                    Some(plan) => plan.holds(name),
                    None => load.place(name, padded(bytes)),
                };
                load.answers.insert(name.into(), (bytes, taken));
                taken
            }
        };
        match taken {
            true => Ok(()),
            false => Err("there is no room for it in DMA memory".into()),
        }
    }

    /// Ends a load, if one is under way, and tells what was taken: memory is being allocated, and
    /// what comes now is another model.
    pub fn end_load(&mut self) -> Option<Taken> {
        let answers = self.load.take()?.answers;
        let taken = answers.values().filter(|(_, taken)| *taken);
        Some(Taken {
            weights: taken.clone().count(),
            bytes: taken.map(|(bytes, _)| bytes).sum(),
        })
    }
}

impl Load {
    fn new(free: u64) -> Load {
        Load {
            answers: BTreeMap::new(),
            left: free.saturating_sub(GRANULE as u64),
            layer: None,
            largest: 0,
        }
    }

    fn place(&mut self, name: &str, bytes: u64) -> bool {
        let in_layer = layer_of(name).is_none_or(|number| {
            if self.layer.as_ref().is_none_or(|l| l.number != number) {
                let before = self.layer.take().map_or(0, |l| l.bytes);
                self.largest = self.largest.max(before);
                self.layer = Some(Layer {
                    number,
                    bytes: 0,
                    taken: self.left >= self.largest,
                });
            }
            let layer = self.layer.as_mut().expect("set above");
            layer.bytes += bytes;
            layer.taken
        });
        if !in_layer || bytes > self.left {
            return false;
        }
        self.left -= bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn names(n: u32) -> Vec<String> {
        let of = |n| ["attn_q", "ffn_up"].map(|w| format!("blk.{n}.{w}.weight"));
        let layers = (0..n).flat_map(of);
        ["output.weight".to_owned()]
            .into_iter()
            .chain(layers)
            .collect()
    }

    /// The answers of a placement that is asked in order about weights of 1 MiB.
    fn asked(placement: &mut Placement, names: &[String], free: u64) -> Vec<bool> {
        let ask = |name: &String| placement.ask(name, 1024 * KIB, free).is_ok();
        names.iter().map(ask).collect()
    }

    #[test]
    fn whole_layers_are_taken_while_they_fit() {
        let names = names(3);
        for (mib, expected) in [
            (0, [false; 7]),
            (1, [true, false, false, false, false, false, false]),
            (3, [true, true, true, false, false, false, false]),
            (4, [true, true, true, false, false, false, false]),
            (5, [true, true, true, true, true, false, false]),
            (9, [true; 7]),
        ] {
            let free = (mib << 20) + GRANULE as u64;
            let mut placement = Placement::default();
            assert_eq!(asked(&mut placement, &names, free), expected, "{mib} MiB");
            // A second pass gets the same answers, whatever is free meanwhile.
            assert_eq!(
                asked(&mut placement, &names, 0),
                expected,
                "{mib} MiB again"
            );
            placement.end_load();
            assert_eq!(asked(&mut placement, &names, 0), [false; 7]);
            let weights = names.iter().map(|name| (name.as_str(), 1024 * KIB));
            let plan = Plan::new(weights, free);
            let planned: Vec<bool> = names.iter().map(|name| plan.holds(name)).collect();
            assert_eq!(planned, expected, "{mib} MiB, planned");
        }
    }

    #[test]
    fn another_model_with_the_same_names_is_asked_about_anew() {
        let mut placement = Placement::default();
        let name = "output.weight";
        assert!(placement.ask(name, 2048 * KIB, 1024 * KIB).is_err());
        assert!(placement.ask(name, 512 * KIB, 1024 * KIB).is_ok());
    }

    #[test]
    fn a_planned_model_s_experts_come_last() {
        let names = |n| {
            [
                format!("blk.{n}.ffn_up_exps.weight"),
                format!("blk.{n}.attn_q.weight"),
            ]
        };
        let names: Vec<String> = (0..2).flat_map(names).collect();
        let weights = names.iter().map(|name| (name.as_str(), 1024 * KIB));
        let plan = Plan::new(weights, 3 * 1024 * KIB + GRANULE as u64);
        let planned: Vec<bool> = names.iter().map(|name| plan.holds(name)).collect();
        assert_eq!(planned, [true, true, false, true]);
    }

    #[test]
    fn what_the_user_excludes_takes_no_room() {
        let mut placement = Placement::default();
        placement.leave_to_cpu(vec![Pattern::new("blk.?.attn*").unwrap()]);
        let free = (2 << 20) + GRANULE as u64;
        let answers = asked(&mut placement, &names(2), free);
        assert_eq!(answers, [true, false, true, false, false]);
        let reason = placement.ask("blk.0.attn_q.weight", 1, free).unwrap_err();
        assert!(reason.contains("settings"), "{reason}");
    }
}
