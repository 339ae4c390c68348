//! Functional coverage: how often each combination of some properties was met, and which never.

use serde::Serialize;

/// A property and its values.
#[derive(Clone, Debug)]
pub struct Dimension {
    pub name: &'static str,
    pub values: Vec<String>,
}

impl Dimension {
    pub fn new<T: ToString>(name: &'static str, values: impl IntoIterator<Item = T>) -> Dimension {
        Dimension {
            name,
            values: values.into_iter().map(|v| v.to_string()).collect(),
        }
    }
}

/// The combinations of several properties that can be met, and how often each was.
#[derive(Clone, Debug)]
pub struct Cross {
    pub name: &'static str,
    dimensions: Vec<Dimension>,
    /// By combination, the last dimension's values next to each other; `None` cannot be met.
    hits: Vec<Option<u64>>,
}

/// How much of a cross was met.
#[derive(Clone, Debug, Serialize)]
pub struct CrossReport {
    pub name: &'static str,
    pub dimensions: Vec<&'static str>,
    pub met: usize,
    /// Combinations that can be met.
    pub of: usize,
    /// What was not met, as few lines as tell it all: `type Q2_K, stall -, end full` is every
    /// combination with these two.
    pub holes: Vec<Hole>,
}

/// Combinations that were not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hole {
    pub what: String,
    pub combinations: usize,
}

impl Cross {
    /// `possible` tells which combinations can be met, by the indices of their values.
    pub fn new(
        name: &'static str,
        dimensions: Vec<Dimension>,
        possible: impl Fn(&[usize]) -> bool,
    ) -> Cross {
        let all: usize = dimensions.iter().map(|d| d.values.len()).product();
        let mut cross = Cross {
            name,
            dimensions,
            hits: Vec::new(),
        };
        let hits = (0..all).map(|bin| possible(&cross.values(bin)).then_some(0));
        cross.hits = hits.collect();
        cross
    }

    /// The indices of a combination's values.
    fn values(&self, mut bin: usize) -> Vec<usize> {
        let mut values = vec![0; self.dimensions.len()];
        for (value, dimension) in values.iter_mut().zip(&self.dimensions).rev() {
            *value = bin % dimension.values.len();
            bin /= dimension.values.len();
        }
        values
    }

    /// Counts a combination that was met.
    pub fn meet(&mut self, values: &[usize]) {
        debug_assert_eq!(values.len(), self.dimensions.len());
        let dimensions = values.iter().zip(&self.dimensions);
        let bin = dimensions.fold(0, |bin, (value, d)| bin * d.values.len() + value);
        // What was thought impossible and is met after all is possible.
        *self.hits[bin].get_or_insert(0) += 1;
    }

    pub fn report(&self) -> CrossReport {
        let possible = self.hits.iter().flatten();
        CrossReport {
            name: self.name,
            dimensions: self.dimensions.iter().map(|d| d.name).collect(),
            met: possible.clone().filter(|hits| **hits > 0).count(),
            of: possible.count(),
            holes: self.holes(),
        }
    }

    /// The unmet combinations, those with the fewest values fixed first: where all with a certain
    /// value are unmet, that is one hole.
    fn holes(&self) -> Vec<Hole> {
        let bins: Vec<(Vec<usize>, Option<u64>)> = self
            .hits
            .iter()
            .enumerate()
            .map(|(bin, hits)| (self.values(bin), *hits))
            .collect();
        let mut told = vec![false; bins.len()];
        let mut holes = Vec::new();
        let n = self.dimensions.len();
        let mut subsets: Vec<u32> = (0..1u32 << n).collect();
        subsets.sort_by_key(|subset| (subset.count_ones(), *subset));
        for subset in subsets {
            let fixed = |values: &[usize]| -> Vec<usize> {
                let kept = (0..n).filter(|d| subset >> d & 1 == 1);
                kept.map(|d| values[d]).collect()
            };
            // For each choice of values: met, unmet, unmet and not told.
            let mut choices = std::collections::BTreeMap::new();
            for (bin, (values, hits)) in bins.iter().enumerate() {
                let Some(hits) = hits else { continue };
                let choice: &mut (bool, Vec<usize>, bool) =
                    choices.entry(fixed(values)).or_default();
                choice.0 |= *hits > 0;
                choice.1.push(bin);
                choice.2 |= !told[bin];
            }
            for (values, (met, unmet, new)) in choices {
                if met || !new {
                    continue;
                }
                unmet.iter().for_each(|&bin| told[bin] = true);
                holes.push(Hole {
                    what: self.describe(subset, &values),
                    combinations: unmet.len(),
                });
            }
        }
        holes
    }

    fn describe(&self, subset: u32, values: &[usize]) -> String {
        let mut values = values.iter();
        let mut parts = Vec::new();
        for (d, dimension) in self.dimensions.iter().enumerate() {
            if subset >> d & 1 == 1
                && let Some(value) = values.next()
            {
                parts.push(format!("{} {}", dimension.name, dimension.values[*value]));
            }
        }
        match parts.is_empty() {
            true => "everything".into(),
            false => parts.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cross() -> Cross {
        let dimensions = vec![
            Dimension::new("type", ["A", "B", "C"]),
            Dimension::new("end", ["full", "partial"]),
        ];
        // C always ends full.
        Cross::new("test", dimensions, |v| v != [2, 1])
    }

    fn holes(cross: &Cross) -> Vec<String> {
        cross.report().holes.into_iter().map(|h| h.what).collect()
    }

    #[test]
    fn holes_are_told_with_as_few_values_as_it_takes() {
        let mut cross = cross();
        assert_eq!(holes(&cross), ["everything"]);
        cross.meet(&[0, 0]);
        assert_eq!(holes(&cross), ["type B", "type C", "end partial"]);
        cross.meet(&[1, 1]);
        assert_eq!(
            holes(&cross),
            ["type C", "type A, end partial", "type B, end full"]
        );
        let report = cross.report();
        assert_eq!((report.met, report.of), (2, 5));
        for bin in [[0, 1], [1, 0], [2, 0]] {
            cross.meet(&bin);
        }
        assert_eq!(holes(&cross), [""; 0]);
        assert_eq!(cross.report().met, 5);
    }
}
