// What Rust sees of the harness. No exception leaves a Handle: a call returns whether it went
// well, and `fault` tells why not.
#pragma once

#include <memory>

#include "engine.h"
#include "rust/cxx.h"

namespace ws {

struct Options;
struct FaultData;
struct BeatData;

class Handle {
  public:
    Handle(const Config& config, const Options& options);

    bool ok() const { return engine_ != nullptr; }
    bool read32(uint32_t addr, uint32_t& value);
    bool write32(uint32_t addr, uint32_t value);
    bool run(uint64_t cycles, uint32_t lines, uint32_t& levels);
    bool reset(uint32_t cycles);
    bool trace_start(rust::Str path, uint64_t first, uint64_t end);
    bool trace_stop();
    FaultData fault() const;

    uint64_t now() const { return engine_->now(); }
    uint32_t lines() const { return engine_->lines(); }
    std::array<uint64_t, kAxiChannels> beats() const { return engine_->beats(); }

    void inject(uint8_t channel, uint64_t first, uint64_t length, bool decode_error);
    void clear_injected() { engine_->memory().clear_injected(); }
    void mute(uint8_t channel) { engine_->memory().mute(Channel(channel)); }
    void unmute() { engine_->memory().unmute(); }
    void log_beats(bool on) { engine_->memory().log_beats(on); }
    rust::Vec<BeatData> take_beats();

  private:
    template <class F> bool attempt(F f);

    std::unique_ptr<Engine> engine_;
    Fault fault_{FaultKind::Internal};
};

// The model of that name in this binary; null if there is none.
const Config* find_config(rust::Str name);
// The model in a shared object, which stays loaded. Throws a std::runtime_error if it cannot be
// loaded or was made by another harness than `harness`.
const Config* load_config(rust::Str path, rust::Str harness);
uint32_t bus_bytes(const Config* config);
std::unique_ptr<Handle> create(const Config* config, const Options& options);

}  // namespace ws
