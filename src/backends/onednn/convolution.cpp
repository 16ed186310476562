#include "backends/onednn/convolution.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "backends/common/family.h"
#include "backends/onednn/plan.h"
#include "catena/array/array.h"
#include "catena/core/config.h"
#include "catena/core/error.h"
#include "catena/core/fork_mutex.h"
#include "catena/kernels/convolution.h"

namespace catena::onednn {
namespace {

// The most plans that a thread keeps. When a program with ever new shapes exceeds it, the thread
// starts again with none.
constexpr size_t kMostPlans = 1024;

struct KeyHash {
  size_t operator()(const Problem::Key& key) const {
    uint64_t h = 0x9E3779B97F4A7C15ull;
    for (const int64_t word : key) h = (h << 5 ^ h >> 59 ^ uint64_t(word)) * 0x9FB21C651E98DF25ull;
    return size_t(h ^ h >> 32);
  }
};

// Sets the number of threads of oneDNN's loops for its lifetime. Inside a parallel region OpenMP
// uses one anyway.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(omp_get_max_threads()) {
    if (before_ != count) omp_set_num_threads(count);
    count_ = count;
  }
  ~ThreadCount() {
    if (before_ != count_) omp_set_num_threads(before_);
  }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_, count_;
};

// Arrays that fit both layouts (one channel) count as contiguous.
bool channels_last(const Array& x, const Array& y) {
  return !(x.is_contiguous() && y.is_contiguous());
}

// Waking a thread of OpenMP takes about as long as this many multiply-adds, and far longer on a
// busy core.
int64_t threads_for(double multiply_adds) {
  constexpr double kOfAThread = 1 << 20;
  return std::clamp<int64_t>(static_cast<int64_t>(multiply_adds / kOfAThread), 1, cpu_threads());
}

// A child of fork() cannot use more than one thread: GNU's OpenMP waits there for the threads of
// the parent.
std::atomic<bool> g_in_child{false};

Problem problem_of(Operation operation, const Array& x, const Array& y, const Window& window,
                   int groups) {
  Problem p{convolution_sizes(x, y, window, groups), operation, x.dtype(), channels_last(x, y)};
  p.threads = omp_in_parallel() || g_in_child ? 1 : threads_for(p.multiply_adds());
  return p;
}

// Each thread has its own plans, because a plan holds the addresses of the running call. oneDNN
// shares compiled primitives among threads, so the plans of a second thread cost little.
Plan& plan_of(const Problem& problem) {
  thread_local std::unordered_map<Problem::Key, std::unique_ptr<Plan>, KeyHash> plans;
  const Problem::Key key = problem.key();
  const auto found = plans.find(key);
  if (found != plans.end()) return *found->second;
  auto made = std::make_unique<Plan>(problem);
  if (plans.size() >= kMostPlans) plans.clear();
  return *plans.emplace(key, std::move(made)).first->second;
}

bool taken_dtype(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kBFloat16 || dtype == Dtype::kFloat16;
}

bool run(const Problem& problem, const Pointers& pointers) {
  const ForkScope no_fork;  // oneDNN locks the primitives that its threads share
  const ThreadCount threads(static_cast<int>(problem.threads));
  Plan& plan = plan_of(problem);
  if (!plan.usable()) return false;
  plan.run(pointers);
  return true;
}

bool forward(const ConvolutionCall& c) {
  if (!taken_dtype(c.x->dtype())) return false;
  Problem p = problem_of(Operation::kForward, *c.x, *c.y, c.window, c.groups);
  p.bias = c.b != nullptr;
  return run(p,
             {c.x->raw_data(), c.W->raw_data(), c.b ? c.b->raw_data() : nullptr, c.y->raw_data()});
}

bool grad_x(const ConvolutionGradXCall& c) {
  if (!taken_dtype(c.gx->dtype())) return false;
  Problem p = problem_of(Operation::kGradX, *c.gx, *c.gy, c.window, c.groups);
  p.accumulate = c.accumulate;
  return run(p, {c.gx->raw_data(), c.W->raw_data(), nullptr, c.gy->raw_data()});
}

bool grad_w(const ConvolutionGradWCall& c) {
  if (!taken_dtype(c.x->dtype())) return false;
  Problem p = problem_of(Operation::kGradW, *c.x, *c.gy, c.window, c.groups);
  p.accumulate = c.accumulate;
  return run(p, {c.x->raw_data(), c.gW->raw_data(), nullptr, c.gy->raw_data()});
}

}  // namespace

void check_version() {
  const int loaded = dnnl_version()->major;
  CATENA_CHECK(DeviceError, loaded == DNNL_VERSION_MAJOR, "oneDNN: the library loaded has version ",
               loaded, ", the plug-in was built for version ", DNNL_VERSION_MAJOR,
               "; build catena again");
}

}  // namespace catena::onednn

CATENA_FAMILY(onednn, convolution) {
  pthread_atfork(nullptr, nullptr, [] { onednn::g_in_child = true; });
  kernels::convolution.provide(DeviceType::kCpu, "onednn", &onednn::forward, 10);
  kernels::convolution_grad_x.provide(DeviceType::kCpu, "onednn", &onednn::grad_x, 10);
  kernels::convolution_grad_w.provide(DeviceType::kCpu, "onednn", &onednn::grad_w, 10);
}
