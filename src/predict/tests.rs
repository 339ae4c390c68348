use std::fs;
use std::path::Path;

use super::arch::Arch;
use super::host::Host;
use super::sweep::{Axis, Point, Values, sweep};
use super::*;
use crate::quant::WeightType;

fn archs() -> Vec<Arch> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("archs");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| Arch::read(path).unwrap_or_else(|e| panic!("{e}"));
    files.iter().map(read).collect()
}

fn arch(name: &str) -> Model {
    let arch = archs().into_iter().find(|a| a.name == name).unwrap();
    arch.model(None).unwrap()
}

fn platform() -> Platform {
    Platform {
        config: Config::new(16, 1),
        dram: None,
        clock_mhz: 200,
        engines: 1,
        dma_bytes: 4 << 30,
    }
}

const REQUEST: Request = Request {
    context: 128,
    batch: 128,
};

/// A tiny mixture of experts, and what is left to the CPU.
fn tiny() -> Model {
    let product = |name: &str, ty: &str, k: usize, rows: usize, matrices, used| model::Product {
        name: format!("blk.0.{name}.weight"),
        r#type: ty.into(),
        k,
        rows,
        matrices,
        used,
        bytes: (k / 32 * 18 * rows * matrices) as u64,
    };
    let products = vec![
        product("ffn_down_exps", "Q4_0", 512, 256, 8, 2),
        product("ffn_gate_exps", "Q4_0", 256, 512, 8, 2),
        product("ffn_up_exps", "Q4_0", 256, 512, 8, 2),
        product("ffn_gate_inp", "F32", 256, 8, 1, 1),
        product("attn_k", "Q4_0", 256, 64, 1, 1),
        product("attn_v", "Q4_0", 256, 64, 1, 1),
        product("attn_q", "Q4_0", 256, 256, 1, 1),
        product("attn_output", "Q4_0", 256, 256, 1, 1),
    ];
    Model::new("tiny", products, 0)
}

#[test]
fn parameters_of_the_descriptions_are_those_published() {
    // Weights of products in 10^9: all parameters of the models but norms and embeddings.
    for (name, billions) in [
        ("TinyLlama 1.1B", 1.034),
        ("LLaMA2-7B", 6.607),
        ("Llama-3-8B", 7.504),
        ("Llama-3-70B", 69.50),
        ("Qwen2.5-7B", 7.07),
        ("Mixtral-8x7B", 46.57),
    ] {
        let weights: usize = arch(name)
            .products
            .iter()
            .map(|p| p.k * p.rows * p.matrices)
            .sum();
        let found = weights as f64 / 1e9;
        assert!(
            (found - billions).abs() < 0.005 * billions,
            "{name}: {found}"
        );
    }
}

