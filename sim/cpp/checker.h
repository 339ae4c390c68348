// AXI protocol checkers. Each looks at one channel once a cycle, before the clock edge, and
// throws a Fault at the first broken rule. Payloads are only compared while a transfer is stalled,
// so a channel that runs costs a few flags.
//
// Rules: valid and payload hold until ready (AXI4 A3.2.1); bursts are INCR, full width
// and within 4 KiB (A3.4.1; the accelerator promises INCR and full width);
// WLAST and RLAST in the last beat and only there; no strobe below an unaligned first byte; no
// response that nothing asked for; valid low during reset (A3.1.2).
#pragma once

#include <cstdint>
#include <cstring>

#include "fault.h"

namespace ws {

struct Addr {
    uint64_t addr;
    uint8_t len, size, burst;
    bool operator==(const Addr& o) const {
        return addr == o.addr && len == o.len && size == o.size && burst == o.burst;
    }
};

// Lengths of bursts whose data is still to come, oldest first.
class BurstQueue {
  public:
    bool empty() const { return head_ == tail_; }
    bool full() const { return tail_ - head_ == kSize; }
    void push(uint8_t len) { ring_[tail_++ % kSize] = len; }
    uint8_t front() const { return ring_[head_ % kSize]; }
    void pop() { ++head_; }
    void clear() { head_ = tail_ = 0; }

  private:
    static constexpr uint32_t kSize = 256;
    uint8_t ring_[kSize];
    uint32_t head_ = 0, tail_ = 0;
};

// AW or AR.
class AddrChecker {
  public:
    AddrChecker(Channel channel, unsigned bytes) : channel_(channel), bytes_(bytes) {
        while ((1u << size_) < bytes) ++size_;
    }
    void clear() { stalled_ = false; }

    // `get()` gives the payload; it is called only when the payload counts.
    template <class Get> void cycle(bool reset, bool valid, bool ready, Get get) {
        if (!valid && !stalled_) return;
        if (reset) violation(channel_, "VALID is high during reset");
        if (!valid) violation(channel_, "VALID fell before READY");
        const Addr now = get();
        if (stalled_) {
            if (!(now == held_)) violation(channel_, "the payload changed before READY");
        } else {
            burst(now);
        }
        stalled_ = !ready;
        held_ = now;
    }

  private:
    void burst(const Addr& a) const {
        if (a.burst != 1) violation(channel_, "BURST is " + std::to_string(a.burst) + ", not INCR");
        if (a.size != size_) {
            violation(channel_, "SIZE is " + std::to_string(a.size) + " on a bus of " +
                                    std::to_string(bytes_) + " bytes");
        }
        const uint64_t last = (a.addr & ~uint64_t(bytes_ - 1)) + (uint64_t(a.len) + 1) * bytes_ - 1;
        if (a.addr >> 12 != last >> 12) violation(channel_, "the burst crosses 4 KiB");
    }

    Channel channel_;
    unsigned bytes_;
    uint8_t size_ = 0;
    bool stalled_ = false;
    Addr held_{};
};

// W. It must be told of every accepted address.
class DataChecker {
  public:
    DataChecker(Channel channel, unsigned bytes) : channel_(channel), bytes_(bytes) {}
    void clear() {
        stalled_ = false;
        beat_ = 0;
        pushed_ = popped_ = 0;
        bursts_.clear();
    }
    // An address is taken.
    void address(const Addr& a) {
        if (bursts_.full()) violation(channel_, "more bursts in flight than the checker can follow");
        bursts_.push(a.len);
        offsets_[pushed_++ % 256] = uint8_t(a.addr & (bytes_ - 1));
    }
    void cycle(bool reset, bool valid, bool ready, const void* data, uint64_t strb, bool last) {
        if (!valid && !stalled_) return;
        if (reset) violation(channel_, "VALID is high during reset");
        if (!valid) violation(channel_, "VALID fell before READY");
        if (stalled_ && (strb != strb_ || last != last_ || memcmp(data, data_, bytes_) != 0)) {
            violation(channel_, "the payload changed before READY");
        }
        stalled_ = !ready;
        if (!ready) {
            memcpy(data_, data, bytes_);
            strb_ = strb;
            last_ = last;
            return;
        }
        // The memory takes data after its address only.
        if (bursts_.empty()) violation(channel_, "data without an address");
        if (beat_ == 0) {
            const unsigned offset = offsets_[popped_ % 256];
            if (strb & ((uint64_t(1) << offset) - 1)) {
                violation(channel_, "WSTRB is set below the first byte of the burst");
            }
        }
        if (last != (beat_ == bursts_.front())) {
            violation(channel_, last ? "WLAST before the last beat" : "no WLAST in the last beat");
        }
        ++beat_;
        if (last) {
            beat_ = 0;
            bursts_.pop();
            ++popped_;
        }
    }

  private:
    Channel channel_;
    unsigned bytes_;
    bool stalled_ = false, last_ = false;
    uint32_t beat_ = 0, pushed_ = 0, popped_ = 0;
    uint64_t strb_ = 0;
    BurstQueue bursts_;
    uint8_t offsets_[256];
    uint8_t data_[64];
};

// R or B, driven by whoever answers.
class ReplyChecker {
  public:
    explicit ReplyChecker(Channel channel) : channel_(channel) {}
    void clear() {
        stalled_ = false;
        beat_ = 0;
        bursts_.clear();
    }
    // A reply of `len` + 1 beats is due.
    void due(uint8_t len) {
        if (bursts_.full()) violation(channel_, "more replies due than the checker can follow");
        bursts_.push(len);
    }
    // `digest` stands for the payload: anything that changes when it does.
    void cycle(bool valid, bool ready, bool last, uint64_t digest) {
        if (!valid && !stalled_) return;
        if (!valid) violation(channel_, "VALID fell before READY");
        if (bursts_.empty()) violation(channel_, "a response that nothing asked for");
        if (stalled_ && digest != digest_) violation(channel_, "the payload changed before READY");
        if (last != (beat_ == bursts_.front())) {
            violation(channel_, last ? "LAST before the last beat" : "no LAST in the last beat");
        }
        stalled_ = !ready;
        digest_ = digest;
        if (!ready) return;
        ++beat_;
        if (last) {
            beat_ = 0;
            bursts_.pop();
        }
    }

  private:
    Channel channel_;
    bool stalled_ = false;
    uint32_t beat_ = 0;
    uint64_t digest_ = 0;
    BurstQueue bursts_;
};

}  // namespace ws
