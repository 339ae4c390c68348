// The memory behind the accelerator's AXI ports, and its timing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fault.h"

namespace ws {

// xorshift64*: the random stalls, repeatable from a seed.
class Rng {
  public:
    explicit Rng(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du) {
        if (state_ == 0) state_ = 1;
    }
    uint32_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return uint32_t((state_ * 0x2545F4914F6CDD1Du) >> 32);
    }

  private:
    uint64_t state_;
};

// Units are clock cycles unless said otherwise.
struct Timing {
    uint32_t latency;           // address (or last write data) taken to first response, at least 1
    uint32_t max_outstanding;   // bursts taken and not yet answered, of each kind on each port
    uint32_t bandwidth_beats;   // at most so many data beats of all ports together ...
    uint32_t bandwidth_cycles;  // ... in so many cycles; 0 is no limit
    uint32_t refresh_interval;  // every so many cycles; 0 is never
    uint32_t refresh_cycles;    // no data moves for so many
    std::array<uint32_t, kAxiChannels> stall;  // chance of a stall in a cycle, in 2^-32
};

// DRAM behind the ports: it says when data comes, in cycles. In place of a fixed latency.
class Dram {
  public:
    virtual ~Dram() = default;
    // A burst's address is taken in cycle `now`: from when on each of its beats may be given.
    virtual void read(uint64_t now, uint64_t addr, uint32_t beat_bytes, uint64_t* ready,
                      uint32_t beats) = 0;
    // A burst's last data is taken in cycle `now`: from when on its response may be given.
    virtual uint64_t write(uint64_t now, uint64_t addr, uint32_t bytes) = 0;
};

// A data beat of a memory port.
struct Beat {
    Channel channel;
    uint64_t cycle;    // in which it moved
    uint64_t addr;     // of the bus word
    uint32_t stalled;  // cycles before, in which it was due and the memory held it back
};

enum Response : uint8_t { kOkay = 0, kSlvErr = 2, kDecErr = 3 };

// What all ports share: the bytes, the limits, the injected faults.
class Memory {
  public:
    Memory(uint8_t* data, uint64_t length, uint64_t base, const Timing& timing,
           std::shared_ptr<Dram> dram, uint64_t seed)
        : timing(timing), dram(std::move(dram)), data_(data), length_(length), base_(base),
          rng_(seed) {
        for (uint32_t s : timing.stall) stalls_ |= s != 0;
        for (auto& byte : garbage_) byte = uint8_t(rng_.next());
    }

    const Timing timing;
    const std::shared_ptr<Dram> dram;  // or none

    // DRAM's addresses begin where the memory does.
    uint64_t offset(uint64_t addr) const { return addr - base_; }

    // Once a cycle.
    void tick() {
        if (timing.bandwidth_cycles) {
            const uint64_t cap = timing.bandwidth_cycles + timing.bandwidth_beats;
            tokens_ += timing.bandwidth_beats;
            if (tokens_ > cap) tokens_ = cap;
        }
        if (timing.refresh_interval && ++since_refresh_ >= timing.refresh_interval) {
            since_refresh_ = 0;
        }
    }
    // May a data beat move in the coming cycle?
    bool can_move() const {
        if (timing.refresh_interval && since_refresh_ < timing.refresh_cycles) return false;
        return !timing.bandwidth_cycles || tokens_ >= timing.bandwidth_cycles;
    }
    void moved() {
        if (timing.bandwidth_cycles) {
            tokens_ = tokens_ > timing.bandwidth_cycles ? tokens_ - timing.bandwidth_cycles : 0;
        }
    }

    bool stall(Channel channel) {
        if (muted_ >> unsigned(channel) & 1) return true;
        if (!stalls_) return false;
        const uint32_t chance = timing.stall[unsigned(channel)];
        return chance && rng_.next() < chance;
    }
    void mute(Channel channel) { muted_ |= 1u << unsigned(channel); }
    void unmute() { muted_ = 0; }

    void inject(Channel channel, uint64_t first, uint64_t length, Response response) {
        injected_.push_back({channel, first, length, response});
    }
    void clear_injected() { injected_.clear(); }

    Response response(Channel channel, uint64_t addr, uint64_t bytes) const {
        for (const auto& f : injected_) {
            if (f.channel == channel && addr - f.first < f.length) return f.response;
            if (f.channel == channel && addr < f.first && f.first - addr < bytes) return f.response;
        }
        return inside(addr, bytes) ? kOkay : kDecErr;
    }
    // Bytes at a device address; where there are none, something that looks like data.
    const uint8_t* read(uint64_t addr, uint64_t bytes) const {
        return inside(addr, bytes) ? data_ + (addr - base_) : garbage_.data();
    }
    uint8_t* at(uint64_t addr) { return data_ + (addr - base_); }
    const uint8_t* garbage() const { return garbage_.data(); }

    // A log of the data beats that moved, for those who ask for one.
    void log_beats(bool on) { log_on_ = on; }
    void log(const Beat& beat) {
        if (__builtin_expect(log_on_, 0)) log_.push_back(beat);
    }
    std::vector<Beat> take_log() { return std::exchange(log_, {}); }

  private:
    bool inside(uint64_t addr, uint64_t bytes) const {
        const uint64_t offset = addr - base_;
        return addr >= base_ && offset < length_ && bytes <= length_ - offset;
    }
    struct Injected {
        Channel channel;
        uint64_t first, length;
        Response response;
    };

    uint8_t* data_;
    uint64_t length_, base_;
    Rng rng_;
    std::array<uint8_t, 64> garbage_{};
    std::vector<Injected> injected_;
    uint64_t tokens_ = 0;
    uint32_t since_refresh_ = 0, muted_ = 0;
    bool stalls_ = false, log_on_ = false;
    std::vector<Beat> log_;
};

}  // namespace ws
