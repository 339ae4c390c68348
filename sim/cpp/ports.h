// The memory's side of one AXI4 read or write port. `sample` is called before the clock edge with
// what the accelerator drives, and decides what the port drives after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "checker.h"
#include "memory.h"

namespace ws {

constexpr unsigned kMaxOutstanding = 64;
constexpr unsigned kMaxBeats = 256;  // of an AXI4 burst

template <unsigned Bytes> class ReadPort {
  public:
    ReadPort(Memory& memory, Channel ar, Channel r)
        : memory_(memory), ar_(ar), r_(r), ar_check_(ar, Bytes), r_check_(r),
          ready_(memory.dram ? kMaxOutstanding * kMaxBeats : 0) {}

    // What the port drives
    bool arready = false, rvalid = false, rlast = false;
    uint8_t rresp = kOkay;
    uint64_t ar_beats = 0, r_beats = 0;

    void put_data(void* port) const { memcpy(port, source_, Bytes); }

    void clear() {
        head_ = count_ = beat_ = held_ = 0;
        arready = rvalid = false;
        ar_check_.clear();
        r_check_.clear();
    }

    // `get()` gives the address payload. True when something moved.
    template <class Get>
    bool sample(uint64_t now, bool reset, bool arvalid, bool rready, Get get) {
        ar_check_.cycle(reset, arvalid, arready, get);
        const bool ar = arvalid && arready, r = rvalid && rready;
        if (rvalid) r_check_.cycle(true, rready, rlast, serial_);
        if (ar) {
            const Addr a = get();
            r_check_.due(a.len);
            const uint32_t slot = (head_ + count_++) % kMaxOutstanding;
            Burst& burst = ring_[slot];
            burst = {a.addr & ~uint64_t(Bytes - 1), now + memory_.timing.latency, a.len + 1u};
            if (memory_.dram) {
                memory_.dram->read(now, memory_.offset(burst.addr), Bytes,
                                   &ready_[slot * kMaxBeats], burst.left);
                burst.ready_at = ready_[slot * kMaxBeats];
            }
            ++ar_beats;
        }
        if (r) {
            ++r_beats;
            memory_.log({r_, now, addr_, stalled_});
            rvalid = false;
            if (rlast) {
                head_ = (head_ + 1) % kMaxOutstanding;
                --count_;
            }
        }
        if (!rvalid && count_) next_beat(now + 1);
        arready = !reset && count_ < memory_.timing.max_outstanding && !memory_.stall(ar_);
        return ar | r;
    }

    // The channel that this port is stuck on, if any.
    Channel stuck(bool arvalid) const {
        if (arvalid && !arready) return ar_;
        return count_ ? r_ : Channel::None;
    }

  private:
    struct Burst {
        uint64_t addr, ready_at;
        uint32_t left;
    };

    void next_beat(uint64_t at) {
        Burst& b = ring_[head_];
        if (b.ready_at > at) return;
        if (!memory_.can_move() || memory_.stall(r_)) {
            ++held_;
            return;
        }
        memory_.moved();
        rvalid = true;
        addr_ = b.addr;
        stalled_ = std::exchange(held_, 0);
        rresp = memory_.response(r_, b.addr, Bytes);
        source_ = rresp == kOkay ? memory_.read(b.addr, Bytes) : memory_.garbage();
        b.addr += Bytes;
        rlast = --b.left == 0;
        if (memory_.dram && !rlast) b.ready_at = ready_[head_ * kMaxBeats + ++beat_];
        if (rlast) beat_ = 0;
        ++serial_;
    }

    Memory& memory_;
    Channel ar_, r_;
    AddrChecker ar_check_;
    ReplyChecker r_check_;
    Burst ring_[kMaxOutstanding];
    std::vector<uint64_t> ready_;         // of the beats of each burst, from DRAM
    uint32_t head_ = 0, count_ = 0;
    uint32_t beat_ = 0;                   // of the oldest burst the next to be driven
    uint64_t serial_ = 0;
    uint64_t addr_ = 0;                   // of the beat that is driven
    uint32_t held_ = 0, stalled_ = 0;     // cycles: the coming beat was held back, this one was
    const uint8_t* source_ = memory_.garbage();
};

template <unsigned Bytes> class WritePort {
  public:
    WritePort(Memory& memory, Channel aw, Channel w, Channel b)
        : memory_(memory), aw_(aw), w_(w), b_(b), aw_check_(aw, Bytes), w_check_(w, Bytes),
          b_check_(b), data_(kMaxOutstanding * kPage), strobes_(kMaxOutstanding * kPage / Bytes) {}

    // What the port drives
    bool awready = false, wready = false, bvalid = false;
    uint8_t bresp = kOkay;
    uint64_t aw_beats = 0, w_beats = 0, b_beats = 0;

    void clear() {
        head_ = count_ = filled_ = beat_ = held_ = 0;
        awready = wready = bvalid = false;
        aw_check_.clear();
        w_check_.clear();
        b_check_.clear();
    }

    // `get()` gives the address payload. True when something moved.
    template <class Get>
    bool sample(uint64_t now, bool reset, bool awvalid, bool wvalid, const void* data, uint64_t strb,
                bool wlast, bool bready, Get get) {
        aw_check_.cycle(reset, awvalid, awready, get);
        w_check_.cycle(reset, wvalid, wready, data, strb, wlast);
        const bool aw = awvalid && awready, w = wvalid && wready, b = bvalid && bready;
        if (bvalid) b_check_.cycle(true, bready, true, serial_);
        if (wvalid && !wready && filled_ < count_) ++held_;
        if (w) {
            const uint32_t slot = (head_ + filled_) % kMaxOutstanding;
            memory_.log({w_, now, ring_[slot].addr + uint64_t(beat_) * Bytes, std::exchange(held_, 0)});
            memcpy(&data_[slot * kPage + beat_ * Bytes], data, Bytes);
            strobes_[slot * (kPage / Bytes) + beat_] = strb;
            ++beat_;
            ++w_beats;
            memory_.moved();
            if (wlast) {
                Burst& burst = ring_[slot];
                burst.ready_at = memory_.dram ? memory_.dram->write(now, memory_.offset(burst.addr),
                                                                    burst.beats * Bytes)
                                              : now + memory_.timing.latency;
                b_check_.due(0);
                beat_ = 0;
                ++filled_;
            }
        }
        if (aw) {
            const Addr a = get();
            w_check_.address(a);
            ring_[(head_ + count_++) % kMaxOutstanding] = {a.addr & ~uint64_t(Bytes - 1), 0,
                                                           a.len + 1u};
            ++aw_beats;
        }
        if (b) {
            ++b_beats;
            bvalid = false;
            head_ = (head_ + 1) % kMaxOutstanding;
            --count_;
            --filled_;
        }
        if (!bvalid && filled_ && ring_[head_].ready_at <= now + 1 && !memory_.stall(b_)) {
            bvalid = true;
            ++serial_;
            store();
        }
        awready = !reset && count_ < memory_.timing.max_outstanding && !memory_.stall(aw_);
        wready = filled_ < count_ && memory_.can_move() && !memory_.stall(w_);
        return aw | w | b;
    }

    Channel stuck(bool awvalid, bool wvalid) const {
        if (wvalid && !wready && filled_ < count_) return w_;
        if (awvalid && !awready) return aw_;
        if (filled_) return b_;
        return count_ ? w_ : Channel::None;
    }

  private:
    static constexpr uint32_t kPage = 4096;  // no burst is longer
    struct Burst {
        uint64_t addr, ready_at;
        uint32_t beats;
    };

    // Writes become visible with their response and not before, as late as AXI allows.
    void store() {
        const uint32_t slot = head_;
        const Burst& burst = ring_[slot];
        bresp = memory_.response(b_, burst.addr, uint64_t(burst.beats) * Bytes);
        if (bresp != kOkay) return;
        constexpr uint64_t kAll = Bytes == 64 ? ~uint64_t(0) : (uint64_t(1) << Bytes % 64) - 1;
        for (uint32_t i = 0; i < burst.beats; ++i) {
            const uint8_t* from = &data_[slot * kPage + i * Bytes];
            uint8_t* to = memory_.at(burst.addr + i * Bytes);
            const uint64_t strb = strobes_[slot * (kPage / Bytes) + i];
            if (strb == kAll) {
                memcpy(to, from, Bytes);
            } else {
                for (unsigned j = 0; j < Bytes; ++j) {
                    if (strb >> j & 1) to[j] = from[j];
                }
            }
        }
    }

    Memory& memory_;
    Channel aw_, w_, b_;
    AddrChecker aw_check_;
    DataChecker w_check_;
    ReplyChecker b_check_;
    Burst ring_[kMaxOutstanding];
    std::vector<uint8_t> data_;
    std::vector<uint64_t> strobes_;
    uint32_t head_ = 0, count_ = 0;  // bursts whose address is taken
    uint32_t filled_ = 0;            // of these, whose data has come
    uint32_t beat_ = 0;              // of the burst whose data is coming
    uint32_t held_ = 0;              // cycles that the coming beat was held back
    uint64_t serial_ = 0;
};

}  // namespace ws
