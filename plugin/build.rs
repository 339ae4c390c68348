//! What the linker is told about the shared object.

fn main() {
    // ggml keeps pointers into it even where it closes it again.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
