#!/usr/bin/env bash
# Sets up, builds, and generates text from the built-in model: on the Verilated RTL, cycle by cycle,
# then on the behavioural model.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cargo build --release --locked
for target in rtl model; do
  echo "== $target" >&2
  target/release/weightstream run --target "$target" -n 48
done
