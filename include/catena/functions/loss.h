// Losses, 0-d results of the dtype of x: one header each.
#pragma once

#include "catena/functions/loss/mean_squared_error.h"
#include "catena/functions/loss/sigmoid_cross_entropy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math.h"
