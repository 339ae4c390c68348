//! Models and contexts on the behavioural model, with the built-in model's file.

#![cfg(feature = "llama")]

mod ggml_support;
#[path = "common/page_cache.rs"]
mod page_cache;

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ggml_support::{nmse, strict};
use rustix::fs::{MemfdFlags, memfd_create};
use weightstream::driver::Accelerator;
use weightstream::ggml::Registration;
use weightstream::gguf::Gguf;
use weightstream::llama::{
    Context, ContextOptions, LlamaError, Model, Outputs, Sampler, TextStream, Token, register,
};
use weightstream::loader;
use weightstream::target::{TargetSpec, open};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/weightstream-tiny.gguf");
const TEXT: &str = "Once upon a time, there was a kind girl named Ruby. She found a red ball.";

/// llama.cpp takes the first device there is, so the tests share one.
fn backend() -> Registration {
    static BACKEND: OnceLock<Registration> = OnceLock::new();
    *BACKEND.get_or_init(|| {
        let target = open(&TargetSpec::Model, &strict()).unwrap();
        register("weightstream", Accelerator::new(target).unwrap()).unwrap()
    })
}

fn model() -> Model {
    Model::load(Path::new(FILE), Some(backend()), |_| {}).unwrap()
}

fn context(model: &Model, n_ctx: u32, n_batch: u32, outputs: Outputs) -> Context<'_> {
    let options = ContextOptions {
        n_ctx,
        n_batch,
        outputs,
        threads: 1,
        threads_batch: 1,
    };
    Context::new(model, Some(backend()), options).unwrap()
}

fn logits(context: &mut Context<'_>, tokens: &[Token]) -> Vec<f32> {
    let mut all = Vec::new();
    let add = |_, logits: &[f32]| all.extend_from_slice(logits);
    context.decode(tokens, add).unwrap();
    all
}

#[test]
fn loading_tells_its_progress_and_leaves_nothing_to_the_cpu() {
    let mut seen = Vec::new();
    Model::load(Path::new(FILE), Some(backend()), |done| seen.push(done)).unwrap();
    assert!(seen.is_sorted() && seen.last() == Some(&1.0), "{seen:?}");
    assert!(backend().left_to_cpu().is_empty());
}

/// Writes the model `whole` as two files, all its tensors in the first, whose path it returns.
fn in_two_parts(dir: &Path, whole: &[u8]) -> PathBuf {
    fn pair(key: &str, ty: u32, value: &[u8]) -> Vec<u8> {
        let len = (key.len() as u64).to_le_bytes();
        [&len, key.as_bytes(), &ty.to_le_bytes(), value].concat()
    }
    let (uint8, uint16, int32) = (0, 2, 5);
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    let (tensors, pairs) = (word(8), word(16));
    let split = |no: u16| {
        let tensors = tensors as i32;
        let pairs = [
            pair("split.no", uint16, &no.to_le_bytes()),
            pair("split.count", uint16, &2u16.to_le_bytes()),
            pair("split.tensors.count", int32, &tensors.to_le_bytes()),
            // What comes after stays as far from a multiple of the data's alignment.
            pair("-", uint8, &[0]),
        ];
        pairs.concat()
    };
    assert_eq!(split(0).len() % 32, 0);
    let header = |tensors: u64, pairs: u64| {
        [&whole[..8], &tensors.to_le_bytes(), &pairs.to_le_bytes()].concat()
    };
    let first = [header(tensors, pairs + 4), split(0), whole[24..].to_vec()].concat();
    let mut second = [header(0, 4), split(1)].concat();
    second.resize(second.len().next_multiple_of(32), 0);
    let path = |n| dir.join(format!("model-0000{n}-of-00002.gguf"));
    fs::write(path(1), first).unwrap();
    fs::write(path(2), second).unwrap();
    path(1)
}

/// Which way the bytes of a model's weights came into DMA memory does not show in its logits.
#[test]
fn weights_are_read_straight_into_dma_memory_or_plainly_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(FILE).unwrap();
    let path = dir.path().join("model.gguf");
    fs::write(&path, &whole).unwrap();
    page_cache::forget(&path);
    let mut memory = File::from(memfd_create("model", MemfdFlags::CLOEXEC).unwrap());
    memory.write_all(&whole).unwrap();
    let in_memory = format!("/proc/self/fd/{}", memory.as_raw_fd());
    let parts = in_two_parts(dir.path(), &whole);

    let load = |path: &Path| {
        let model = Model::load(path, Some(backend()), |_| {}).unwrap();
        let tokens = model.tokenise(TEXT).unwrap();
        let logits = logits(&mut context(&model, 128, 128, Outputs::Last), &tokens);
        (model.reads().clone(), logits)
    };
    let gguf = Gguf::open(&path).unwrap();
    let bytes: u64 = gguf.tensors().iter().map(|t| t.bytes).sum();
    let types = backend().capabilities().types;
    // It has an output matrix of its own: the embeddings are looked up, on the CPU.
    let weights = loader::streamable(&gguf, types).filter(|t| t.name != "token_embd.weight");
    let weights: u64 = weights.map(|t| t.bytes).sum();
    let by_loader = loader::load(Arc::new(gguf), backend().heap(), types, false, |_| {});
    let by_loader = by_loader.unwrap().reads;

    let (reads, direct) = load(&path);
    assert_eq!(reads.direct + reads.plain, bytes);
    if by_loader.plain == 0 {
        assert_eq!(reads.direct, weights, "{reads:?}");
        assert_eq!(
            reads.why_plain.as_deref(),
            Some("these tensors are for the CPU")
        );
        // The header is read with what the kernel reads ahead of it.
        assert!(
            page_cache::cached(&path) < whole.len() / 4,
            "{}",
            page_cache::cached(&path)
        );
    } else {
        assert_eq!(reads.why_plain, by_loader.why_plain);
    }
    for (path, why) in [
        (Path::new(&in_memory), "the file is in memory (tmpfs)"),
        (&parts, "llama.cpp reads a model in several files by itself"),
    ] {
        let (reads, plain) = load(path);
        assert_eq!(
            (reads.direct, reads.plain),
            (0, bytes),
            "{}",
            path.display()
        );
        assert_eq!(reads.why_plain.as_deref(), Some(why));
        assert!(plain == direct, "{}: the logits differ", path.display());
    }
}

