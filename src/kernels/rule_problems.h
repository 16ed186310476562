// Problems of the rules of config().providers, and what they are judged by: which kernels have
// which providers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catena/core/device.h"
#include "catena/kernels/slot.h"

namespace catena {

// Providers of the cuda plug-in. Rules that name them are not an error where it is not loaded.
inline constexpr std::string_view kProvidersOfCuda[] = {"cuda",   "nvrtc",    "cublaslt", "small",
                                                        "simple", "products", "composed"};
// Whether the companion plug-in has the kernel, which is known before it is loaded.
bool companion_has(std::string_view companion, std::string_view kernel);
// The companions that would have the kernel, but are not among its providers.
std::vector<std::string> absent_companions(std::string_view kernel, DeviceType type,
                                           const std::vector<ProviderInfo>& providers);
// Called for every provider that is registered.
void note_provider(std::string_view kernel, std::string_view provider);

struct RuleProblem {
  std::string about;  // the rule, or the plug-in that it names
  std::string text;
  bool harmless;  // turns off what is not there
};
// Rules that match nothing, and those that name a plug-in that did not load; each rule and each
// plug-in once. `kernels` has the names of all.
std::vector<RuleProblem> rule_problems(const std::vector<std::string_view>& kernels);
// Logs each of the problems that is not harmless once in the life of the process.
void warn_of_rules(const std::vector<std::string_view>& kernels);

}  // namespace catena
