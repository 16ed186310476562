// The headers that most files of the library include, compiled once for all of them (CATENA_PCH).
// Files must not rely on it, because builds with ccache do not use it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/container/small_vector.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "catena/array/array.h"
