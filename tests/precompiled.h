// What most tests begin with, compiled once for each test program (CATENA_PCH). Tests must not rely
// on it: builds with ccache do without.
#pragma once

#include <gtest/gtest.h>

#include "array/precompiled.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
