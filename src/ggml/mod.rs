//! The ggml backend: llama.cpp's matrix products on an [`Accelerator`].
//!
//! One device of type ACCEL, which llama.cpp uses together with its CPU backend and without a
//! flag; one buffer type, whose memory is the accelerator's DMA heap and whose layout is ggml's
//! own; and the operations MUL_MAT and MUL_MAT_ID for the weight types of the kernel. Everything
//! else stays on the CPU, in the same memory.
//!
//! Modules: [`abi`] (what ggml passes), [`api`] (what is called of ggml), `device` and `buffer` (the
//! interfaces that ggml calls), `placement` (which weights go to DMA memory), `file` (how a file's
//! bytes get there), `ops` (what a node asks), `chain` (nodes to jobs), `profile` (where the time
//! goes).

pub mod abi;
pub mod api;
mod buffer;
mod chain;
mod device;
mod file;
mod ops;
mod placement;
mod profile;

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::dma::Heap;
use crate::driver::{Accelerator, Capabilities, Stats};
use crate::gguf::{Gguf, GgufError};
use crate::loader::Reads;
use crate::profile::Profile as Recording;
use crate::quant::WeightType;
use crate::sample::Tally;
use crate::target::Activity;

use file::ModelFile;
use placement::Placement;
use profile::Profiler;

pub use api::{Api, GgmlError};
pub use placement::Plan;
pub use profile::{Profile, Steps};

/// A backend that ggml can register. ggml keeps pointers to it for the life of the process, so it
/// is never dropped.
#[derive(Clone, Copy)]
pub struct Registration(&'static Shared);

/// Everything behind the interfaces. ggml's structs point to it by their context.
pub struct Shared {
    api: Api,
    ops: api::Ops,
    name: CString,
    description: CString,
    capabilities: Capabilities,
    heap: Heap,
    accelerator: Mutex<Accelerator>,
    gather: AtomicBool,
    placement: Mutex<Placement>,
    file: Mutex<Option<ModelFile>>,
    profiler: Mutex<Profiler>,
    log_profile: AtomicBool,
    left_to_cpu: Mutex<BTreeMap<String, LeftToCpu>>,
    last_error: Mutex<Option<String>>,
    interfaces: OnceLock<Interfaces>,
}

/// The structs that ggml holds pointers to.
struct Interfaces {
    reg: *mut abi::Reg,
    device: *mut abi::Device,
    buffer_type: *mut abi::BufferType,
}

// SAFETY: ggml's structs are written once, before they are published; what their functions change
// lies behind mutexes in `Shared`.
unsafe impl Send for Interfaces {}
// SAFETY: as above.
unsafe impl Sync for Interfaces {}

/// A weight of a matrix product that is not the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftToCpu {
    /// ggml's name of its type.
    pub type_name: String,
    pub bytes: u64,
    /// What the kernel or the DMA memory lacks, or that the user wants it so.
    pub reason: String,
}

