// The two networks, and what the program reads and prints.
#pragma once

#include <string>
#include <vector>

#include "catena/datasets/dataset.h"
#include "catena/functions/activation.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/parallel/sync_batch_normalization.h"
#include "catena/training/evaluator.h"
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

// The numbers of a row: the losses, and how real the discriminator finds real and made images.
std::vector<std::string> metrics();
Arrays numbers_of(const Variable& loss_d, const Variable& loss_g, const Variable& real_score,
                  const Variable& fake_score);
// Makes the folder and prints the heading; a row of the table.
void print_heading(const Options& options);
void print_row(int64_t epoch, training::Means& means);
// Writes 64 images as eight rows of a gray picture, samples.pgm in the folder.
void write_picture(const Options& options, const Array& images);
// The images of training, with --short a few of them.
datasets::DatasetPtr images_of(const Options& options);

}  // namespace gan
