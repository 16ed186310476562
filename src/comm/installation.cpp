#include "installation.h"

#include <cstdlib>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#include "catena/array/kernel.h"
#include "catena/core/backend.h"
#include "catena/core/plugin.h"
#include "catena/kernels/slot.h"
#include "core/hint.h"
#include "core/rule_text.h"
#include "kernels/rule_problems.h"

static_assert(std::is_same_v<decltype(&catena_check_version), catena::comm::CheckVersion>);
static_assert(std::is_same_v<decltype(&catena_check_plugin), catena::comm::CheckPlugin>);
static_assert(std::is_same_v<decltype(&catena_check_providers), catena::comm::CheckProviders>);
static_assert(std::is_same_v<decltype(&catena_check_kernels), catena::comm::CheckKernels>);

namespace {

std::string shown(const catena::ProviderInfo& p) {
  constexpr const char* kUses[] = {"", " off", " only", " always"};
  return p.name + kUses[static_cast<int>(p.use)];
}

std::string shown_absent(const std::string& plugin, const char* kernel) {
  const bool forced = catena::config().providers.use(kernel, plugin) == catena::ProviderUse::kOnly;
  return plugin + (forced ? " only, but not loaded" : " not loaded");
}

// "matmul (small, cublaslt, simple)"; "" with one provider.
std::string providers_of(const catena::SlotBase& slot, catena::DeviceType type) {
  const auto providers = slot.providers(type);
  std::vector<std::string> names;
  for (const std::string& plugin : catena::absent_companions(slot.name(), type, providers))
    names.push_back(shown_absent(plugin, slot.name()));
  for (const catena::ProviderInfo& p : providers) names.push_back(shown(p));
  if (names.size() < 2) return {};
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return slot.name() + (" (" + list + ")");
}

// "cpu: convolution (onednn, products), ..."
std::string providers_of(catena::DeviceType type) {
  std::string list;
  for (const catena::SlotBase* slot : catena::all_slots())
    if (const std::string one = providers_of(*slot, type); !one.empty())
      list += (list.empty() ? "" : ", ") + one;
  return list.empty() ? list : catena::name(type) + (": " + list);
}

// Each followed by "; ".
std::string problems_of_rules() {
  const char* variable = std::getenv("CATENA_PROVIDERS");
  const std::string form = catena::parse_rules(variable ? variable : "").problem;
  std::string text = form.empty() ? "" : "CATENA_PROVIDERS is ignored: " + form + "; ";
  std::vector<std::string_view> kernels;
  for (const catena::SlotBase* slot : catena::all_slots()) kernels.push_back(slot->name());
  for (const catena::RuleProblem& problem : catena::rule_problems(kernels))
    if (!problem.harmless) text += problem.text + "; ";
  return text;
}

// It sends to --check, whose output this is.
std::string without_hint(std::string text) {
  const std::string_view hint = catena::kPackagesHint;
  for (size_t at; (at = text.find(hint)) != std::string::npos;) text.erase(at, hint.size());
  return text;
}

}  // namespace

const char* catena_check_version() { return catena::abi_tag(); }

const char* catena_check_plugin(const char* name) {
  static std::string reason;
  try {
    reason = without_hint(catena::load_plugin(name));
  } catch (const std::exception& error) {
    reason = error.what();
  }
  return reason.c_str();
}

const char* catena_check_kernels() {
  static std::string text;
  text.clear();
  try {
    if (catena::load_plugin("cuda").empty()) text = catena::kernel_cache_statistics().description;
  } catch (const std::exception& error) {
    text = error.what();
  }
  return text.c_str();
}

const char* catena_check_providers(int* good) {
  static std::string text;
  try {
    std::string lists;
    for (const catena::DeviceType type : {catena::DeviceType::kCpu, catena::DeviceType::kCuda}) {
      if (catena::find_backend(type) == nullptr) continue;
      const std::string list = providers_of(type);
      lists += (lists.empty() || list.empty() ? "" : "; ") + list;
    }
    const std::string problems = without_hint(problems_of_rules());
    *good = problems.empty();
    text = problems + lists;
  } catch (const std::exception& error) {
    *good = 0;
    text = error.what();
  }
  return text.c_str();
}
