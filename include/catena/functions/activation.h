// Activation functions: one header each. relu, sigmoid and tanh are rows of the element-wise table
// (math.h).
#pragma once

#include "catena/functions/activation/clipped_relu.h"
#include "catena/functions/activation/crelu.h"
#include "catena/functions/activation/elu.h"
#include "catena/functions/activation/gelu.h"
#include "catena/functions/activation/hard_sigmoid.h"
#include "catena/functions/activation/hard_swish.h"
#include "catena/functions/activation/hard_tanh.h"
#include "catena/functions/activation/leaky_relu.h"
#include "catena/functions/activation/log_sigmoid.h"
#include "catena/functions/activation/lstm.h"
#include "catena/functions/activation/maxout.h"
#include "catena/functions/activation/mish.h"
#include "catena/functions/activation/prelu.h"
#include "catena/functions/activation/selu.h"
#include "catena/functions/activation/silu.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/activation/softplus.h"
#include "catena/functions/activation/softsign.h"
#include "catena/functions/math.h"
