// Uses the parts of libcatena that contain Boost and nlohmann::json, in a process in which these
// names belong to another library.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>

#include "catena/array/reduction.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/testing.h"
#include "catena/training/report.h"

extern "C" const char* const kConflictingName;
namespace google::protobuf {
int ShutdownProtobufLibrary();
}

namespace {

namespace F = catena::functions;
using namespace catena;

int failures = 0;
void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

// The loader would give these names to whoever asks the whole process for them.
void names_belong_to_the_other_library() {
  Dl_info info{};
  void* address = dlsym(RTLD_DEFAULT, kConflictingName);
  expect(address && dladdr(address, &info) &&
             std::string(info.dli_fname).find("libconflicts") != std::string::npos,
         "the conflicting names are in force");
  expect(google::protobuf::ShutdownProtobufLibrary() == 42, "protobuf of the other library");
}

void json() {
  const std::string log = std::filesystem::temp_directory_path() /
                          ("catena-conflicts-" + std::to_string(getpid()) + ".json");
  std::ostringstream table;
  training::Report report({.log = log, .silent = {}, .out = &table});
  report.add({{"epoch", 1}, {"train_loss", 0.25}});
  const auto rows = training::Report({.log = log, .silent = {}, .out = &table}).read_log();
  expect(rows.size() == 1 && rows[0][1].second == 0.25, "a log is written and read");
  std::filesystem::remove(log);
}

void shapes_and_training() {
  const Array a = ones({1, 1, 1, 1, 1, 1, 1, 1, 1, 2});  // more dimensions than fit into a Shape
  expect(catena::sum(a).item<double>() == 2, "an array of ten dimensions");
  F::Linear layer(3, 2);
  optimizers::Adam optimizer;
  optimizer.setup(layer);
  const Variable x(ones({4, 3}, Dtype::kFloat32));
  Variable loss = F::sum(layer(x));
  loss.backward();
  optimizer.update();
  expect(F::sum(layer(x)).item<float>() < loss.item<float>(), "a step of training");
}

void special_functions() {
  expect(testing::chi_square_test({48, 52}, {50, 50}), "counts as expected");
  expect(!testing::chi_square_test({10, 90}, {50, 50}), "counts far from what is expected");
}

}  // namespace

int main() {
  names_belong_to_the_other_library();
  json();
  shapes_and_training();
  special_functions();
  return failures == 0 ? 0 : 1;
}
