// Activation functions. relu, sigmoid and tanh are rows of the element-wise table (math.h).
#pragma once

#include "catena/functions/activation/elementwise.h"
#include "catena/functions/activation/gated.h"
#include "catena/functions/activation/lstm.h"
#include "catena/functions/activation/maxout.h"
#include "catena/functions/activation/prelu.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/math.h"
