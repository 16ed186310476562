// Random regularisation: one header each.
#pragma once

#include "catena/functions/math.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/noise/gaussian.h"
#include "catena/functions/noise/walker_alias.h"
