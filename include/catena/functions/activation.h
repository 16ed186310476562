// Activation functions: one header each. relu, sigmoid and tanh are rows of the element-wise table
// (math.h).
#pragma once

#include "catena/functions/activation/leaky_relu.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/activation/softplus.h"
#include "catena/functions/math.h"
