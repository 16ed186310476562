// Checks that recurrent functions over whole sequences share.
#pragma once

#include <cstdint>

#include "catena/autograd/variable.h"
#include "catena/core/error.h"

namespace catena::functions {

// ValueError unless n_layers is at least 1, the ratio in [0, 1), and there are `of_layer` weights
// for each layer, which the message names.
inline void check_n_step_numbers(const char* function, int64_t n_layers, double dropout_ratio,
                                 const Variables& weights, int64_t of_layer, const char* names) {
  CATENA_CHECK(ValueError, n_layers >= 1, function, ": expected n_layers of at least 1, got ",
               n_layers);
  CATENA_CHECK(ValueError, dropout_ratio >= 0 && dropout_ratio < 1, function,
               ": expected a dropout ratio of [0, 1), got ", dropout_ratio);
  CATENA_CHECK(ValueError, static_cast<int64_t>(weights.size()) == of_layer * n_layers, function,
               ": ", n_layers, " layers have ", of_layer * n_layers, " weights, ", names,
               " of each; got ", weights.size());
}

}  // namespace catena::functions
