#include "hooks.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

#include "verilated.h"

namespace ws {
namespace {
thread_local std::string text;

[[noreturn]] void stop(const char* file, int line, const char* what) {
    std::string message = take_text();
    while (!message.empty() && message.back() == '\n') message.pop_back();
    if (message.empty()) message = what;
    throw RtlStop(file ? file : "", line, std::move(message));
}
}  // namespace

int vl_printf(const char* format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int size = vsnprintf(nullptr, 0, format, args);
    va_end(args);
    if (size > 0) {
        const size_t old = text.size();
        text.resize(old + size + 1);
        vsnprintf(&text[old], size + 1, format, again);
        text.resize(old + size);
    }
    va_end(again);
    return size;
}

std::string take_text() { return std::exchange(text, {}); }

}  // namespace ws

void vl_finish(const char* file, int line, const char*) { ws::stop(file, line, "$finish"); }
void vl_stop(const char* file, int line, const char*) { ws::stop(file, line, "$stop"); }
void vl_fatal(const char* file, int line, const char*, const char* message) {
    ws::stop(file, line, message);
}
void vl_warn(const char* file, int line, const char*, const char* message) {
    ws::vl_printf("%s:%d: %s\n", file ? file : "", line, message);
}
