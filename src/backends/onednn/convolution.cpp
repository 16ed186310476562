// The providers "onednn" of the convolution slots.
#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "backends/common/family.h"
#include "backends/common/plan_cache.h"
#include "backends/onednn/known_bugs.h"
#include "backends/onednn/plan.h"
#include "catena/array/array.h"
#include "catena/core/config.h"
#include "catena/core/fork_mutex.h"
#include "catena/kernels/convolution.h"

namespace catena::onednn {
namespace {

// The most plans that a thread keeps.
constexpr size_t kMostPlans = 1024;

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

// Waking a thread of OpenMP takes about as long as this many multiply-adds, and far longer on a
// busy core.
constexpr double kOfAThread = 1 << 20;

int64_t threads_for(double multiply_adds) {
  return std::clamp<int64_t>(static_cast<int64_t>(multiply_adds / kOfAThread), 1, cpu_threads());
}

// A child of fork() cannot use more than one thread: GNU's OpenMP waits there for the threads of
// the parent.
std::atomic<bool> g_in_child{false};

template <class Call>
Problem problem_for(const Call& call) {
  Problem p{problem_of(call), 1};
  if (!omp_in_parallel() && !g_in_child) p.threads = threads_for(p.multiply_adds());
  return p;
}

// Each thread has its own plans, because a plan holds the addresses of the running call. oneDNN
// shares compiled primitives among threads, so the plans of a second thread cost little.
std::shared_ptr<Plan> plan_of(const Problem& problem) {
  thread_local PlanCache<Plan> plans(kMostPlans);
  PlanKey key;
  problem.describe(key);
  if (auto known = plans.find(key)) return known;
  return plans.keep(key, std::make_shared<Plan>(problem));
}

bool taken_dtype(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kBFloat16 || dtype == Dtype::kFloat16;
}

// Whether the built-in provider "direct" is faster: oneDNN 2.6 has no fast kernel for several, but
// few channels a group, nor for the weight gradients of large depthwise windows, which take it 5 to
// 30 times as long.
bool is_slow(const Problem& p) {
  const int64_t pairs = p.channels / p.groups * (p.filters / p.groups);
  if (p.groups == 1 || pairs > 4) return false;
  return pairs > 1 || (p.pass == ConvolutionPass::kGradW && p.window.taps() > 9);
}
// Whether the bits may depend on the number of threads, over which oneDNN divides the sums of
// weight gradients. Those of "direct" do not.
bool depends_on_threads(const Problem& p) {
  return p.pass == ConvolutionPass::kGradW && p.multiply_adds() >= 2 * kOfAThread;
}
bool leaves(const Problem& problem, const SlotBase& slot) {
  if (!is_slow(problem) && !(config().deterministic && depends_on_threads(problem))) return false;
  const ProviderUse use = config().providers.use(slot.name(), "onednn");
  return use != ProviderUse::kAlways && use != ProviderUse::kOnly &&
         config().providers.use(slot.name(), "direct") != ProviderUse::kOff;
}

bool run(const Problem& problem, const SlotBase& slot, const Pointers& pointers) {
  if (!taken_dtype(problem.dtype) || !problem.fits_32_bits()) return false;
  if (leaves(problem, slot)) return false;
  if (known_bug(problem) != nullptr) return false;
  const ForkScope no_fork;  // oneDNN locks the primitives that its threads share
  const ThreadCount threads(static_cast<int>(problem.threads));
  const std::shared_ptr<Plan> plan = plan_of(problem);
  if (!plan->usable()) return false;
  plan->run(pointers);
  return true;
}

bool forward(const ConvolutionCall& c) {
  return run(problem_for(c), kernels::convolution,
             {c.x->raw_data(), c.W->raw_data(), c.b ? c.b->raw_data() : nullptr, c.y->raw_data()});
}

bool grad_x(const ConvolutionGradXCall& c) {
  return run(problem_for(c), kernels::convolution_grad_x,
             {c.gx->raw_data(), c.W->raw_data(), nullptr, c.gy->raw_data()});
}

bool grad_w(const ConvolutionGradWCall& c) {
  return run(problem_for(c), kernels::convolution_grad_w,
             {c.x->raw_data(), c.gW->raw_data(), nullptr, c.gy->raw_data()});
}

}  // namespace
}  // namespace catena::onednn

CATENA_FAMILY(onednn, convolution) {
  pthread_atfork(nullptr, nullptr, [] { onednn::g_in_child = true; });
  kernels::convolution.provide(DeviceType::kCpu, "onednn", &onednn::forward, 10);
  kernels::convolution_grad_x.provide(DeviceType::kCpu, "onednn", &onednn::grad_x, 10);
  kernels::convolution_grad_w.provide(DeviceType::kCpu, "onednn", &onednn::grad_w, 10);
}
