// The protocol checkers by themselves, so that tests can show each of their rules to bite.
// Each call is a cycle of one channel; it returns the broken rule, or nothing.
#pragma once

#include <cstring>
#include <memory>

#include "checker.h"
#include "rust/cxx.h"

namespace ws {

class Probe {
  public:
    explicit Probe(unsigned bytes)
        : addr_(Channel::Mm2sAr, bytes), data_(Channel::S2mmW, bytes),
          reply_(Channel::Mm2sR) {}

    rust::String addr(bool reset, bool valid, bool ready, uint64_t addr, uint8_t len, uint8_t size,
                      uint8_t burst) {
        return rule([&] {
            addr_.cycle(reset, valid, ready, [&] { return Addr{addr, len, size, burst}; });
        });
    }
    rust::String data_address(uint64_t addr, uint8_t len) {
        return rule([&] { data_.address(Addr{addr, len, 0, 1}); });
    }
    rust::String data(bool reset, bool valid, bool ready, uint8_t fill, uint64_t strb, bool last) {
        uint8_t word[64];
        memset(word, fill, sizeof word);
        return rule([&] { data_.cycle(reset, valid, ready, word, strb, last); });
    }
    rust::String reply_due(uint8_t len) {
        return rule([&] { reply_.due(len); });
    }
    rust::String reply(bool valid, bool ready, bool last, uint64_t payload) {
        return rule([&] { reply_.cycle(valid, ready, last, payload); });
    }

  private:
    template <class F> rust::String rule(F f) {
        try {
            f();
            return {};
        } catch (const Fault& fault) {
            return fault.message;
        }
    }

    AddrChecker addr_;
    DataChecker data_;
    ReplyChecker reply_;
};

inline std::unique_ptr<Probe> make_probe(uint32_t bytes) {
    return std::unique_ptr<Probe>(new Probe(bytes));
}

}  // namespace ws
