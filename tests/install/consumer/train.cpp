// Trains with the installed library, alone or as a rank of catena-run, and looks where the
// libraries and plug-ins of this process come from.
//   train PREFIX BUILD_FOLDER [PLUGIN...]: the plug-ins are expected to be installed
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/comm/factory.h"
#include "catena/core/plugin.h"
#include "catena/functions/functions.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/multi_node_optimizer.h"

namespace F = catena::functions;
using catena::Variable;

struct Mlp : catena::FunctionSet {
  F::Linear l1{2, 16}, l2{16, 2};
  CATENA_FUNCTIONS(l1, l2)
  Variable operator()(const Variable& x) { return l2(F::tanh(l1(x))); }
};

// Whether the signs of two numbers are equal: no layer alone can tell.
void train(const catena::CommunicatorPtr& comm) {
  const catena::DeviceScope scope(comm->device());
  catena::random::seed(uint64_t(comm->rank()) + 1);
  const catena::Array x = catena::random::normal({128, 2}, 0, 1, catena::dtype::float32);
  const catena::Array product = x(catena::Slice(), 0) * x(catena::Slice(), 1);
  const catena::Array t = catena::greater(product, 0).astype(catena::dtype::int32);
  Mlp model;
  auto optimizer = catena::create_multi_node_optimizer(catena::optimizers::SGD(0.5), comm);
  optimizer.setup(model);
  double first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    optimizer.zero_grads();
    const Variable loss = F::softmax_cross_entropy(model(x), t);
    loss.backward();
    optimizer.update();
    last = loss.data().item<double>();
    if (step == 0) first = last;
  }
  if (!(last < 0.5 * first))
    throw std::runtime_error("the loss went from " + std::to_string(first) + " to " +
                             std::to_string(last));
  if (comm->rank() == 0)
    std::printf("trained over %s with %d ranks: the loss fell\n", comm->name().c_str(),
                comm->size());
}

// The files of catena that are mapped into this process.
std::vector<std::string> mapped_files() {
  std::vector<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos && line.find("/libcatena") != std::string::npos)
      files.push_back(line.substr(path));
  }
  return files;
}

void check_origin(const std::string& prefix, const std::string& build,
                  const std::vector<std::string>& plugins) {
  const auto files = mapped_files();
  const auto folder = [](const std::string& path) {
    return std::filesystem::weakly_canonical(path).string() + "/";
  };
  for (const std::string& file : files)
    if (!file.starts_with(folder(prefix)) || file.starts_with(folder(build + "/lib")))
      throw std::runtime_error(file + " is not of " + prefix);
  for (const std::string& plugin : plugins)
    if (std::none_of(files.begin(), files.end(), [&](const std::string& file) {
          return file.find("/libcatena_" + plugin + ".so") != std::string::npos;
        }))
      throw std::runtime_error("the plug-in " + plugin + " was not loaded");
}

// GPUs work, or every use of one says the same reason.
void check_cuda(bool installed) {
  const std::string reason = catena::unavailable_reason(catena::DeviceType::kCuda);
  if (reason.empty()) {
    std::printf("cuda: %g\n",
                catena::ones({3}, {catena::dtype::float32, "cuda:0"}).to_vector<float>()[2]);
    return;
  }
  if (installed && reason.find("not installed: no libcatena_cuda") != std::string::npos)
    throw std::runtime_error("the plug-in cuda was not found: " + reason);
  try {
    catena::ones({3}, {catena::dtype::float32, "cuda:0"});
  } catch (const catena::DeviceError& error) {
    if (std::string(error.what()).find(reason) == std::string::npos) throw;
    std::printf("cuda: refused, %s\n", error.what());
    return;
  }
  throw std::runtime_error("an array was made on a GPU that cannot be used: " + reason);
}

int main(int argc, char** argv) try {
  if (argc < 3) throw std::invalid_argument("usage: train PREFIX BUILD_FOLDER [PLUGIN...]");
  const std::vector<std::string> plugins(argv + 3, argv + argc);
  train(catena::create_communicator());
  check_cuda(std::find(plugins.begin(), plugins.end(), "cuda") != plugins.end());
  check_origin(argv[1], argv[2], plugins);
} catch (const std::exception& error) {
  std::fprintf(stderr, "train: %s\n", error.what());
  return 1;
}
