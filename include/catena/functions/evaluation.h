// Measures that no gradient flows through: one header each.
#pragma once

#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/math.h"
