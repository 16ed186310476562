// What errors about missing devices and plug-ins end with.
#pragma once

namespace catena {

inline constexpr char kCheckHint[] =
    "; catena-run --check prints what this machine and this build offer";

}  // namespace catena
