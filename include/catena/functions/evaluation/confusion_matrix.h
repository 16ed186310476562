// Counts of answers by class, and what is made of them.
#pragma once

#include <optional>

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// All take y: (n, classes, d1, ...) floats, scores of which the largest is the answer, the first of
// equal ones; t: int32 or int64 (n, d1, ...). Samples whose label is ignore_label do not count. A
// sample with a NaN among its scores has no answer: it is missed by its class and in no column.
// Without ignore_label, samples of label -1 do not count. Another label outside [0, classes) is a
// ValueError on a CPU; on a GPU, where looking would wait for the device, its sample does not
// count. No gradient.

// int64 (classes, classes): how many samples of class i, the row, were taken for class j.
Variable confusion_matrix(const VariableOperand& y, const VariableOperand& t,
                          std::optional<int32_t> ignore_label = {});

// How measures of classes become one number.
enum class ClassAverage : uint8_t {
  kNone,   // one number for each class, (classes)
  kMacro,  // 0-d, the mean over the classes that occur among labels or answers; 0 if none does
  kMicro   // 0-d, from the sums over all classes
};
// Of the answers that name a class, the share that is right; 0 for a class that no answer names.
// float32 (float64 for float64 y).
Variable precision(const VariableOperand& y, const VariableOperand& t,
                   ClassAverage average = ClassAverage::kNone,
                   std::optional<int32_t> ignore_label = {});
// Of the samples of a class, the share that was answered with it; 0 for a class without samples.
Variable recall(const VariableOperand& y, const VariableOperand& t,
                ClassAverage average = ClassAverage::kNone,
                std::optional<int32_t> ignore_label = {});
// The harmonic mean of precision and recall, 2 right / (answers + samples), of each class.
Variable f1_score(const VariableOperand& y, const VariableOperand& t,
                  ClassAverage average = ClassAverage::kNone,
                  std::optional<int32_t> ignore_label = {});

}  // namespace catena::functions
