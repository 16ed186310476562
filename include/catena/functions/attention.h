// Attention: one header each.
#pragma once

#include "catena/functions/attention/scaled_dot_product_attention.h"
