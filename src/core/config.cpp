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

// Each rule of CATENA_PROVIDERS. A wrong one is named and left out, as a wrong value of the other
// variables.
std::string providers_from_environment() {
  const char* text = std::getenv("CATENA_PROVIDERS");
  if (text == nullptr) return "";
  const std::string problem = parse_rules(text).problem;
  if (problem.empty()) return text;
  logging::warning("CATENA_PROVIDERS is ignored: ", problem);
  return "";
}

constexpr std::string_view kCudnn = "cudnn";

bool is_for_all_of_cudnn(const ProviderRule& rule) {
  return rule.kernel.empty() && rule.provider == kCudnn;
}

std::string rule_text(UseCudnn use) {
  switch (use) {
    case UseCudnn::kNever: return "cudnn:off";
    case UseCudnn::kAlways: return "cudnn:always";
    case UseCudnn::kAuto: break;
  }
  return "";
}

void append_rule(std::string& rules, const std::string& rule) {
  if (!rule.empty()) rules += (rules.empty() ? "" : ",") + rule;
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
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (!ranks) ranks = count_from_environment(name);
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
  static Config& settings = *[] {
    auto* made = new Config;  // never destroyed: exit handlers may compute
    Config& c = *made;
    c.use_cudnn.rules_ = &c.providers;
    c.matmul_precision = precision_from_environment();
    c.deterministic = switch_from_environment("CATENA_DETERMINISTIC", false);
    std::string rules = rule_text(cudnn_from_environment());
    append_rule(rules, providers_from_environment());  // the later ones, which win
    c.providers = rules;
    c.type_check = switch_from_environment("CATENA_TYPE_CHECK",
                                           switch_from_environment("CHAINER_TYPE_CHECK", true));
    return made;
  }();
  return settings;
}

CudnnSetting& CudnnSetting::operator=(UseCudnn use) {
  value_ = use;
  if (rules_ == nullptr) return *this;
  std::string rules;
  for (const ProviderRule& rule : parse_rules(rules_->text()).rules)
    if (!is_for_all_of_cudnn(rule)) append_rule(rules, rule.text);
  append_rule(rules, rule_text(use));
  *rules_ = rules;
  return *this;
}

CudnnSetting::operator UseCudnn() const {
  if (rules_ == nullptr) return value_;
  switch (rules_->use("", kCudnn)) {
    case ProviderUse::kOff: return UseCudnn::kNever;
    case ProviderUse::kOnly:
    case ProviderUse::kAlways: return UseCudnn::kAlways;
    case ProviderUse::kOn: break;
  }
  return UseCudnn::kAuto;
}

int cpu_threads() { return thread_setting().load(std::memory_order_relaxed); }

void set_cpu_threads(int count) {
  CATENA_CHECK(ValueError, count >= 1, "set_cpu_threads: expected at least 1 thread, got ", count);
  thread_setting() = count;
}

}  // namespace catena
