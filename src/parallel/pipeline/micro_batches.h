// Micro-batches of a batch.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "catena/array/indexing.h"
#include "catena/autograd/variable.h"

namespace catena::parallel::pipeline {

// How the model runs on a batch.
enum class RunMode : uint8_t { kTrain, kTrainInTestState, kPredict };

// What the shapes of messages depend on.
struct BatchForm {
  int64_t samples = 0;  // of the micro-batch
  RunMode mode = RunMode::kTrain;
  auto operator<=>(const BatchForm&) const = default;
};

// A batch, cut into micro-batches as equal as they get, the first ones longer.
struct MicroBatches {
  int64_t samples = 0;  // of the batch
  int size = 0;         // 0 for an empty batch
  RunMode mode = RunMode::kTrain;
  int64_t call = 0;  // its number among those of step and predict

  int64_t samples_of(int m) const { return samples / size + (m < samples % size ? 1 : 0); }
  double weight_of(int m) const { return double(samples_of(m)) / double(samples); }
  BatchForm form_of(int m) const { return {samples_of(m), mode}; }
  Arrays part(const Arrays& batch, int m) const {
    const int64_t begin = m * (samples / size) + std::min<int64_t>(m, samples % size);
    Arrays result;
    for (const Array& a : batch) result.push_back(a(Slice(begin, begin + samples_of(m))));
    return result;
  }
};

}  // namespace catena::parallel::pipeline
