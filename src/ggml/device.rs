//! The registry entry, the device and the backend: what ggml asks before and while it computes.

use std::ffi::{c_char, c_int, c_void};

use super::abi::{
    Backend, BackendInterface, BufferType, DEVICE_TYPE_ACCEL, Device, DeviceCaps, DeviceInterface,
    DeviceProps, Graph, Reg, RegInterface, STATUS_FAILED, STATUS_SUCCESS, Tensor, Version,
};
use super::{Interfaces, Shared, chain, guard, report};

/// Identifies backends of this kind to ggml.
static GUID: [u8; 16] = *b"weightstream/01\0";

/// Builds ggml's structs around `shared`, as `version` of the interface has them; like it, they
/// live as long as the process.
pub fn interfaces(shared: &'static Shared, version: &Version) -> Interfaces {
    let context = shared.as_context();
    let reg = leak(Reg {
        api_version: version.api_version,
        iface: RegInterface {
            get_name: Some(reg_name),
            get_device_count: Some(reg_device_count),
            get_device: Some(reg_device),
            get_proc_address: None,
        },
        context,
    });
    let device = leak(Device {
        iface: DeviceInterface {
            get_name: Some(device_name),
            get_description: Some(device_description),
            get_memory: Some(device_memory),
            get_type: Some(device_type),
            get_props: Some(device_props),
            init_backend: Some(init_backend),
            get_buffer_type: Some(device_buffer_type),
            get_host_buffer_type: None,
            buffer_from_host_ptr: None,
            supports_op: Some(supports_op),
            supports_buft: Some(supports_buft),
            offload_op: None,
            event_new: None,
            event_free: None,
            event_synchronize: None,
        },
        reg,
        context,
    });
    let buffer_type = (version.buffer_type)((version.buffer_type_functions)(), device, context);
    Interfaces {
        reg,
        device,
        buffer_type,
    }
}

fn leak<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

// The functions below get the structs made above from ggml, and `Shared` behind their context.

unsafe fn of_reg(reg: *mut Reg) -> &'static Shared {
    // SAFETY: see above.
    unsafe { Shared::from_context((*reg).context) }
}

unsafe fn of_device(device: *mut Device) -> &'static Shared {
    // SAFETY: see above.
    unsafe { Shared::from_context((*device).context) }
}

unsafe extern "C" fn reg_name(reg: *mut Reg) -> *const c_char {
    unsafe { of_reg(reg) }.name_ptr()
}

unsafe extern "C" fn reg_device_count(_: *mut Reg) -> usize {
    1
}

unsafe extern "C" fn reg_device(reg: *mut Reg, index: usize) -> *mut Device {
    match index {
        0 => unsafe { of_reg(reg) }.interfaces().device,
        _ => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn device_name(device: *mut Device) -> *const c_char {
    unsafe { of_device(device) }.name_ptr()
}

unsafe extern "C" fn device_description(device: *mut Device) -> *const c_char {
    unsafe { of_device(device) }.description.as_ptr()
}

unsafe extern "C" fn device_memory(device: *mut Device, free: *mut usize, total: *mut usize) {
    let heap = unsafe { of_device(device) }.heap();
    unsafe {
        *free = heap.free() as usize;
        *total = heap.total() as usize;
    }
}

unsafe extern "C" fn device_type(_: *mut Device) -> u32 {
    DEVICE_TYPE_ACCEL
}

unsafe extern "C" fn device_props(device: *mut Device, props: *mut DeviceProps) {
    let shared = unsafe { of_device(device) };
    let heap = shared.heap();
    let filled = DeviceProps {
        name: shared.name_ptr(),
        description: shared.description.as_ptr(),
        memory_free: heap.free() as usize,
        memory_total: heap.total() as usize,
        type_: DEVICE_TYPE_ACCEL,
        device_id: std::ptr::null(),
        caps: DeviceCaps::default(),
    };
    // SAFETY: ggml passes where it wants them.
    unsafe { props.write(filled) };
}

unsafe extern "C" fn device_buffer_type(device: *mut Device) -> *mut BufferType {
    unsafe { of_device(device) }.buffer_type()
}

unsafe extern "C" fn supports_op(device: *mut Device, op: *const Tensor) -> bool {
    guard("supports_op", false, || unsafe {
        of_device(device).supports(&*op)
    })
}

/// Activations, and weights for GET_ROWS, are read wherever the CPU can read them.
unsafe extern "C" fn supports_buft(device: *mut Device, buft: *mut BufferType) -> bool {
    let shared = unsafe { of_device(device) };
    buft == shared.buffer_type() || unsafe { (shared.api().buft_is_host)(buft) }
}

unsafe extern "C" fn init_backend(device: *mut Device, _params: *const c_char) -> *mut Backend {
    let shared = unsafe { of_device(device) };
    leak(Backend {
        guid: &raw const GUID,
        iface: BackendInterface {
            get_name: Some(backend_name),
            free: Some(backend_free),
            set_tensor_async: None,
            get_tensor_async: None,
            set_tensor_2d_async: None,
            get_tensor_2d_async: None,
            cpy_tensor_async: None,
            synchronize: None,
            graph_plan_create: None,
            graph_plan_free: None,
            graph_plan_update: None,
            graph_plan_compute: None,
            graph_compute: Some(graph_compute),
            event_record: None,
            event_wait: None,
            graph_optimize: None,
        },
        device,
        context: shared.as_context(),
    })
}

unsafe fn of_backend(backend: *mut Backend) -> &'static Shared {
    let context: *mut c_void = unsafe { (*backend).context };
    // SAFETY: set in `init_backend`.
    unsafe { Shared::from_context(context) }
}

unsafe extern "C" fn backend_name(backend: *mut Backend) -> *const c_char {
    unsafe { of_backend(backend) }.name_ptr()
}

unsafe extern "C" fn backend_free(backend: *mut Backend) {
    guard("backend_free", (), || {
        unsafe { of_backend(backend) }.end_backend()
    });
    // SAFETY: made by `leak` in `init_backend`, and freed once.
    drop(unsafe { Box::from_raw(backend) });
}

unsafe extern "C" fn graph_compute(backend: *mut Backend, graph: *mut Graph) -> c_int {
    let shared = unsafe { of_backend(backend) };
    let panicked = Err("graph_compute panicked".to_owned());
    // SAFETY: ggml passes a graph whose tensors are allocated.
    match guard("graph_compute", panicked, || unsafe {
        chain::compute(shared, graph)
    }) {
        Ok(()) => STATUS_SUCCESS,
        Err(e) => {
            report(shared, e);
            STATUS_FAILED
        }
    }
}
