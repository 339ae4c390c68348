//! The border to C++ (`cpp/bridge.h`).

#[cxx::bridge(namespace = "ws")]
pub(crate) mod ffi {
    /// What a simulation is made with. Units as in [`crate::SimOptions`].
    struct Options {
        memory: usize,
        length: u64,
        base: u64,
        latency: u32,
        max_outstanding: u32,
        bandwidth_beats: u32,
        bandwidth_cycles: u32,
        refresh_interval: u32,
        refresh_cycles: u32,
        stall: [u32; 15],
        /// A [`weightstream_memory::Setting`] as it is written, or nothing.
        dram: String,
        watchdog: u64,
        seed: u64,
    }

    /// Why a call did not go well.
    struct FaultData {
        kind: u8,
        channel: u8,
        cycle: u64,
        line: u32,
        file: String,
        message: String,
    }

    /// A data beat of a memory port ([`crate::Beat`]).
    struct BeatData {
        channel: u8,
        cycle: u64,
        addr: u64,
        stalled: u32,
    }

    extern "Rust" {
        type DramModel;

        /// The DRAM of a setting.
        fn dram_model(setting: &str) -> Result<Box<DramModel>>;
        fn read(self: &mut DramModel, now: u64, addr: u64, beat_bytes: u32, ready: &mut [u64]);
        fn write(self: &mut DramModel, now: u64, addr: u64, bytes: u32) -> u64;
    }

    unsafe extern "C++" {
        include!("weightstream-sim/cpp/bridge.h");

        /// A model that simulations can be made of.
        type Config;
        type Handle;

        /// The model of that name in this binary, or null.
        fn find_config(name: &str) -> *const Config;
        /// The model in a shared object made by `dut`, which stays loaded.
        fn load_config(path: &str, harness: &str) -> Result<*const Config>;
        /// # Safety
        /// `config` came from one of the two above and is not null.
        unsafe fn bus_bytes(config: *const Config) -> u32;
        /// # Safety
        /// As above.
        unsafe fn create(config: *const Config, options: &Options) -> UniquePtr<Handle>;

        fn ok(self: &Handle) -> bool;
        fn read32(self: Pin<&mut Handle>, addr: u32, value: &mut u32) -> bool;
        fn write32(self: Pin<&mut Handle>, addr: u32, value: u32) -> bool;
        fn run(self: Pin<&mut Handle>, cycles: u64, lines: u32, levels: &mut u32) -> bool;
        fn reset(self: Pin<&mut Handle>, cycles: u32) -> bool;
        fn trace_start(self: Pin<&mut Handle>, path: &str, first: u64, end: u64) -> bool;
        fn trace_stop(self: Pin<&mut Handle>) -> bool;
        fn fault(self: &Handle) -> FaultData;

        fn now(self: &Handle) -> u64;
        fn lines(self: &Handle) -> u32;
        fn beats(self: &Handle) -> [u64; 15];

        fn inject(self: Pin<&mut Handle>, channel: u8, first: u64, length: u64, decode_error: bool);
        fn clear_injected(self: Pin<&mut Handle>);
        fn mute(self: Pin<&mut Handle>, channel: u8);
        fn unmute(self: Pin<&mut Handle>);
        fn log_beats(self: Pin<&mut Handle>, on: bool);
        fn take_beats(self: Pin<&mut Handle>) -> Vec<BeatData>;
    }
}

/// [`weightstream_memory::Dram`] across the border.
pub(crate) struct DramModel(weightstream_memory::Dram);

impl DramModel {
    fn read(&mut self, now: u64, addr: u64, beat_bytes: u32, ready: &mut [u64]) {
        self.0.read(now, addr, beat_bytes, ready);
    }

    fn write(&mut self, now: u64, addr: u64, bytes: u32) -> u64 {
        self.0.write(now, addr, bytes)
    }
}

fn dram_model(setting: &str) -> Result<Box<DramModel>, weightstream_memory::SettingError> {
    let dram = weightstream_memory::Dram::new(&setting.parse()?);
    Ok(Box::new(DramModel(dram)))
}
