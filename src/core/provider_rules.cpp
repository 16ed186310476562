#include "catena/core/provider_rules.h"

#include <atomic>
#include <mutex>

#include "catena/core/error.h"

namespace catena {
namespace {

std::atomic<void (*)()> g_changed{nullptr};

// Of the rules of all objects; there is one that matters.
std::mutex& rules_mutex() {
  static std::mutex* m = new std::mutex;
  return *m;
}

// Without the lock, for it reads the rules.
void tell_kernels() {
  if (const auto changed = g_changed.load()) changed();
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

ProviderUse use_from(std::string_view word, std::string_view rule) {
  if (word == "on") return ProviderUse::kOn;
  if (word == "off") return ProviderUse::kOff;
  if (word == "only") return ProviderUse::kOnly;
  fail<ValueError>("providers: '", rule,
                   "' is not a rule; expected [KERNEL/]PROVIDER:on, :off or :only, separated by "
                   "commas, such as 'cudnn:off,matmul/cublaslt:only'");
}

}  // namespace

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
  tell_kernels();
  return *this;
}

ProviderRules& ProviderRules::operator=(std::string_view text) {
  std::vector<Rule> rules;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view rule = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const size_t colon = rule.find(':'), slash = rule.substr(0, colon).find('/');
    const bool all = slash == std::string_view::npos;
    const std::string_view name = rule.substr(0, colon);
    const std::string_view kernel = all ? std::string_view{} : name.substr(0, slash);
    const std::string_view provider = all ? name : name.substr(slash + 1);
    const bool complete =
        colon != std::string_view::npos && !provider.empty() && (all || !kernel.empty());
    const ProviderUse use = use_from(complete ? rule.substr(colon + 1) : "", rule);
    rules.push_back({std::string(kernel), std::string(provider), use});
  }
  {
    const std::lock_guard lock(rules_mutex());
    text_ = text;
    rules_ = std::move(rules);
  }
  tell_kernels();
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
