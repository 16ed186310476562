#include "catena/core/config.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "catena/core/log.h"
#include "core/environment.h"
#include "core/rule_text.h"

namespace catena {
namespace {

Precision precision_from_environment() {
  const char* text = std::getenv("CATENA_MATMUL_PRECISION");
  const std::string_view name = text && *text ? text : "float32";
  if (name == "tf32") return Precision::kTf32;
  if (name == "bf16") return Precision::kBf16;
  if (name != "float32")
    logging::warning("CATENA_MATMUL_PRECISION=", name,
                     " is none of float32, tf32, bf16; using float32");
  return Precision::kFloat32;
}

UseCudnn cudnn_from_environment() {
  const char* variable = std::getenv("CATENA_CUDNN") ? "CATENA_CUDNN" : "CHAINER_CUDNN";
  const char* text = std::getenv(variable);
  const std::string_view name = text && *text ? text : "auto";
  if (name == "never" || name == "0") return UseCudnn::kNever;
  if (name == "always") return UseCudnn::kAlways;
  if (name != "auto" && name != "1")
    logging::warning(variable, "=", name, " is none of never, auto, always; using auto");
  return UseCudnn::kAuto;
}

// A wrong rule is named and left out, as a wrong value of the other variables.
void providers_from_environment(ProviderRules& rules) {
  const char* text = std::getenv("CATENA_PROVIDERS");
  if (text == nullptr) return;
  if (const std::string problem = parse_rules(text).problem; !problem.empty())
    logging::warning("CATENA_PROVIDERS is ignored: ", problem);
  else
    rules = text;
}

// Cores this process may run on.
int available_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return 1;
}

int threads_from_environment() {
  if (const auto asked = count_from_environment("OMP_NUM_THREADS")) return *asked;
  std::optional<int> ranks = count_from_environment("CATENA_LOCAL_SIZE");
  if (!ranks) ranks = count_from_environment("OMPI_COMM_WORLD_LOCAL_SIZE");
  return std::max(1, available_cores() / ranks.value_or(1));
}

std::atomic<int>& thread_setting() {
  static std::atomic<int> threads = threads_from_environment();
  return threads;
}

}  // namespace

Dtype default_float() {
  const Dtype dtype = config().default_dtype;
  return is_float(dtype) ? dtype : Dtype::kFloat64;
}

Config& config() {
  static Config& settings = *new Config([] {
    Config c;
    c.matmul_precision = precision_from_environment();
    c.deterministic = switch_from_environment("CATENA_DETERMINISTIC", false);
    c.use_cudnn = cudnn_from_environment();
    providers_from_environment(c.providers);
    c.type_check = switch_from_environment("CATENA_TYPE_CHECK",
                                           switch_from_environment("CHAINER_TYPE_CHECK", true));
    return c;
  }());  // never destroyed: exit handlers may compute
  return settings;
}

int cpu_threads() { return thread_setting().load(std::memory_order_relaxed); }

void set_cpu_threads(int count) {
  CATENA_CHECK(ValueError, count >= 1, "set_cpu_threads: expected at least 1 thread, got ", count);
  thread_setting() = count;
}

}  // namespace catena
