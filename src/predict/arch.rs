//! Descriptions of models that are not at hand (`archs/*.toml`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::model::{Model, ModelError, Product};
use crate::quant::WeightType;

/// A decoder of the Llama family, as its published configuration says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arch {
    pub name: String,
    /// Where the figures are from.
    pub source: String,
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width of the feed-forward network; of one expert where there are some.
    pub ffn: usize,
    pub heads: usize,
    pub kv_heads: usize,
    /// Width of a head, if not `hidden / heads`.
    pub head_dim: Option<usize>,
    pub vocab: usize,
    /// The output matrix is the embeddings'.
    #[serde(default)]
    pub tied: bool,
    pub experts: Option<Experts>,
    pub types: Types,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experts {
    pub count: usize,
    /// Experts a token uses.
    pub used: usize,
}

/// Weight types: of the layers, and of those roles that have another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Types {
    pub layers: String,
    pub output: String,
    /// As `attn_v = "Q6_K"`.
    #[serde(flatten)]
    pub roles: BTreeMap<String, String>,
}

impl Arch {
    pub fn read(path: &Path) -> Result<Arch, ModelError> {
        let text = fs::read_to_string(path).map_err(|source| ModelError::Io {
            path: path.into(),
            source,
        })?;
        let arch: Arch = toml::from_str(&text).map_err(|e| ModelError::Toml {
            path: path.into(),
            message: e.to_string(),
        })?;
        arch.check()
            .map_err(|(field, value, expected)| ModelError::Field {
                path: path.into(),
                field,
                value,
                expected,
            })?;
        Ok(arch)
    }

    /// Checks the figures: field, value, what is expected.
    fn check(&self) -> Result<(), (String, String, String)> {
        let bad = |field: &str, value: String, expected: &str| {
            Err((field.to_string(), value, expected.to_string()))
        };
        let mut sizes = vec![
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("ffn", self.ffn),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("vocab", self.vocab),
        ];
        sizes.extend(self.head_dim.map(|n| ("head_dim", n)));
        if let Some(e) = self.experts {
            sizes.extend([("experts.count", e.count), ("experts.used", e.used)]);
            if e.used > e.count {
                return bad("experts.used", e.used.to_string(), "at most experts.count");
            }
        }
        if let Some((field, value)) = sizes.iter().find(|(_, n)| *n == 0 || *n > 1 << 24) {
            return bad(field, value.to_string(), "1 to 2^24");
        }
        if self.layers > 1 << 12 {
            return bad("layers", self.layers.to_string(), "at most 4096");
        }
        let types = &self.types;
        let named = [("layers", &types.layers), ("output", &types.output)];
        let roles = types.roles.iter().map(|(role, ty)| (role.as_str(), ty));
        for (role, ty) in named.into_iter().chain(roles) {
            let Ok(ty) = ty.parse::<WeightType>() else {
                let all: Vec<_> = WeightType::all().map(WeightType::name).collect();
                return bad(&format!("types.{role}"), ty.clone(), &all.join(", "));
            };
            let fits = self.shapes().iter().all(|(name, k, ..)| {
                let of_role =
                    *name == role || (role == "layers" && !types.roles.contains_key(*name));
                !of_role || ty.row_bytes(*k).is_some()
            });
            if !fits {
                let expected = format!("a type whose blocks make whole rows of {role}");
                return bad(&format!("types.{role}"), ty.to_string(), &expected);
            }
        }
        let names: Vec<&str> = self.shapes().iter().map(|s| s.0).collect();
        if let Some(role) = types.roles.keys().find(|r| !names.contains(&r.as_str())) {
            return bad(
                "types",
                role.clone(),
                &format!("one of {}", names.join(", ")),
            );
        }
        Ok(())
    }

    /// A layer's matrices and the output: role, k, rows, whether there is one an expert.
    fn shapes(&self) -> Vec<(&'static str, usize, usize, bool)> {
        let head = self.head_dim.unwrap_or(self.hidden / self.heads);
        let (q, kv) = (self.heads * head, self.kv_heads * head);
        let experts = self.experts.is_some();
        let ffn = |dense, expert| if experts { expert } else { dense };
        vec![
            ("attn_q", self.hidden, q, false),
            ("attn_k", self.hidden, kv, false),
            ("attn_v", self.hidden, kv, false),
            ("attn_output", q, self.hidden, false),
            (
                ffn("ffn_gate", "ffn_gate_exps"),
                self.hidden,
                self.ffn,
                experts,
            ),
            (ffn("ffn_up", "ffn_up_exps"), self.hidden, self.ffn, experts),
            (
                ffn("ffn_down", "ffn_down_exps"),
                self.ffn,
                self.hidden,
                experts,
            ),
            ("output", self.hidden, self.vocab, false),
        ]
    }

    /// The model with `layers` in place of its type of the layers, where given.
    ///
    /// # Errors
    /// Says which matrix has rows that are not whole blocks of that type.
    pub fn model(&self, layers: Option<WeightType>) -> Result<Model, String> {
        let mut products = Vec::new();
        let shapes = self.shapes();
        for layer in 0..=self.layers {
            let in_layer = |role: &str| (role == "output") == (layer == self.layers);
            for &(role, k, rows, expert) in shapes.iter().filter(|s| in_layer(s.0)) {
                let ty = match (role, self.types.roles.get(role), layers) {
                    ("output", ..) => &self.types.output,
                    (_, _, Some(ty)) => ty.name(),
                    (_, Some(ty), None) => ty,
                    (_, None, None) => &self.types.layers,
                };
                let parsed: WeightType = ty.parse()?;
                let row = parsed.row_bytes(k).ok_or_else(|| {
                    format!("rows of {role}, {k} weights, are not whole blocks of {ty}")
                })?;
                let matrices = self.experts.filter(|_| expert).map_or(1, |e| e.count);
                products.push(Product {
                    name: match role {
                        "output" => "output.weight".into(),
                        _ => format!("blk.{layer}.{role}.weight"),
                    },
                    r#type: ty.to_string(),
                    k,
                    rows,
                    matrices,
                    used: self.experts.filter(|_| expert).map_or(1, |e| e.used),
                    bytes: (row * rows * matrices) as u64,
                });
            }
        }
        // Embeddings in the output's type, and norms in f32.
        let output = products.last().map_or(0, |p| p.bytes);
        let embeddings = if self.tied { 0 } else { output };
        let norms = 4 * (2 * self.layers + 1) * self.hidden;
        Ok(Model::new(&self.name, products, embeddings + norms as u64))
    }
}