impl Registration {
    /// A backend named `name` on `accelerator`, for the ggml whose functions `api` holds.
    ///
    /// # Errors
    /// [`GgmlError`] if the backend does not know this ggml.
    pub fn new(api: Api, name: &str, accelerator: Accelerator) -> Result<Registration, GgmlError> {
        let (abi, ops) = api.check()?;
        let capabilities = accelerator.capabilities();
        let description = format!(
            "streaming kernel, {}-bit bus, {} blocks a cycle",
            capabilities.bus_bytes * 8,
            capabilities.blocks_per_cycle
        );
        let c_string = |s: &str| CString::new(s.replace('\0', "")).expect("without NUL");
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            api,
            ops,
            name: c_string(name),
            description: c_string(&description),
            capabilities,
            heap: accelerator.heap().clone(),
            accelerator: Mutex::new(accelerator),
            gather: AtomicBool::new(false),
            placement: Mutex::default(),
            file: Mutex::default(),
            profiler: Mutex::default(),
            log_profile: AtomicBool::new(false),
            left_to_cpu: Mutex::default(),
            last_error: Mutex::default(),
            interfaces: OnceLock::new(),
        }));
        shared
            .interfaces
            .get_or_init(|| device::interfaces(shared, abi));
        Ok(Registration(shared))
    }

    /// What `ggml_backend_register` takes, and a loadable backend's `ggml_backend_init` returns.
    pub fn reg(self) -> *mut abi::Reg {
        self.0.interfaces().reg
    }

    /// The one device.
    pub fn device(self) -> *mut abi::Device {
        self.0.interfaces().device
    }

    /// Whether GET_ROWS of weights is taken, too: rows are dequantised on the CPU, in place. Set
    /// while a model with tied embeddings is loaded, it puts them into DMA memory once, where the
    /// output's MUL_MAT needs them; otherwise llama.cpp keeps a second copy for the lookup.
    pub fn set_gather(self, on: bool) {
        self.0.gather.store(on, Ordering::Relaxed);
    }

    /// Leaves weights whose names match one of `patterns` to the CPU, in models loaded from now on.
    pub fn leave_to_cpu(self, patterns: Vec<glob::Pattern>) {
        lock(&self.0.placement).leave_to_cpu(patterns);
    }

    /// Places the weights of the model that is loaded next as [`Plan`] says: `weights` are those of
    /// its matrix products, name, ggml's type and bytes, in the file's order. Without a plan (None,
    /// and at first) each weight is placed as the loader comes to it.
    pub fn plan<'a>(self, weights: Option<impl Iterator<Item = (&'a str, u32, u64)>>) {
        let file = lock(&self.0.file);
        let footprint = |name: &str, bytes: u64| match &*file {
            Some(file) => file.footprint(name, bytes as usize) as u64,
            None => bytes,
        };
        let mut placement = lock(&self.0.placement);
        let plan = weights.map(|weights| {
            let takes = |ty: u32| {
                WeightType::from_ggml(ty).is_some_and(|t| self.0.capabilities.types & t.mask() != 0)
            };
            let candidates = weights
                .filter(|&(name, ty, _)| takes(ty) && !placement.is_excluded(name))
                .map(|(name, _, bytes)| (name, footprint(name, bytes)));
            Plan::new(candidates, self.0.heap.free())
        });
        placement.follow(plan);
    }

    /// From here to [`Registration::end_file`] `gguf`, which is one file, is loaded: its tensors are
    /// placed in DMA memory such that [`Registration::read`] can read them straight into it.
    pub fn begin_file(self, gguf: Arc<Gguf>) {
        let file = ModelFile::new(gguf);
        *lock(&self.0.file) = Some(file);
    }

    /// Starts to read tensor number `tensor` of the file that is being loaded to where ggml allocated
    /// it in DMA memory: there it is after [`Registration::end_file`]. False if ggml did not, and who
    /// wants it has to read it; None if it, or one before, could not be read.
    pub fn read(self, tensor: usize) -> Option<bool> {
        let mut file = lock(&self.0.file);
        file.as_mut()?.read(tensor).ok()
    }

    /// Ends a load: how the file was read.
    ///
    /// # Errors
    /// If the file was cut short since it was opened, or could not be read.
    pub fn end_file(self) -> Result<Reads, GgufError> {
        let file = lock(&self.0.file).take();
        file.map_or(Ok(Reads::default()), ModelFile::finish)
    }

    /// Weights of matrix products that ggml asked about and that are left to the CPU, by name.
    pub fn left_to_cpu(self) -> BTreeMap<String, LeftToCpu> {
        lock(&self.0.left_to_cpu).clone()
    }

    /// Why the last call of ggml failed; taken once.
    pub fn take_error(self) -> Option<String> {
        lock(&self.0.last_error).take()
    }

    /// Records what each job takes from now on ([`Registration::take_recording`]).
    pub fn record(self) {
        lock(&self.0.accelerator).set_log(true);
        lock(&self.0.profiler).record();
    }

    /// Ends the recording, and gives it if one was made. `target` and `model` name what ran, and
    /// a cycle, where there is one, is counted as one at `clock_mhz`.
    pub fn take_recording(self, target: &str, model: &str, clock_mhz: f64) -> Option<Recording> {
        let mut accelerator = lock(&self.0.accelerator);
        accelerator.set_log(false);
        let recorder = lock(&self.0.profiler).take_recording()?;
        Some(recorder.finish(Recording {
            weightstream_profile: crate::profile::VERSION,
            target: target.into(),
            model: model.into(),
            engines: accelerator.engines(),
            bus_bytes: self.0.capabilities.bus_bytes,
            blocks_per_cycle: self.0.capabilities.blocks_per_cycle,
            clock_mhz: Some(clock_mhz),
            simulator_seconds: accelerator.activity().map(|a| a.seconds),
            tensors: Vec::new(),
            steps: Vec::new(),
        }))
    }

    /// Where the time went so far.
    pub fn profile(self) -> Profile {
        lock(&self.0.profiler).profile()
    }

    /// Whether the profile is logged whenever ggml frees a backend, as it does with a context.
    pub fn set_log_profile(self, on: bool) {
        self.0.log_profile.store(on, Ordering::Relaxed);
    }

    pub fn heap(self) -> &'static Heap {
        &self.0.heap
    }

    pub fn capabilities(self) -> Capabilities {
        self.0.capabilities
    }

    /// The accelerator's totals.
    pub fn stats(self) -> Stats {
        lock(&self.0.accelerator).stats()
    }

    /// Engines that share the rows.
    pub fn engines(self) -> usize {
        lock(&self.0.accelerator).engines()
    }

    /// What was sampled since the last call ([`Accelerator::take_sample`]).
    pub fn take_sample(self) -> Option<Tally> {
        lock(&self.0.accelerator).take_sample()
    }

    /// What a cycle-accurate target did so far.
    pub fn activity(self) -> Option<Activity> {
        lock(&self.0.accelerator).activity()
    }
}

