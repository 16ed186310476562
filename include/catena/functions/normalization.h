// Normalization of activations: one header each.
#pragma once

#include "catena/functions/math.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "catena/functions/normalization/group_normalization.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "catena/functions/normalization/local_response_normalization.h"
#include "catena/functions/normalization/residual_stream.h"
#include "catena/functions/normalization/statistics_exchange.h"
