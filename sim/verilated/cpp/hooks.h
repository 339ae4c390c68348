// Included before everything in the Verilated runtime and in the models: what the RTL prints and
// how it stops goes through these functions.
#pragma once

#include <exception>
#include <string>

namespace ws {

// The RTL stopped itself: $stop, $fatal, $finish or a failed assertion.
struct RtlStop : std::exception {
    std::string file;
    int line;
    std::string message;
    RtlStop(std::string file, int line, std::string message)
        : file(std::move(file)), line(line), message(std::move(message)) {}
    const char* what() const noexcept override { return message.c_str(); }
};

// In place of printf: keeps the text of this thread until it is taken.
int vl_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The text kept so far, which is then forgotten.
std::string take_text();

}  // namespace ws

#define VL_PRINTF ws::vl_printf