impl Shared {
    /// The state behind an interface.
    ///
    /// # Safety
    /// `context` is the context of one of the structs in [`Interfaces`].
    unsafe fn from_context(context: *mut c_void) -> &'static Shared {
        // SAFETY: these contexts point to the leaked `Shared`.
        unsafe { &*context.cast::<Shared>() }
    }

    fn as_context(&'static self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn interfaces(&self) -> &Interfaces {
        self.interfaces.get().expect("set by Registration::new")
    }

    fn buffer_type(&self) -> *mut abi::BufferType {
        self.interfaces().buffer_type
    }

    fn api(&self) -> &Api {
        &self.api
    }

    fn heap(&self) -> &Heap {
        &self.heap
    }

    fn name_ptr(&self) -> *const c_char {
        self.name.as_ptr()
    }

    /// Memory is being allocated: a load, if one is under way, has all its answers.
    fn end_load(&self) {
        let Some(taken) = lock(&self.placement).end_load() else {
            return;
        };
        log::info!(
            "{} weights, {:.1} MB, go to DMA memory",
            taken.weights,
            taken.bytes as f64 / 1e6
        );
        let mut reasons: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        for left in lock(&self.left_to_cpu).values() {
            let what = format!("{}: {}", left.type_name, left.reason);
            let (weights, bytes) = reasons.entry(what).or_default();
            *weights += 1;
            *bytes += left.bytes;
        }
        for (what, (weights, bytes)) in reasons {
            let megabytes = bytes as f64 / 1e6;
            log::info!("left to the CPU: {weights} weights, {megabytes:.1} MB in {what}");
        }
    }

    /// A backend is freed.
    fn end_backend(&self) {
        if self.log_profile.load(Ordering::Relaxed) {
            let profile = lock(&self.profiler).profile();
            profile.to_string().lines().for_each(|l| log::info!("{l}"));
        }
    }

    fn gather(&self) -> bool {
        self.gather.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Logs an error and keeps it for whoever called ggml, which passes on no more than a status.
fn report(shared: &Shared, error: String) {
    log::error!("{error}");
    *lock(&shared.last_error) = Some(error);
}

/// Runs `f`; a panic, which must not unwind into C, is logged and becomes `fallback`.
fn guard<T>(function: &str, fallback: T, f: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        log::error!("{function} panicked: {}", text.unwrap_or("no message"));
        fallback
    })
}
