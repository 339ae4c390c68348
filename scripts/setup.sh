#!/usr/bin/env bash
# Installs what the build and the tests need on Debian 12, beside cargo, and the packages that are
# named as arguments. Does nothing where it is all there. Called by demo.sh and test.sh.
set -euo pipefail

packages=(
  g++ cmake libclang-dev # llama.cpp and its bindings
  verilator perl make zlib1g-dev lcov # the RTL as C++, its coverage
  python3-pip python3-venv # golden vectors' generator, test models
  "$@"
)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if ((${#missing[@]})); then
  as_root=()
  ((EUID == 0)) || as_root=(sudo)
  echo "installing: ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -q >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
fi
command -v cargo >/dev/null || {
  echo "cargo is not on the PATH; see https://rustup.rs" >&2
  exit 1
}
