// Functions of inputs and weights, and their layers: one header each.
#pragma once

#include "catena/functions/connection/bilinear.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/convolution_nd.h"
#include "catena/functions/connection/deconvolution_2d.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/feed_forward.h"
#include "catena/functions/connection/inception.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/connection/n_step_gru.h"
#include "catena/functions/connection/n_step_lstm.h"
#include "catena/functions/connection/packed_sequences.h"
#include "catena/functions/connection/parameter.h"
#include "catena/functions/connection/sequence_layers.h"
#include "catena/functions/connection/stateful_gru.h"
#include "catena/functions/math.h"
