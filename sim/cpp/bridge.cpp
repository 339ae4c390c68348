#include "bridge.h"

#include "weightstream-sim/src/bridge.rs.h"

namespace ws {
namespace {

const Config* find(rust::Str name) {
    for (const Config* c = kConfigs; c->name; ++c) {
        if (std::string_view(c->name) == std::string_view(name.data(), name.size())) return c;
    }
    return nullptr;
}

Settings settings(const Options& o) {
    return {reinterpret_cast<uint8_t*>(o.memory), o.length, o.base,
            Timing{o.latency, o.max_outstanding, o.bandwidth_beats, o.bandwidth_cycles,
                   o.refresh_interval, o.refresh_cycles, o.stall},
            o.watchdog, o.seed};
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

uint32_t config_bus_bytes(rust::Str name) {
    const Config* config = find(name);
    return config ? config->bus_bytes : 0;
}

std::unique_ptr<Handle> create(rust::Str name, const Options& options) {
    const Config* config = find(name);
    if (!config) return nullptr;
    return std::unique_ptr<Handle>(new Handle(*config, options));
}

}  // namespace ws
