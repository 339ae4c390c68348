// A Verilated module of whatever type: its ports by name, and eval.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rust/cxx.h"

namespace ws_leaf {

// Where Verilator keeps a port: little-endian, in the least of 1, 2, 4 and 8 bytes that holds its
// bits, or in words of 4 bytes.
struct Slot {
    const char* name;
    uint32_t width;  // bits
    bool input;
    void* data;
};

class Model {
  public:
    virtual ~Model() = default;
    // Throws with the file, line and text of a failed assertion.
    void eval();
    // Whether the module's assertions are looked at.
    virtual void assertions(bool on) = 0;

    size_t ports() const { return slots_.size(); }
    rust::Str name(size_t port) const { return slots_[port].name; }
    uint32_t width(size_t port) const { return slots_[port].width; }
    bool input(size_t port) const { return slots_[port].input; }
    // `bytes` has as many as hold the port's bits; those above them are 0.
    void set(size_t port, rust::Slice<const uint8_t> bytes);
    void get(size_t port, rust::Slice<uint8_t> bytes) const;

  protected:
    virtual void settle() = 0;
    std::vector<Slot> slots_;
};

rust::Vec<rust::String> model_names();
// Null if there is no such model.
std::unique_ptr<Model> create(rust::Str name);

}  // namespace ws_leaf
