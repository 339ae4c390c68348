#include "bridge.h"

#include <dlfcn.h>

#include <stdexcept>

#include "weightstream-sim/src/bridge.rs.h"

namespace ws {
namespace {

// The DRAM model, which is Rust's. Models in shared objects reach it by its virtual functions.
class RustDram : public Dram {
  public:
    explicit RustDram(rust::Box<DramModel> model) : model_(std::move(model)) {}
    void read(uint64_t now, uint64_t addr, uint32_t beat_bytes, uint64_t* ready,
              uint32_t beats) override {
        model_->read(now, addr, beat_bytes, rust::Slice<uint64_t>(ready, beats));
    }
    uint64_t write(uint64_t now, uint64_t addr, uint32_t bytes) override {
        return model_->write(now, addr, bytes);
    }

  private:
    rust::Box<DramModel> model_;
};

Settings settings(const Options& o) {
    std::shared_ptr<Dram> dram;
    if (!o.dram.empty()) dram = std::make_shared<RustDram>(dram_model(o.dram));
    return {reinterpret_cast<uint8_t*>(o.memory), o.length, o.base,
            Timing{o.latency, o.max_outstanding, o.bandwidth_beats, o.bandwidth_cycles,
                   o.refresh_interval, o.refresh_cycles, o.stall},
            std::move(dram), o.watchdog, o.seed};
}

}  // namespace

template <class F> bool Handle::attempt(F f) {
    try {
        f();
        return true;
    } catch (const Fault& fault) {
        fault_ = fault;
    } catch (const std::exception& e) {
        fault_ = Fault{FaultKind::Internal, Channel::None, engine_ ? engine_->now() : 0, e.what(),
                       {}, 0};
    }
    return false;
}

Handle::Handle(const Config& config, const Options& options) {
    attempt([&] { engine_ = config.make(settings(options)); });
}

bool Handle::read32(uint32_t addr, uint32_t& value) {
    return attempt([&] { value = engine_->read32(addr); });
}
bool Handle::write32(uint32_t addr, uint32_t value) {
    return attempt([&] { engine_->write32(addr, value); });
}
bool Handle::run(uint64_t cycles, uint32_t lines, uint32_t& levels) {
    return attempt([&] { levels = engine_->run(cycles, lines); });
}
bool Handle::reset(uint32_t cycles) {
    return attempt([&] { engine_->reset(cycles); });
}
bool Handle::trace_start(rust::Str path, uint64_t first, uint64_t end) {
    return attempt([&] { engine_->trace_start(std::string(path), first, end); });
}
bool Handle::trace_stop() {
    return attempt([&] { engine_->trace_stop(); });
}

FaultData Handle::fault() const {
    FaultData data;
    data.kind = uint8_t(fault_.kind);
    data.channel = uint8_t(fault_.channel);
    data.cycle = fault_.cycle;
    data.line = uint32_t(fault_.line);
    data.file = rust::String::lossy(fault_.file);
    data.message = rust::String::lossy(fault_.message);
    return data;
}

void Handle::inject(uint8_t channel, uint64_t first, uint64_t length, bool decode_error) {
    engine_->memory().inject(Channel(channel), first, length, decode_error ? kDecErr : kSlvErr);
}

rust::Vec<BeatData> Handle::take_beats() {
    rust::Vec<BeatData> beats;
    for (const Beat& b : engine_->memory().take_log()) {
        beats.push_back({uint8_t(b.channel), b.cycle, b.addr, b.stalled});
    }
    return beats;
}

const Config* find_config(rust::Str name) {
    for (const Config* c = kConfigs; c->name; ++c) {
        if (std::string_view(c->name) == std::string_view(name.data(), name.size())) return c;
    }
    return nullptr;
}

const Config* load_config(rust::Str path, rust::Str harness) {
    // Its own Verilator runtime must not be bound to ours, nor another object's to it.
    void* object = dlopen(std::string(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!object) throw std::runtime_error(dlerror());
    const Dut* dut = static_cast<const Dut*>(dlsym(object, "ws_dut"));
    if (!dut) {
        dlclose(object);
        throw std::runtime_error("it has no symbol ws_dut, so `weightstream dut build` did not make it");
    }
    if (std::string(harness) != dut->harness) {
        const std::string theirs = dut->harness;
        dlclose(object);
        throw std::runtime_error("it was built with harness " + theirs + ", this is harness " +
                                 std::string(harness) + "; build it again");
    }
    return &dut->config;
}

uint32_t bus_bytes(const Config* config) { return config->bus_bytes; }

std::unique_ptr<Handle> create(const Config* config, const Options& options) {
    return std::unique_ptr<Handle>(new Handle(*config, options));
}

}  // namespace ws
