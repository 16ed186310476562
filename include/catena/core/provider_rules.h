// Rules that choose the providers of kernels: config().providers and CATENA_PROVIDERS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

// kOnly: of the kernels that this provider has, it alone is asked; a call that it declines fails.
// kAlways: it also takes the calls that it leaves to others under kOn because they are faster.
enum class ProviderUse : uint8_t { kOn, kOff, kOnly, kAlways };

// Rules "[KERNEL/]PROVIDER:on|off|only|always", separated by commas; later ones win:
//   config().providers = "cudnn:off,matmul/cublaslt:only";
// KERNEL is the name of a slot (headers of catena/kernels), PROVIDER one such as cpu, nvrtc,
// cublaslt, cudnn, onednn or products; `catena-run --check` lists the kernels that have several.
// Rules that match nothing, or name a plug-in that does not load, are warned of. Where a plug-in
// that is not loaded is forced, calls of its kernels fail. Rules may be set and read by several
// threads at once.
class ProviderRules {
 public:
  ProviderRules() = default;
  ProviderRules(const ProviderRules& other);
  ProviderRules& operator=(const ProviderRules& other);  // takes effect as text does
  // ValueError for text of another form; the rules then stay as they were. Takes effect at once for
  // calls that begin later, also of other threads.
  ProviderRules& operator=(std::string_view text);
  ProviderRules& operator=(const char* text) { return *this = std::string_view(text); }
  std::string text() const;
  ProviderUse use(std::string_view kernel, std::string_view provider) const;

 private:
  struct Rule {
    std::string kernel;  // empty: all
    std::string provider;
    ProviderUse use;
  };
  std::string text_;
  std::vector<Rule> rules_;
};

// Called when the rules change or plug-ins with kernels are loaded; for the layer of the kernels.
void on_provider_rules(void (*changed)());

}  // namespace catena
