//! Holds the structs in `ggml::abi` against ggml's own header: a C compiler checks every size and
//! offset, and the numbers of the enumerations.

#![cfg(feature = "llama")]

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use weightstream::ggml::abi::{self, v3};

/// The folder of llama.cpp's sources, in the package that is linked.
fn llama_cpp() -> PathBuf {
    // Only this platform's packages: those have been fetched to build the test.
    let rustc = Command::new("rustc")
        .arg("-vV")
        .output()
        .expect("rustc runs");
    let rustc = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host = rustc
        .lines()
        .find_map(|l| l.strip_prefix("host: "))
        .unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--all-features"])
        .args(["--locked", "--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {text}");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages
        .iter()
        .find(|p| p["name"] == "llama-cpp-sys-2")
        .expect("the package is a dependency");
    Path::new(package["manifest_path"].as_str().unwrap()).with_file_name("llama.cpp")
}

/// Lets the C compiler check `source` against ggml's headers; its messages if it refuses.
fn compile(name: &str, source: &str) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    std::fs::write(&file, source).unwrap();
    let ggml = llama_cpp().join("ggml");
    let output = Command::new(std::env::var_os("CC").unwrap_or("cc".into()))
        .args(["-std=c11", "-fsyntax-only"])
        .arg("-I")
        .arg(ggml.join("include"))
        .arg("-I")
        .arg(ggml.join("src"))
        .arg(&file)
        .output()
        .expect("a C compiler runs");
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

const INCLUDES: &str =
    "#include <stddef.h>\n#include <stdalign.h>\n#include \"ggml-backend-impl.h\"\n";

/// Assertions that C's `name` is laid out as `$rust`, field by field. A field whose name is a
/// keyword in one of the languages is given for both.
macro_rules! layout {
    ($source:ident, $rust:ty, $name:literal, whole, $($field:ident),* $(; $rust_field:ident = $c_field:literal),*) => {
        writeln!($source, "_Static_assert(sizeof({}) == {}, \"size of {}\");",
            $name, size_of::<$rust>(), $name).unwrap();
        layout!($source, $rust, $name, start, $($field),* $(; $rust_field = $c_field),*);
    };
    ($source:ident, $rust:ty, $name:literal, start, $($field:ident),* $(; $rust_field:ident = $c_field:literal),*) => {
        $(check_field(&mut $source, $name, stringify!($field), offset_of!($rust, $field));)*
        $(check_field(&mut $source, $name, $c_field, offset_of!($rust, $rust_field));)*
    };
}

fn check_field(source: &mut String, name: &str, field: &str, offset: usize) {
    writeln!(
        source,
        "_Static_assert(offsetof({name}, {field}) == {offset}, \"offset of {field} in {name}\");"
    )
    .unwrap();
}

fn assertions() -> String {
    let mut source = String::from(INCLUDES);
    layout!(source, abi::Tensor, "struct ggml_tensor", whole,
        buffer, ne, nb, op, op_params, flags, src, view_src, view_offs, data, name, extra, padding;
        type_ = "type");
    layout!(
        source,
        v3::BufferTypeInterface,
        "struct ggml_backend_buffer_type_i",
        whole,
        get_name,
        alloc_buffer,
        alloc_buffer_n,
        get_alignment,
        get_max_size,
        get_alloc_size,
        get_alloc_size_n,
        is_host
    );
    layout!(
        source,
        v3::BufferType,
        "struct ggml_backend_buffer_type",
        whole,
        iface,
        device,
        context
    );
    layout!(
        source,
        abi::BufferInterface,
        "struct ggml_backend_buffer_i",
        whole,
        free_buffer,
        get_base,
        init_tensor,
        memset_tensor,
        set_tensor,
        get_tensor,
        set_tensor_2d,
        get_tensor_2d,
        cpy_tensor,
        clear,
        reset
    );
    layout!(
        source,
        abi::Buffer,
        "struct ggml_backend_buffer",
        whole,
        iface,
        buft,
        context,
        size,
        usage
    );
    layout!(
        source,
        abi::BackendInterface,
        "struct ggml_backend_i",
        whole,
        get_name,
        free,
        set_tensor_async,
        get_tensor_async,
        set_tensor_2d_async,
        get_tensor_2d_async,
        cpy_tensor_async,
        synchronize,
        graph_plan_create,
        graph_plan_free,
        graph_plan_update,
        graph_plan_compute,
        graph_compute,
        event_record,
        event_wait,
        graph_optimize
    );
    layout!(
        source,
        abi::Backend,
        "struct ggml_backend",
        whole,
        guid,
        iface,
        device,
        context
    );
    layout!(source, abi::DeviceCaps, "struct ggml_backend_dev_caps", whole,
        host_buffer, buffer_from_host_ptr, events, mmap_support; async_ = "async");
    layout!(source, abi::DeviceProps, "struct ggml_backend_dev_props", whole,
        name, description, memory_free, memory_total, device_id, caps; type_ = "type");
    layout!(
        source,
        abi::DeviceInterface,
        "struct ggml_backend_device_i",
        whole,
        get_name,
        get_description,
        get_memory,
        get_type,
        get_props,
        init_backend,
        get_buffer_type,
        get_host_buffer_type,
        buffer_from_host_ptr,
        supports_op,
        supports_buft,
        offload_op,
        event_new,
        event_free,
        event_synchronize
    );
    layout!(
        source,
        abi::Device,
        "struct ggml_backend_device",
        whole,
        iface,
        reg,
        context
    );
    layout!(
        source,
        abi::RegInterface,
        "struct ggml_backend_reg_i",
        whole,
        get_name,
        get_device_count,
        get_device,
        get_proc_address
    );
    layout!(
        source,
        abi::Reg,
        "struct ggml_backend_reg",
        whole,
        api_version,
        iface,
        context
    );
    // Seen through a pointer only, so its end does not matter.
    layout!(
        source,
        abi::TypeTraits,
        "struct ggml_type_traits",
        start,
        type_name,
        blck_size,
        blck_size_interleave,
        type_size,
        is_quantized,
        to_float
    );

    let numbers = [
        (
            "GGML_BACKEND_API_VERSION",
            i64::from(v3::VERSION.api_version),
        ),
        ("GGML_MAX_DIMS", abi::MAX_DIMS as i64),
        ("GGML_MAX_SRC", abi::MAX_SRC as i64),
        ("GGML_MAX_OP_PARAMS", abi::MAX_OP_PARAMS as i64),
        ("GGML_MAX_NAME", abi::MAX_NAME as i64),
        ("GGML_TYPE_F32", i64::from(abi::TYPE_F32)),
        ("GGML_TYPE_I32", i64::from(abi::TYPE_I32)),
        ("GGML_STATUS_FAILED", i64::from(abi::STATUS_FAILED)),
        ("GGML_STATUS_SUCCESS", i64::from(abi::STATUS_SUCCESS)),
        (
            "GGML_BACKEND_DEVICE_TYPE_ACCEL",
            i64::from(abi::DEVICE_TYPE_ACCEL),
        ),
        (
            "GGML_BACKEND_BUFFER_USAGE_WEIGHTS",
            i64::from(abi::BUFFER_USAGE_WEIGHTS),
        ),
        (
            "GGML_TENSOR_FLAG_COMPUTE",
            i64::from(abi::TENSOR_FLAG_COMPUTE),
        ),
    ];
    for (name, value) in numbers {
        writeln!(source, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    for ty in weightstream::quant::WeightType::all() {
        let (name, number) = (ty.name(), ty.ggml());
        writeln!(
            source,
            "_Static_assert(GGML_TYPE_{name} == {number}, \"{name}\");"
        )
        .unwrap();
    }
    source
}

#[test]
fn the_structs_are_laid_out_as_ggml_s() {
    let source = assertions();
    assert!(source.matches("offsetof").count() > 100);
    compile("layout.c", &source).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_wrong_offset_is_found() {
    let mut source = assertions();
    check_field(
        &mut source,
        "struct ggml_tensor",
        "data",
        offset_of!(abi::Tensor, data) + 8,
    );
    let messages = compile("wrong.c", &source).unwrap_err();
    assert!(
        messages.contains("offset of data in struct ggml_tensor"),
        "{messages}"
    );
}