#[test]
fn a_file_cut_short_while_it_is_loaded_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    // Of the data, nothing; and all but the last byte, which is missed when all reads are under way.
    let size = fs::metadata(FILE).unwrap().len();
    let data = Gguf::open(FILE).unwrap().tensors()[0].file_offset;
    for left in [data, size - 1] {
        fs::copy(FILE, &path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let error = Model::load(&path, Some(backend()), |_| file.set_len(left).unwrap());
        let error = error.err().unwrap();
        assert!(matches!(error, LlamaError::Gguf(_)), "{error}");
        let error = error.to_string();
        assert!(
            error.contains("the file is cut short: data of tensor "),
            "{error}"
        );
        assert!(error.contains(&format!("the file has {left}")), "{error}");
    }
}

#[test]
fn a_text_survives_its_tokens() {
    let model = model();
    let mut stream = TextStream::default();
    let mut text = String::new();
    for token in model.tokenise(TEXT).unwrap() {
        text += &stream.push(&model.piece(token).unwrap());
    }
    assert_eq!(text.trim_start(), TEXT);
    let n_vocab = model.n_vocab();
    for token in [-1, n_vocab as Token] {
        let error = model.piece(token).unwrap_err().to_string();
        assert!(error.contains(&format!("token {token} is not one of the {n_vocab}")));
    }
}

#[test]
fn logits_do_not_depend_on_what_was_before_nor_much_on_the_batch() {
    let model = model();
    let tokens = model.tokenise(TEXT).unwrap();
    let mut whole = context(&model, 128, 128, Outputs::All);
    let first = logits(&mut whole, &tokens);
    assert_eq!(first.len(), tokens.len() * model.n_vocab());
    whole.clear();
    assert_eq!(logits(&mut whole, &tokens), first);

    // Attention on the CPU takes another way for other batches.
    let mut parts = context(&model, 128, 5, Outputs::All);
    let error = nmse(&logits(&mut parts, &tokens), &first);
    assert!(error < 1e-3, "NMSE {error:e}");

    let mut last = context(&model, 128, 128, Outputs::Last);
    let last = logits(&mut last, &tokens);
    let of_last = &first[first.len() - model.n_vocab()..];
    assert!(nmse(&last, of_last) < 1e-3);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_lost() {
    let model = model();
    let mut context = context(&model, 256, 64, Outputs::Last);
    let tokens = vec![5; 257];
    match context.decode(&tokens, |_, _| {}) {
        Err(LlamaError::TooLong {
            tokens: 257,
            n_ctx: 256,
        }) => {}
        other => panic!("{other:?}"),
    }
    let bad = [5, model.n_vocab() as Token];
    assert!(matches!(
        context.decode(&bad, |_, _| {}),
        Err(LlamaError::Token { .. })
    ));
    context.decode(&tokens[..256], |_, _| {}).unwrap();
    assert!(matches!(
        context.decode(&[5], |_, _| {}),
        Err(LlamaError::TooLong { tokens: 257, .. })
    ));
}

#[test]
fn a_seed_makes_a_draw_repeatable() {
    let model = model();
    let prompt = model.tokenise("Once upon a time").unwrap();
    let generate = |temperature, seed| -> Vec<Token> {
        let mut context = context(&model, 64, 64, Outputs::Last);
        let mut sampler = Sampler::new(temperature, seed);
        context.decode(&prompt, |_, _| {}).unwrap();
        (0..16)
            .map(|_| {
                let token = sampler.sample(&context);
                context.decode(&[token], |_, _| {}).unwrap();
                token
            })
            .collect()
    };
    assert_eq!(generate(1.0, 3), generate(1.0, 3));
    assert_ne!(generate(1.0, 3), generate(1.0, 4));
    assert_eq!(generate(0.0, 3), generate(0.0, 4));
}

#[test]
fn a_file_that_is_no_model_is_an_error_with_its_reason() {
    let load = |path: &Path| Model::load(path, Some(backend()), |_| {}).err().unwrap();
    let missing = load(Path::new("no such file.gguf")).to_string();
    assert!(missing.contains("no such file.gguf"), "{missing}");

    // Sound to the last byte, but of an architecture that llama.cpp does not know.
    let mut bytes = std::fs::read(FILE).unwrap();
    let key = b"general.architecture";
    let at = bytes.windows(key.len()).position(|w| w == key).unwrap() + key.len();
    // The value: its type (4 bytes), its length (8 bytes), then the text.
    bytes[at + 12] = b'#';
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let unknown = load(file.path()).to_string();
    assert!(unknown.contains("unknown model architecture"), "{unknown}");
}
