// All differentiable functions and layers; `namespace F = catena::functions` by custom.
#pragma once

#include "catena/autograd/grad_mode.h"
#include "catena/functions/activation.h"
#include "catena/functions/array.h"
#include "catena/functions/attention.h"
#include "catena/functions/caffe.h"
#include "catena/functions/connection.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/initializers.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/noise.h"
#include "catena/functions/normalization.h"
#include "catena/functions/pooling.h"
#include "catena/functions/recompute.h"
#include "catena/functions/recompute_plan.h"
