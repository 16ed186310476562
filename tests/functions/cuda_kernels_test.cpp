// How many kernels a function and its first-order backward launch on a GPU: the kernels of a graph
// that captures them. Launches of slots are counted in launches_test.cpp.
#include <dlfcn.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "catena/core/error.h"
#include "catena/core/graph.h"
#include "catena/kernels/slot.h"
#include "catena/testing_markers.h"
#include "functions/function_record.h"

namespace catena {
namespace {

struct Kernels {
  int forward = 0, backward = 0;
  friend bool operator==(const Kernels&, const Kernels&) = default;
};
struct KernelsOfRecord {
  const char* record;
  Kernels most;
};
const std::vector<KernelsOfRecord> kKernels = {
#define CUDA_KERNELS(name, forward, backward) {name, {forward, backward}},
#include "functions/cuda_kernels.inc"
#undef CUDA_KERNELS
};

const KernelsOfRecord* stated(const FunctionRecord& record) {
  const auto found = std::find_if(kKernels.begin(), kKernels.end(), [&](const KernelsOfRecord& k) {
    return record.name() == k.record;
  });
  return found == kKernels.end() ? nullptr : &*found;
}

// What the plug-in's test function says about the graph that this thread captures.
class Recorder {
 public:
  Recorder() {
    void* plugin = dlopen(CATENA_TEST_CUDA_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    CATENA_CHECK(Error, plugin != nullptr, "CudaKernels: ", dlerror());
    count_ = reinterpret_cast<bool (*)(int*, int*)>(dlsym(plugin, "catena_plugin_recorded_work"));
    CATENA_CHECK(Error, count_ != nullptr, "CudaKernels: the cuda plug-in counts no kernels");
  }
  int kernels() const {
    int kernels = 0, transfers = 0;
    CATENA_CHECK(Error, count_(&kernels, &transfers), "CudaKernels: nothing is captured");
    return kernels;
  }

 private:
  bool (*count_)(int*, int*);
};

Variables variables_of(const Arrays& arrays) {
  Variables inputs;
  for (const Array& a : arrays)
    inputs.push_back(is_float(a.dtype()) ? Variable(a) : Variable::constant(a));
  return inputs;
}

// A gradient for the first result; none where it has none.
Array gradient_for(const FunctionRecord& record, const Arrays& arrays) {
  if (!record.differentiable) return {};
  const Variable y = record.call(variables_of(arrays)).at(0);
  return random_array(y.shape(), 1, 2, y.dtype(), y.device(), 3);
}

// One call and its backward; `middle` is called between.
void run(const FunctionRecord& record, const Arrays& arrays, const Array& gradient,
         const std::function<void()>& middle) {
  Variable y = record.call(variables_of(arrays)).at(0);
  middle();
  if (!record.differentiable) return;
  y.set_grad(gradient);
  y.backward();
}

Kernels count(const FunctionRecord& record, const Recorder& recorder, Device device) {
  const Arrays arrays = record.inputs(record.shapes[0], Draw(device), Dtype::kFloat32);
  const Array gradient = gradient_for(record, arrays);
  for (int i = 0; i < 2; ++i) run(record, arrays, gradient, [] {});  // loads the kernels
  Kernels found;
  cuda::Graph::capture(device, [&] {
    run(record, arrays, gradient, [&] { found.forward = recorder.kernels(); });
    found.backward = recorder.kernels() - found.forward;
  });
  return found;
}

std::string line(const FunctionRecord& record, const Kernels& k) {
  return "CUDA_KERNELS(\"" + record.name() + "\", " + std::to_string(k.forward) + ", " +
         std::to_string(k.backward) + ")";
}

// How the found number differs from what is said; "" where it does not.
std::string remark(const FunctionRecord& record, const Kernels& found) {
  if (const KernelsOfRecord* known = stated(record))
    return found == known->most ? "" : "  // stated: " + line(record, known->most);
  const auto forward = record.forward_launches, backward = record.backward_launches;
  const auto said = [](const std::optional<int>& n) { return n ? std::to_string(*n) : "not said"; };
  if (forward == found.forward && (backward == found.backward || !record.differentiable)) return "";
  return "  // slots asked: " + said(forward) + ", " + said(backward);
}

TEST(CudaKernels, AreOfRecordsThatThereAre) {
  std::vector<std::string> names;
  for (const FunctionRecord& record : all_function_records()) names.push_back(record.name());
  for (const KernelsOfRecord& k : kKernels) {
    EXPECT_EQ(std::count(names.begin(), names.end(), k.record), 1)
        << "cuda_kernels.inc: there is no record '" << k.record << "', or several";
    EXPECT_EQ(std::count_if(kKernels.begin(), kKernels.end(),
                            [&](const KernelsOfRecord& other) {
                              return std::string_view(other.record) == k.record;
                            }),
              1)
        << k.record << " is twice in cuda_kernels.inc";
  }
}

// Limits are stated in cuda_kernels.inc; else they are the slots that the record asks. What differs
// is printed as lines for that file.
TEST(CudaKernels, AreCounted) {
  CATENA_NEEDS_GPU();
  const Device device = cuda_device(0);
  const DeviceScope scope(device);
  const ProviderScope built_in("cudnn:off");
  const Recorder recorder;
  std::string lines, left_out;
  int counted = 0;
  for (const FunctionRecord& record : all_function_records()) {
    SCOPED_TRACE(record.name());
    Kernels found;
    try {
      found = count(record, recorder, device);
    } catch (const std::exception& e) {
      left_out += "// " + record.name() + ": " + e.what() + "\n";
      EXPECT_EQ(stated(record), nullptr) << e.what();
      continue;
    }
    ++counted;
    if (const std::string why = remark(record, found); !why.empty())
      lines += line(record, found) + why + "\n";
    if (const KernelsOfRecord* known = stated(record)) {
      EXPECT_LE(found.forward, known->most.forward);
      EXPECT_LE(found.backward, known->most.backward);
    } else {
      EXPECT_LE(found.forward, record.forward_launches.value_or(found.forward));
      EXPECT_LE(found.backward, record.backward_launches.value_or(found.backward));
    }
  }
  EXPECT_GE(counted, int(all_function_records().size() * 3 / 4)) << left_out;
  std::cout << "kernels of " << counted << " records; lines for tests/functions/cuda_kernels.inc:\n"
            << lines << "// not captured:\n"
            << left_out;
  RecordProperty("cuda_kernels", lines);
}

}  // namespace
}  // namespace catena
