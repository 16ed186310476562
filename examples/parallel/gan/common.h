// The two networks, and what the program reads and prints.
#pragma once

#include <string>
#include <vector>

#include "catena/datasets/prefetch.h"
#include "catena/functions/activation.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/parallel/sync_batch_normalization.h"
#include "options.h"

namespace gan {

using namespace catena;
namespace F = catena::functions;

constexpr int64_t kNoise = 64, kPixels = 784;

// Noise to images. The same batch normalization on every number of ranks.
struct Generator : FunctionSet {
  F::Linear l1{kNoise, 256}, l2{256, 512}, l3{512, kPixels};
  parallel::SyncBatchNormalization bn1, bn2;
  CATENA_FUNCTIONS(l1, bn1, l2, bn2, l3)
  explicit Generator(const CommunicatorPtr& comm) : bn1(256, comm), bn2(512, comm) {}
  Variable operator()(const Variable& noise) {
    return F::sigmoid(l3(bn2.relu(l2(bn1.relu(l1(noise))))));
  }
};

// Images to a score: positive for real ones.
struct Discriminator : FunctionSet {
  F::Linear l1{kPixels, 512}, l2{512, 256}, l3{256, 1};
  CATENA_FUNCTIONS(l1, l2, l3)
  Variable operator()(const Variable& x) { return l3(F::leaky_relu(l2(F::leaky_relu(l1(x))))); }
};

// The loss of scores that should say `real`: softplus(-score), or softplus(score).
inline Variable loss_of(const Variable& score, bool real) {
  return F::mean(F::softplus(real ? -score : score));
}

// The losses of a step on real and made images. Made images are constants for the discriminator's
// loss, so that it sends no gradient to the generator.
struct Scores {
  Variable real, fake;
  Scores(Discriminator& discriminator, const Array& real_images, const Variable& fake_images)
      : real(discriminator(Variable::constant(real_images))),
        fake(discriminator(Variable::constant(fake_images.data()))) {}
  Variable loss() const { return loss_of(real, true) + loss_of(fake, false); }
};

// The numbers of a row: the losses, and how real the discriminator finds real and made images.
std::vector<std::string> metrics();
Arrays numbers_of(const Variable& loss_d, const Variable& loss_g, const Scores& scores);

// 64 images as eight rows of a gray picture, samples.pgm in the folder; the network is in test
// state, in which ranks need not meet.
void write_samples(const Options& options, Generator& generator, const Array& noise);
Array noise_of(int64_t count, Device device);
// Batches of training that are full: with the same number of samples the ranks meet in every layer.
datasets::PrefetchIterator batches_of(const datasets::DatasetPtr& images, const Options& options,
                                      Device device, datasets::RankOf who);
// The images of training, with --short a few of them.
datasets::DatasetPtr images_of(const Options& options);

}  // namespace gan
