// Hints at the end of errors about missing devices and plug-ins.
#pragma once

namespace catena {

inline constexpr char kCheckHint[] =
    "; catena-run --check prints what this machine and this build offer";

// What the reason ends with where a plug-in lacks a library. --check itself leaves it out.
inline constexpr char kPackagesHint[] = " ('catena-run --check' names the packages)";

}  // namespace catena