#[test]
fn chains_and_jobs_are_those_of_the_driver() {
    let model = tiny();
    let chains: Vec<Vec<&str>> = model
        .chains()
        .iter()
        .map(|c| c.iter().map(|p| p.role()).collect())
        .collect();
    assert_eq!(
        chains,
        [
            vec!["ffn_gate_inp"],
            vec!["attn_q"],
            vec!["attn_v", "attn_k"],
            vec!["attn_output"],
            vec!["ffn_gate_exps", "ffn_up_exps"],
            vec!["ffn_down_exps"],
        ]
    );
    assert_eq!(model.kv_bytes, 2 * (64 + 64));
    let p = predict(&model, &platform(), &Host::default(), REQUEST).unwrap();
    // Four of attention, two experts' three.
    assert_eq!((p.decode.jobs, p.decode.chains), (10, 5));
    let router = p
        .decode
        .tensors
        .iter()
        .find(|t| t.name.contains("inp"))
        .unwrap();
    assert_eq!((router.jobs, router.bound), (0, Bound::Cpu));
    // 128 tokens in tiles of 4; 256 visits of 8 experts, 32 columns each.
    assert_eq!(p.prefill.jobs, 4 * 32 + 3 * 8 * 8);
    let streamed: u64 = model
        .products
        .iter()
        .filter(|p| p.r#type == "Q4_0")
        .map(|p| p.bytes_used())
        .sum();
    let beside = p.decode.bytes - streamed;
    // Headers, and Q8_0 activations in whole 64 bytes: of q, v, output, gate; of two downs.
    assert_eq!(beside, 10 * 64 + 4 * 320 + 2 * 576);
}

#[test]
fn more_of_anything_is_not_slower() {
    let model = arch("TinyLlama 1.1B");
    let rate = |platform: &Platform| {
        let p = predict(&model, platform, &Host::default(), REQUEST).unwrap();
        (p.decode.tokens_per_s, p.prefill.tokens_per_s)
    };
    let base = rate(&platform());
    let mut wider = platform();
    wider.config = Config::new(32, 2);
    let mut twice = platform();
    twice.engines = 2;
    let mut faster = platform();
    faster.clock_mhz = 400;
    for (what, other) in [
        ("width", rate(&wider)),
        ("engines", rate(&twice)),
        ("clock", rate(&faster)),
    ] {
        for (was, is) in [(base.0, other.0), (base.1, other.1)] {
            assert!(is > 1.5 * was && is < 2.01 * was, "{what}: {was} to {is}");
        }
    }
    // One column takes the bus, four the lanes.
    let p = predict(&model, &platform(), &Host::default(), REQUEST).unwrap();
    let down = |part: &PassPart| {
        part.tensors
            .iter()
            .find(|t| t.name == "blk.0.ffn_down.weight")
            .unwrap()
            .bound
    };
    assert_eq!(
        (down(&p.decode), down(&p.prefill)),
        (Bound::Bus, Bound::Lanes)
    );
    let sum: f64 = p.decode.tensors.iter().map(|t| t.ns).sum();
    assert!((sum - p.decode.kernel_ns).abs() < 1e-6 * sum);
}

#[test]
fn what_does_not_fit_is_said() {
    let model = arch("Llama-3-70B");
    let p = predict(&model, &platform(), &Host::default(), REQUEST).unwrap();
    assert!(!p.fit.fits && p.fit.weight_bytes > p.fit.dma_bytes);
    // Rows of ffn_down are longer than this kernel takes.
    let left = p
        .decode
        .tensors
        .iter()
        .filter(|t| t.bound == Bound::Cpu)
        .count();
    assert_eq!(left, 80);
    assert!(p.not_counted.iter().any(|n| n == "weights left to the CPU"));
    let host = Host::given(5.0, Some(10.0));
    let counted = predict(&model, &platform(), &host, REQUEST).unwrap();
    assert!(counted.not_counted.is_empty());
    let d = &counted.decode;
    assert_eq!(d.host_ns, 5e6);
    assert!((d.left_ns - p.fit.left_bytes as f64 / 10.0).abs() < 1.0);
    assert_eq!(d.attention_ns, (model.kv_bytes * 128) as f64 / 10.0);
}

#[test]
fn a_type_in_place_of_the_description_s() {
    let arch = archs()
        .into_iter()
        .find(|a| a.name == "TinyLlama 1.1B")
        .unwrap();
    let (q4, q8) = (
        arch.model(None).unwrap(),
        arch.model(Some(WeightType::Q8_0)).unwrap(),
    );
    let layers = |m: &Model| -> u64 {
        let of_layers = m.products.iter().filter(|p| p.layer() != "output");
        of_layers.map(|p| p.bytes).sum()
    };
    assert_eq!(layers(&q4) * 34, layers(&q8) * 18);
    assert_eq!(q4.products.last(), q8.products.last());
}

#[test]
fn bad_descriptions_are_errors_that_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("archs");
    let good = fs::read_to_string(folder.join("mixtral-8x7b.toml")).unwrap();
    for (from, to, says) in [
        (
            "layers = 32",
            "layers = 0",
            "layers is 0, expected 1 to 2^24",
        ),
        ("layers = 32", "depth = 32", "unknown field `depth`"),
        (
            "used = 2",
            "used = 9",
            "experts.used is 9, expected at most experts.count",
        ),
        (
            "layers = \"Q4_0\"",
            "layers = \"Q4\"",
            "types.layers is Q4, expected Q4_0",
        ),
        (
            "output = \"Q6_K\"",
            "output = \"Q6_K\"\nffn_gate = \"Q4_K\"",
            "types is ffn_gate, expected one of attn_q",
        ),
        (
            "hidden = 4096",
            "hidden = 4112",
            "types.layers is Q4_0, expected a type whose blocks",
        ),
    ] {
        let path = dir.path().join("a.toml");
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good);
        fs::write(&path, text).unwrap();
        let error = Arch::read(&path).unwrap_err().to_string();
        assert!(error.contains("a.toml") && error.contains(says), "{error}");
    }
}

#[test]
fn axes_are_read_and_refused() {
    let values: Values = "width=64,512".parse().unwrap();
    assert_eq!(
        (values.axis, values.values.as_slice()),
        (Axis::Width, &[64, 512][..])
    );
    assert_eq!(values.to_string(), "width=64,512");
    for (text, says) in [
        ("width", "not of the form"),
        ("speed=1", "unknown axis"),
        ("width=100", "width: 100 is not one of 64, 128, 256, 512"),
        ("clock=fast", "clock: \"fast\" is not a number"),
        ("clock=0", "clock: 0 is not one of 1 to 1000"),
    ] {
        let error = text.parse::<Values>().unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_sweep_marks_the_front_and_is_drawn() {
    let axes: Vec<Values> = ["clock=100,200", "width=64,128", "engines=1,2"]
        .iter()
        .map(|a| a.parse().unwrap())
        .collect();
    let points = sweep(
        &tiny(),
        &platform(),
        &Host::default(),
        REQUEST,
        &axes,
        "xc7z020clg400-1",
    )
    .unwrap();
    assert_eq!(points.len(), 8);
    assert_eq!(
        (points[1].clock_mhz, points[1].width, points[1].engines),
        (100, 64, 2)
    );
    let better = |a: &Point, b: &Point| {
        a.decode_tokens_per_s >= b.decode_tokens_per_s
            && a.part_percent <= b.part_percent
            && (a.decode_tokens_per_s, b.part_percent) != (b.decode_tokens_per_s, a.part_percent)
    };
    for point in &points {
        let beaten = points.iter().any(|other| better(other, point));
        assert_eq!(point.pareto, !beaten, "{point:?}");
        assert!(!point.pareto || point.clock_mhz == 200);
    }
    let svg = plot::svg(&points, "a < b");
    assert_eq!(svg.matches("<circle").count(), 8);
    assert!(svg.contains("a &lt; b") && !svg.contains("NaN"));
    let csv = super::sweep::csv(&points).unwrap();
    assert_eq!(
        csv::Reader::from_reader(csv.as_slice()).records().count(),
        8
    );
}
