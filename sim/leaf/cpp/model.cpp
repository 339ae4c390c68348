#include "model.h"

#include <cstring>
#include <stdexcept>

#include "hooks.h"

namespace ws_leaf {

void Model::eval() {
    try {
        settle();
    } catch (const ws::RtlStop& stop) {
        const size_t slash = stop.file.find_last_of('/');
        const std::string file = slash == std::string::npos ? stop.file : stop.file.substr(slash + 1);
        throw std::runtime_error(file + ":" + std::to_string(stop.line) + ": " + stop.message);
    }
}

void Model::set(size_t port, rust::Slice<const uint8_t> bytes) {
    std::memcpy(slots_[port].data, bytes.data(), bytes.size());
}

void Model::get(size_t port, rust::Slice<uint8_t> bytes) const {
    std::memcpy(bytes.data(), slots_[port].data, bytes.size());
}

// One function a model, made by the build script.
#define WS_LEAF(name) std::unique_ptr<Model> create_##name();
#include "models.inc"
#undef WS_LEAF

rust::Vec<rust::String> model_names() {
    rust::Vec<rust::String> names;
#define WS_LEAF(name) names.push_back(#name);
#include "models.inc"
#undef WS_LEAF
    return names;
}

std::unique_ptr<Model> create(rust::Str wanted) {
#define WS_LEAF(name) \
    if (wanted == #name) return create_##name();
#include "models.inc"
#undef WS_LEAF
    return nullptr;
}

}  // namespace ws_leaf
