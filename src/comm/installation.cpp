#include "installation.h"

#include <exception>
#include <string>
#include <type_traits>

#include "catena/array/kernel.h"
#include "catena/core/backend.h"
#include "catena/core/plugin.h"
#include "catena/kernels/slot.h"

static_assert(std::is_same_v<decltype(&catena_check_version), catena::comm::CheckVersion>);
static_assert(std::is_same_v<decltype(&catena_check_plugin), catena::comm::CheckPlugin>);
static_assert(std::is_same_v<decltype(&catena_check_providers), catena::comm::CheckProviders>);
static_assert(std::is_same_v<decltype(&catena_check_kernels), catena::comm::CheckKernels>);

namespace {

// "matmul (small, cublaslt, simple)"; "" with one provider.
std::string providers_of(const catena::SlotBase& slot, catena::DeviceType type) {
  const auto providers = slot.providers(type);
  if (providers.size() < 2) return {};
  std::string names;
  for (const catena::ProviderInfo& p : providers) {
    const char* use = p.use == catena::ProviderUse::kOff    ? " off"
                      : p.use == catena::ProviderUse::kOnly ? " only"
                                                            : "";
    names += (names.empty() ? "" : ", ") + p.name + use;
  }
  return slot.name() + (" (" + names + ")");
}

}  // namespace

const char* catena_check_version() { return catena::abi_tag(); }

const char* catena_check_plugin(const char* name) {
  static std::string reason;
  try {
    reason = catena::load_plugin(name);
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

const char* catena_check_providers() {
  static std::string text;
  text.clear();
  try {
    for (const catena::DeviceType type : {catena::DeviceType::kCpu, catena::DeviceType::kCuda}) {
      if (catena::find_backend(type) == nullptr) continue;
      std::string list;
      for (const catena::SlotBase* slot : catena::all_slots())
        if (const std::string one = providers_of(*slot, type); !one.empty())
          list += (list.empty() ? "" : ", ") + one;
      if (!list.empty()) text += (text.empty() ? "" : "; ") + (catena::name(type) + (": " + list));
    }
  } catch (const std::exception& error) {
    text = error.what();
  }
  return text.c_str();
}
