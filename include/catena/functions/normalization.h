// Normalization of activations: one header each.
#pragma once

#include "catena/functions/math.h"
#include "catena/functions/normalization/batch_normalization.h"
