#include "evaluation.h"

#include <cmath>
#include <filesystem>
#include <map>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/grad_mode.h"
#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/evaluation/top_k_accuracy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/training/evaluator.h"

namespace modelzoo {

namespace ds = catena::datasets;
namespace dtype = catena::dtype;
namespace F = catena::functions;
using catena::Array;
using catena::IoError;
using catena::Variable;

namespace {

// (n, classes). The heads that GoogLeNet has in training are not asked for, and so do not run.
Variable scores_of(const CaffeFunction& model, const ModelType& type, const Array& pictures) {
  return model({{"data", Variable::constant(pictures)}}, {type.scores}, {}, false)[0];
}

const Array& array_of(const catena::LoadedArrays& arrays, const std::string& name,
                      const std::string& file) {
  const auto found = arrays.find(name);
  CATENA_CHECK(
      IoError, found != arrays.end(), "'", file, "' has no array '", name,
      "'; expected pictures 'x', uint8 (n, height, width, 3), and labels 't', integers (n)");
  return found->second;
}

}  // namespace

CaffeFunction open_model(const std::string& file, const ModelType& type) {
  CATENA_CHECK(IoError, std::filesystem::exists(file), "there is no model '", file,
               "'; for the type ", type.name, " it is ", type.file, ", and ", type.source,
               " says where it is; make_colour_net writes a small one to try");
  return CaffeFunction(file);
}

int64_t classes_of(const CaffeFunction& model, const ModelType& type) {
  const catena::NoBackprop no_graph;
  const Array black =
      catena::zeros({1, 3, type.insize, type.insize}, {dtype::float32, model.device()});
  try {
    const Variable scores = scores_of(model, type, black);
    CATENA_CHECK(ShapeError, scores.ndim() == 2, "its blob '", type.scores, "' has shape ",
                 scores.shape(), ", expected (n, classes)");
    return scores.shape()[1];
  } catch (const catena::Error& error) {
    catena::fail<catena::ValueError>("the model is not of the type ", type.name, ": ",
                                     error.what());
  }
}

std::shared_ptr<const examples::Source> open_pictures(const std::string& file,
                                                      const std::string& root, int64_t classes) {
  if (!file.ends_with(".npz"))
    return std::make_shared<examples::ListSource>(
        examples::read_list(file, root, {classes, "--basepath"}));
  const catena::LoadedArrays arrays = catena::load_npz(file);
  const Array labels = array_of(arrays, "t", file);
  const Array t = labels.astype(dtype::int32);
  CATENA_CHECK(IoError, catena::array_equal(t, labels), "'", file, "': the labels 't' are ",
               labels.dtype(), ", and not all are whole numbers of int32");
  return examples::source_of(array_of(arrays, "x", file).contiguous(), t, classes,
                             {file, file, "make_colour_net"});
}

Evaluation evaluate(CaffeFunction& model, const ModelType& type, ds::BatchIterator& batches,
                    catena::Communicator& comm) {
  // Means over all pictures, where those that were skipped add nothing: what counts is divided by
  // the share of those that were not, so that no batch waits for its labels.
  const auto score = [&](const ds::Batch& batch) -> catena::Variables {
    const Array& t = batch.t();
    const Variable y = scores_of(model, type, batch.x());
    const Array is_there = catena::greater_equal(t, 0).astype(dtype::float32);
    return {F::softmax_cross_entropy(y, t, /*normalize=*/false), F::accuracy(y, t),
            F::top_k_accuracy(y, t, 5), Variable::constant(catena::mean(is_there))};
  };
  const std::map<std::string, double> means =
      catena::training::evaluate(model, batches, {"loss", "top1", "top5", "there"}, score, &comm);
  const auto all = static_cast<double>(batches.size());
  const int64_t there = std::llround(means.at("there") * all);
  CATENA_CHECK(IoError, there > 0, "none of the ", batches.size(), " pictures could be decoded");
  const double factor = all / static_cast<double>(there);
  return {batches.size(), batches.size() - there, means.at("loss") * factor,
          means.at("top1") * factor, means.at("top5") * factor};
}

}  // namespace modelzoo
