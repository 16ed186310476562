// How often a model of Caffe is right.
#pragma once

#include <memory>
#include <string>

#include "catena/comm/communicator.h"
#include "catena/datasets/prefetch.h"
#include "catena/functions/caffe/caffe_function.h"
#include "common/picture_source.h"
#include "model_types.h"

namespace modelzoo {

using catena::functions::CaffeFunction;

// Reads a model. IoError for a file that is not there, which says where models are, and as of
// CaffeFunction.
CaffeFunction open_model(const std::string& file, const ModelType& type);
// How many classes it scores: of a black picture. ValueError for a model that is not of the type.
int64_t classes_of(const CaffeFunction& model, const ModelType& type);

// The pictures of `file`: a .npz with "x", uint8 (n, height, width, 3) in the order red, green,
// blue, and "t", integers (n); else a list, whose paths are relative to `root`. Labels are from 0
// to classes - 1. IoError and ShapeError for what is otherwise.
std::shared_ptr<const examples::Source> open_pictures(const std::string& file,
                                                      const std::string& root, int64_t classes);

struct Evaluation {
  int64_t pictures = 0, skipped = 0;  // skipped: those with label -1, which do not count
  double loss = 0, top1 = 0, top5 = 0;
};
// Means over all pictures of all ranks, without a graph and in test state: of the cross entropy,
// and shares of those whose label has the largest score, or one of the five largest. Collective.
// IoError where all pictures were skipped.
Evaluation evaluate(CaffeFunction& model, const ModelType& type,
                    catena::datasets::BatchIterator& batches, catena::Communicator& comm);

}  // namespace modelzoo
