// What ends a call early. Thrown inside the harness, handed to Rust as data.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace ws {

// The order is that of `Channel` in src/channel.rs.
enum class Channel : uint8_t {
    CtrlAw, CtrlW, CtrlB, CtrlAr, CtrlR,
    SgAw, SgW, SgB, SgAr, SgR,
    Mm2sAr, Mm2sR,
    S2mmAw, S2mmW, S2mmB,
    KernelIn, KernelOut,
    None,
};
constexpr unsigned kAxiChannels = 15;  // those before the kernel's streams

// The order is that of the match in src/error.rs.
enum class FaultKind : uint8_t { Watchdog, Protocol, Assertion, Trace, Internal };

struct Fault {
    FaultKind kind;
    Channel channel = Channel::None;
    uint64_t cycle = 0;
    std::string message;
    std::string file;
    int line = 0;
};

// A rule of AXI was broken on a channel. The one who catches it knows the cycle.
[[noreturn]] inline void violation(Channel channel, std::string message) {
    throw Fault{FaultKind::Protocol, channel, 0, std::move(message), {}, 0};
}

}  // namespace ws
