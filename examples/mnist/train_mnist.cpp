// Trains a network on one device.
#include <iostream>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/random.h"
#include "catena/autograd/computational_graph.h"
#include "catena/comm/run_main.h"
#include "catena/training/model_summary.h"
#include "models.h"
#include "trainer.h"

namespace {

void draw(const catena::Variable& loss, const std::string& file) {
  const auto graph = catena::build_computational_graph(loss);
  catena::write_file_atomically(file, graph.dump(file.ends_with(".svg") ? "svg" : "dot"));
}

int body(int argc, char** argv) {
  const mnist::Options options = mnist::parse_options(
      argc, argv, "Trains a network on MNIST-format images on one device.", mnist::Devices::kOne);
  const catena::Device device = options.devices.empty() ? catena::cpu() : options.devices[0];
  catena::random::seed(options.seed);
  mnist::Network model(options.model, options.dtype, options.autocast, options.dropout);
  model.to(device);
  const auto optimizer = mnist::make_optimizer(options);
  optimizer->setup(model);

  if (options.summary)
    std::cout << catena::training::summary(
        model,
        catena::zeros({options.batch, 784}, catena::ArrayOptions(catena::Dtype::kFloat32, device)));
  bool is_drawn = options.drawing.empty();
  const auto score = [&](const catena::datasets::Batch& batch) {
    const catena::Variables scores = mnist::score(model(batch.x()), batch.t());
    if (!is_drawn) draw(scores[0], options.drawing);
    is_drawn = true;
    return scores;
  };
  mnist::train(options,
               {model, *optimizer, device, score, catena::training::make_step(*optimizer, score)});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
