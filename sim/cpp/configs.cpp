// The list of configurations. configs.inc is made by build.rs: WS_CONFIG(name, bus width in bytes) for each.
#include "engine.h"

namespace ws {

#define WS_CONFIG(name, bus_bytes) std::unique_ptr<Engine> make_##name(const Settings& settings);
#include "configs.inc"
#undef WS_CONFIG

#define WS_CONFIG(name, bus_bytes) {#name, bus_bytes, make_##name},
const Config kConfigs[] = {
#include "configs.inc"
    {nullptr, 0, nullptr},
};
#undef WS_CONFIG

}  // namespace ws
