#include "kernels/rule_problems.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "catena/core/backend.h"
#include "catena/core/config.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/log.h"
#include "catena/core/plugin.h"
#include "core/rule_text.h"

namespace catena {
namespace {

// The kernels of companions. A forced companion makes their calls fail where it is not loaded, so
// they are known without it: the build lists what the sources of companions provide.
struct CompanionKernel {
  std::string_view companion, kernel;
};
constexpr CompanionKernel kKernelsOfCompanions[] = {
#define CATENA_ITEM(kernel) {"cudnn", #kernel},
#include "lists/cudnn_kernels.inc"
#undef CATENA_ITEM
#define CATENA_ITEM(kernel) {"onednn", #kernel},
#include "lists/onednn_kernels.inc"
#undef CATENA_ITEM
};

// Kernels with their providers, and what has been logged.
struct Known {
  ForkMutex mutex;
  std::set<std::pair<std::string, std::string>> pairs;
  std::set<std::string> logged;
};

Known& known() {
  static auto* instance = new Known;
  return *instance;
}

bool is_companion(std::string_view name) {
  for (const DeviceType type : {DeviceType::kCpu, DeviceType::kCuda})
    for (const std::string_view one : companions(type))
      if (one == name) return true;
  return false;
}

template <class List>
bool has(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// The caller holds the lock.
std::set<std::string> provider_names() {
  std::set<std::string> names(std::begin(kProvidersOfCuda), std::end(kProvidersOfCuda));
  for (const DeviceType type : {DeviceType::kCpu, DeviceType::kCuda})
    names.insert(companions(type).begin(), companions(type).end());
  for (const auto& [kernel, provider] : known().pairs) names.insert(provider);
  return names;
}

// Whether the rule is about a provider that some kernel has or may get. The caller holds the lock.
bool matches(const ProviderRule& rule) {
  bool registered = false;
  for (const auto& [kernel, provider] : known().pairs) {
    if (provider != rule.provider) continue;
    if (rule.kernel.empty() || rule.kernel == kernel) return true;
    registered = true;
  }
  if (is_companion(rule.provider))
    return rule.kernel.empty() || companion_has(rule.provider, rule.kernel);
  return !registered && has(kProvidersOfCuda, rule.provider);
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Why the rule matches nothing; "" when it matches something.
std::string why_without_match(const ProviderRule& rule,
                              const std::vector<std::string_view>& kernels) {
  const std::lock_guard lock(known().mutex);
  if (!rule.kernel.empty() && !has(kernels, rule.kernel))
    return message("there is no kernel '", rule.kernel, "'");
  if (matches(rule)) return {};
  const std::set<std::string> names = provider_names();
  if (names.contains(rule.provider))
    return message("'", rule.kernel, "' has no provider '", rule.provider, "'");
  return message("there is no provider '", rule.provider, "'; there are ", joined(names));
}

RuleProblem problem_of(const ProviderRule& rule, const std::vector<std::string_view>& kernels) {
  if (const std::string why = why_without_match(rule, kernels); !why.empty())
    return {rule.text, message("the rule '", rule.text, "' matches nothing: ", why), false};
  const std::string reason =
      is_companion(rule.provider) ? plugin_error(rule.provider.c_str()) : std::string();
  if (reason.empty()) return {};
  return {rule.provider,
          message("the rule '", rule.text, "' names a provider that is not there: ", reason),
          rule.use == ProviderUse::kOff};
}

}  // namespace

bool companion_has(std::string_view companion, std::string_view kernel) {
  return std::any_of(
      std::begin(kKernelsOfCompanions), std::end(kKernelsOfCompanions),
      [&](const CompanionKernel& k) { return k.companion == companion && k.kernel == kernel; });
}

std::vector<std::string> absent_companions(std::string_view kernel, DeviceType type,
                                           const std::vector<ProviderInfo>& providers) {
  std::vector<std::string> absent;
  for (const char* companion : companions(type))
    if (companion_has(companion, kernel) &&
        std::none_of(providers.begin(), providers.end(),
                     [&](const ProviderInfo& p) { return p.name == companion; }))
      absent.push_back(companion);
  return absent;
}

void note_provider(std::string_view kernel, std::string_view provider) {
  const std::lock_guard lock(known().mutex);
  known().pairs.emplace(kernel, provider);
}

std::vector<RuleProblem> rule_problems(const std::vector<std::string_view>& kernels) {
  std::vector<RuleProblem> problems;
  for (const ProviderRule& rule : parse_rules(config().providers.text()).rules) {
    RuleProblem problem = problem_of(rule, kernels);
    if (problem.text.empty()) continue;
    const auto same = std::find_if(problems.begin(), problems.end(),
                                   [&](const RuleProblem& p) { return p.about == problem.about; });
    if (same == problems.end())
      problems.push_back(std::move(problem));
    else if (same->harmless)
      *same = std::move(problem);
  }
  return problems;
}

void warn_of_rules(const std::vector<std::string_view>& kernels) {
  for (const RuleProblem& problem : rule_problems(kernels)) {
    if (problem.harmless) continue;
    const std::lock_guard lock(known().mutex);
    if (known().logged.insert(problem.about).second)
      logging::warning("config().providers, CATENA_PROVIDERS: ", problem.text);
  }
}

}  // namespace catena
