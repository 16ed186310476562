#include "common.h"

#include <algorithm>
#include <numeric>

#include "catena/array/random.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/datasets/mnist.h"
#include "catena/datasets/views.h"
#include "common/pictures.h"

namespace gan {

std::vector<std::string> metrics() { return {"dis_loss", "gen_loss", "real", "fake"}; }

Arrays numbers_of(const Variable& loss_d, const Variable& loss_g, const Scores& scores) {
  return {loss_d.data(), loss_g.data(), F::mean(F::sigmoid(scores.real)).data(),
          F::mean(F::sigmoid(scores.fake)).data()};
}

void write_samples(const Options& options, Generator& generator, const Array& noise) {
  const NoBackprop no_graph;
  const TestScope test(generator);
  const Array images = generator(Variable::constant(noise)).data();
  examples::write_pictures(options.run.out + "/samples.pgm", images.reshape({-1, 28, 28}), 8);
}

Array noise_of(int64_t count, Device device) {
  return random::normal({count, kNoise}, 0, 1, {dtype::float32, device});
}

datasets::PrefetchIterator batches_of(const datasets::DatasetPtr& images, const Options& options,
                                      Device device, datasets::RankOf who) {
  const datasets::ShuffledIterator order(images->size(), options.run.batch, options.run.seed,
                                         datasets::IteratorOptions{.drop_last = true});
  return {images, order, device, who};
}

datasets::DatasetPtr images_of(const Options& options) {
  const datasets::DatasetPtr all = datasets::load_mnist({.folder = options.data}).train;
  if (!options.is_short) return all;
  std::vector<int64_t> first(size_t(std::min<int64_t>(all->size(), 4 * options.run.batch)));
  std::iota(first.begin(), first.end(), 0);
  return datasets::subset(all, first);
}

}  // namespace gan
