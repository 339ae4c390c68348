//! Models and contexts on the behavioural model, with the built-in model's file.

#![cfg(feature = "llama")]

mod ggml_support;

use std::path::Path;
use std::sync::OnceLock;

use ggml_support::{nmse, strict};
use weightstream::driver::Accelerator;
use weightstream::ggml::Registration;
use weightstream::llama::{
    Context, ContextOptions, LlamaError, Model, Outputs, Sampler, TextStream, Token, register,
};
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
