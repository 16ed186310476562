// Attention: one header each.
#pragma once

#include "catena/functions/attention/alibi.h"
#include "catena/functions/attention/gated_mlp.h"
#include "catena/functions/attention/key_value_cache.h"
#include "catena/functions/attention/multi_head_attention.h"
#include "catena/functions/attention/rotary_embedding.h"
#include "catena/functions/attention/scaled_dot_product_attention.h"
#include "catena/functions/attention/transformer.h"
