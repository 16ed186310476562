#include "installation.h"

#include <exception>
#include <string>
#include <type_traits>

#include "catena/array/kernel.h"
#include "catena/core/plugin.h"

static_assert(std::is_same_v<decltype(&catena_check_version), catena::comm::CheckVersion>);
static_assert(std::is_same_v<decltype(&catena_check_plugin), catena::comm::CheckPlugin>);
static_assert(std::is_same_v<decltype(&catena_check_kernels), catena::comm::CheckKernels>);

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
