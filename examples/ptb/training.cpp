#include "training.h"

#include <algorithm>
#include <cmath>

#include "catena/array/math.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math.h"

namespace ptb {

namespace ds = catena::datasets;
using catena::dtype::int32;

ds::DatasetPtr windows_of(const std::vector<int32_t>& text, int64_t streams, int64_t window,
                          const std::string& what) {
  const auto words = static_cast<int64_t>(text.size());
  const int64_t windows = (words - 1) / streams / window;
  CATENA_CHECK(ValueError, windows > 0, what, " has ", words, " words, too few for ", streams,
               " streams of a window of ", window,
               " words each; give a longer text, or a smaller --batchsize or --window");
  const catena::Shape shape{windows * streams, window};
  const Array x = catena::zeros(shape, {int32, catena::cpu()}),
              t = catena::zeros(shape, {int32, catena::cpu()});
  int32_t* const xs = x.data<int32_t>();
  int32_t* const ts = t.data<int32_t>();
  for (int64_t i = 0; i < windows * streams; ++i) {
    const auto from = text.begin() + (i % streams * windows + i / streams) * window;
    std::copy_n(from, window, xs + i * window);
    std::copy_n(from + 1, window, ts + i * window);
  }
  return std::make_shared<ds::TupleDataset>(std::vector<Array>{x, t});
}

namespace {

Variable cross_entropy(const Variable& scores, const Array& targets) {
  return F::softmax_cross_entropy(scores, targets.transpose().reshape({-1}));
}

// The states with which a text begins.
Variable no_state(const LanguageModel& model, int64_t streams) {
  const Array& of_training = model.h.data();
  return Variable::constant(catena::zeros({LanguageModel::kLayers, streams, of_training.shape()[2]},
                                          {of_training.dtype(), of_training.device()}));
}

}  // namespace

catena::Variables score_of(LanguageModel& model, const ds::Batch& batch) {
  const Variable mean = cross_entropy(model(batch.x()), batch.t());
  return {mean * static_cast<double>(batch.x().shape()[1]), mean};
}

double perplexity_of(LanguageModel& model, ds::ResidentIterator& text, catena::Communicator& comm) {
  Variable h, c;
  const auto measure = [&](const ds::Batch& batch, catena::training::Means& means) {
    if (!h.defined()) h = c = no_state(model, batch.size());
    LanguageModel::Result r = model.run(h, c, batch.x());
    h = r.h;
    c = r.c;
    means.add("cross_entropy", cross_entropy(r.scores, batch.t()).data(),
              static_cast<double>(batch.size()));
  };
  return std::exp(catena::training::evaluate(model, text, {"cross_entropy"}, measure, &comm)
                      .at("cross_entropy"));
}

std::string sample(LanguageModel& model, const std::vector<std::string>& vocabulary,
                   int64_t count) {
  const catena::TestScope test(model);
  const catena::NoBackprop no_graph;
  const catena::Device device = model.h.device();
  Variable h = no_state(model, 1), c = h;
  int32_t word = 0;  // "<eos>"
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const Array last = catena::full({1, 1}, word, {int32, device});
    LanguageModel::Result r = model.run(h, c, last);
    h = r.h;
    c = r.c;
    const Array chances = F::softmax(r.scores).data().to_cpu().astype(catena::dtype::float64);
    double left =
        catena::random::uniform({}, 0, 1, {catena::dtype::float64, catena::cpu()}).item<double>();
    const double* const p = chances.data<double>();
    for (word = 0; word + 1 < static_cast<int32_t>(vocabulary.size()) && left >= p[word]; ++word)
      left -= p[word];
    text += word == 0 ? "\n" : vocabulary[size_t(word)] + " ";
  }
  return text;
}

}  // namespace ptb
