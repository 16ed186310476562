#include "catena/core/provider_rules.h"

#include <atomic>

#include "catena/core/error.h"

namespace catena {
namespace {

std::atomic<void (*)()> g_changed{nullptr};

ProviderUse use_from(std::string_view word, std::string_view rule) {
  if (word == "on") return ProviderUse::kOn;
  if (word == "off") return ProviderUse::kOff;
  if (word == "only") return ProviderUse::kOnly;
  fail<ValueError>("providers: '", rule,
                   "' is not a rule; expected [KERNEL/]PROVIDER:on, :off or :only, separated by "
                   "commas, such as 'cudnn:off,matmul/cublaslt:only'");
}

}  // namespace

ProviderRules& ProviderRules::operator=(std::string_view text) {
  std::vector<Rule> rules;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view rule = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const size_t colon = rule.find(':'), slash = rule.substr(0, colon).find('/');
    const bool all = slash == std::string_view::npos;
    const std::string_view name = rule.substr(0, colon);
    const std::string_view provider = all ? name : name.substr(slash + 1);
    const std::string_view word =
        colon == std::string_view::npos || provider.empty() ? "" : rule.substr(colon + 1);
    const ProviderUse use = use_from(word, rule);
    rules.push_back({std::string(all ? "" : name.substr(0, slash)), std::string(provider), use});
  }
  text_ = text;
  rules_ = std::move(rules);
  if (const auto changed = g_changed.load()) changed();
  return *this;
}

ProviderUse ProviderRules::use(std::string_view kernel, std::string_view provider) const {
  for (size_t i = rules_.size(); i-- > 0;) {
    const Rule& rule = rules_[i];
    if (rule.provider == provider && (rule.kernel.empty() || rule.kernel == kernel))
      return rule.use;
  }
  return ProviderUse::kOn;
}

void on_provider_rules(void (*changed)()) { g_changed = changed; }

}  // namespace catena
