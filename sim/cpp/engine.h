// A simulation, whatever its configuration. Calls run many cycles; a Fault ends one early.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "fault.h"
#include "memory.h"

namespace ws {

struct Settings {
    uint8_t* memory;
    uint64_t length, base;
    Timing timing;
    std::shared_ptr<Dram> dram;  // or none
    uint64_t watchdog;  // cycles
    uint64_t seed;
};

class Engine {
  public:
    virtual ~Engine() = default;

    virtual uint32_t read32(uint32_t addr) = 0;
    virtual void write32(uint32_t addr, uint32_t value) = 0;
    // Runs for `cycles`, or until an interrupt line of `lines` is high. Returns the lines' levels.
    virtual uint32_t run(uint64_t cycles, uint32_t lines) = 0;
    virtual void reset(uint32_t cycles) = 0;

    virtual uint64_t now() const = 0;
    virtual uint32_t lines() const = 0;
    virtual std::array<uint64_t, kAxiChannels> beats() const = 0;
    virtual Memory& memory() = 0;

    // Traces the cycles from `first`, or from now, to before `end`.
    virtual void trace_start(const std::string& path, uint64_t first, uint64_t end) = 0;
    virtual void trace_stop() = 0;
};

struct Config {
    const char* name;
    unsigned bus_bytes;
    std::unique_ptr<Engine> (*make)(const Settings&);
};

// Ends with a null name.
extern const Config kConfigs[];

// What a shared object made by src/dut exports as `ws_dut`. `harness` stands for the sources it was
// compiled with: its classes are laid out as ours only if these are the same.
struct Dut {
    const char* harness;
    Config config;
};

}  // namespace ws
