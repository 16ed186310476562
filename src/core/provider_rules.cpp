#include "catena/core/provider_rules.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "catena/core/error.h"
#include "catena/core/fork_mutex.h"
#include "core/rule_text.h"

namespace catena {
namespace {

std::atomic<void (*)()> g_changed{nullptr};

// Of the rules of all objects; there is one that matters.
ForkMutex& rules_mutex() {
  static ForkMutex* m = new ForkMutex;
  return *m;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<ProviderUse> use_from(std::string_view word) {
  if (word == "on") return ProviderUse::kOn;
  if (word == "off") return ProviderUse::kOff;
  if (word == "only") return ProviderUse::kOnly;
  if (word == "always") return ProviderUse::kAlways;
  return {};
}

// Nothing where the text is not a rule.
std::optional<ProviderRule> rule_from(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view name = text.substr(0, colon);
  const size_t slash = name.find('/');
  const bool all = slash == std::string_view::npos;
  const std::string_view kernel = all ? std::string_view{} : name.substr(0, slash);
  const std::string_view provider = all ? name : name.substr(slash + 1);
  const auto use = use_from(text.substr(colon + 1));
  if (provider.empty() || (kernel.empty() && !all) || !use) return {};
  return ProviderRule{std::string(text), std::string(kernel), std::string(provider), *use};
}

}  // namespace

RuleText parse_rules(std::string_view text) {
  RuleText parsed;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view one = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    auto rule = rule_from(one);
    if (!rule) {
      parsed.problem = message(
          "'", one,
          "' is not a rule; expected [KERNEL/]PROVIDER:on, :off, :only or :always, separated by "
          "commas, such as 'cudnn:off,matmul/cublaslt:only'");
      return parsed;
    }
    parsed.rules.push_back(std::move(*rule));
  }
  return parsed;
}

// Without the lock, for what is called reads the rules.
void announce_providers() {
  if (const auto changed = g_changed.load()) changed();
}

ProviderRules::ProviderRules(const ProviderRules& other) {
  const std::lock_guard lock(rules_mutex());
  text_ = other.text_;
  rules_ = other.rules_;
}

ProviderRules& ProviderRules::operator=(const ProviderRules& other) {
  if (this == &other) return *this;
  {
    const std::lock_guard lock(rules_mutex());
    text_ = other.text_;
    rules_ = other.rules_;
  }
  announce_providers();
  return *this;
}

ProviderRules& ProviderRules::operator=(std::string_view text) {
  RuleText parsed = parse_rules(text);
  CATENA_CHECK(ValueError, parsed.problem.empty(), "providers: ", parsed.problem);
  std::vector<Rule> rules;
  for (ProviderRule& rule : parsed.rules)
    rules.push_back({std::move(rule.kernel), std::move(rule.provider), rule.use});
  {
    const std::lock_guard lock(rules_mutex());
    text_ = text;
    rules_ = std::move(rules);
  }
  announce_providers();
  return *this;
}

std::string ProviderRules::text() const {
  const std::lock_guard lock(rules_mutex());
  return text_;
}

ProviderUse ProviderRules::use(std::string_view kernel, std::string_view provider) const {
  const std::lock_guard lock(rules_mutex());
  for (size_t i = rules_.size(); i-- > 0;) {
    const Rule& rule = rules_[i];
    if (rule.provider == provider && (rule.kernel.empty() || rule.kernel == kernel))
      return rule.use;
  }
  return ProviderUse::kOn;
}

void on_provider_rules(void (*changed)()) { g_changed = changed; }

}  // namespace catena
