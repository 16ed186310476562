// The rules of config().providers as they are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catena/core/provider_rules.h"

namespace catena {

struct ProviderRule {
  std::string text;    // "matmul/cublaslt:only"
  std::string kernel;  // empty: all
  std::string provider;
  ProviderUse use;
};

struct RuleText {
  std::vector<ProviderRule> rules;
  std::string problem;  // "" where every rule has the form of one
};

RuleText parse_rules(std::string_view text);

// Calls what on_provider_rules() was given.
void announce_providers();

}  // namespace catena
