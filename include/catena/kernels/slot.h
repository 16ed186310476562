// Slots: named kernels with a list of providers for each device type.
//
// Arrays and functions check shapes, dtypes and devices, allocate results and then call a slot with
// one struct. The struct's comment says what a provider may assume. All arrays of a call are on one
// device; providers enqueue on its current stream.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "catena/core/config.h"
#include "catena/core/device.h"
#include "catena/kernels/kept.h"

namespace catena {

// The providers of a slot for one device type, as users see them.
struct ProviderInfo {
  std::string name;
  int priority;
  ProviderUse use;  // by the rules of config().providers
};

// Untyped part of a slot. Slots live as long as the process.
class SlotBase {
 public:
  explicit SlotBase(const char* name);
  SlotBase(const SlotBase&) = delete;
  SlotBase& operator=(const SlotBase&) = delete;

  // As rules and error texts name the kernel.
  const char* name() const { return name_; }
  // Providers of a device type in the order in which they are asked, those that are off included.
  // Loads the device's plug-ins.
  std::vector<ProviderInfo> providers(DeviceType type) const;
  // Publishes the providers anew after the rules have changed.
  void apply_rules();

 protected:
  // A provider's function without its type.
  using AnyFunction = void (*)();
  // A provider in the list.
  struct Entry {
    std::string provider;
    int priority;
    AnyFunction function;
  };
  // Functions to ask, one after the other, up to a null pointer.
  using Table = std::vector<AnyFunction>;

  // Adds a provider and publishes the table; higher priorities are asked first.
  void add(DeviceType type, const char* provider, int priority, AnyFunction function);
  AnyFunction find(DeviceType type, std::string_view provider) const;  // throws DeviceError
  // Loads the plug-ins of the device type and returns its functions, or throws DeviceError.
  const AnyFunction* load_or_fail(Device device) const;
  // The table for a call that no provider of `asked` took, if there is another by now: a provider
  // may have been added before the built-in ones. Else null.
  const AnyFunction* after_registration(Device device, const AnyFunction* asked) const;
  // No provider took the call: throws DeviceError that names those asked.
  [[noreturn]] void refuse(Device device) const;
  // The provider of the forward call did not take the backward call: throws DeviceError.
  [[noreturn]] void refuse_kept(Device device) const;

  // The name, the published tables, and the lists from which they are built.
  const char* name_;
  std::array<std::atomic<const AnyFunction*>, kDeviceTypeCount> tables_{};
  std::array<std::vector<Entry>, kDeviceTypeCount> entries_;

 private:
  std::vector<ProviderInfo> listed(DeviceType type) const;
  void publish(DeviceType type);
  static const AnyFunction* keep(Table table);
};

// A kernel that takes calls described by the struct Call.
template <class Call>
class Slot : public SlotBase {
 public:
  // Enqueues the call and returns true, or returns false without having touched anything: then the
  // next provider is asked.
  using Function = SlotFunction<Call>;
  using SlotBase::SlotBase;

  // Providers of a higher priority are asked first: built-in ones have 0, cuDNN and oneDNN 10.
  void provide(DeviceType type, const char* provider, Function function, int priority = 0) {
    add(type, provider, priority, reinterpret_cast<AnyFunction>(function));
  }
  // A provider that returns nothing takes every call.
  template <void (*kFunction)(const Call&)>
  void provide(DeviceType type, const char* provider, int priority = 0) {
    provide(type, provider, &take_call<kFunction, Call>, priority);
  }
  // Runs the provider that took the forward call, if it kept something for this one (kept.h);
  // else the first provider of the device's type that takes the call. DeviceError without one.
  void operator()(Device device, const Call& call) const {
    if constexpr (HasKept<Call>) {
      if (call.kept && call.kept->maker()) {
        if (!call.kept->maker()(call)) [[unlikely]]
          refuse_kept(device);
        return;
      }
    }
    const auto& table = tables_[static_cast<int>(device.type())];
    const AnyFunction* next = table.load(std::memory_order_acquire);
    if (next == nullptr) [[unlikely]]
      next = load_or_fail(device);
    if (!ask(next, call)) [[unlikely]]
      ask_others(device, call, next);
  }
  // A named provider, for tests and benchmarks.
  Function provider(DeviceType type, std::string_view provider_name) const {
    return reinterpret_cast<Function>(find(type, provider_name));
  }

 private:
  // Whether one of the functions has taken the call.
  static bool ask(const AnyFunction* next, const Call& call) {
    for (; *next != nullptr; ++next)
      if (reinterpret_cast<Function>(*next)(call)) [[likely]]
        return true;
    return false;
  }
  [[gnu::noinline, gnu::cold]] void ask_others(Device device, const Call& call,
                                               const AnyFunction* asked) const {
    const AnyFunction* others = after_registration(device, asked);
    if (others == nullptr || !ask(others, call)) refuse(device);
  }
};

// All slots of the process, for `catena-run --check` and the completeness test.
std::vector<SlotBase*> all_slots();

// Adds rules to config().providers while it lives, for tests and benchmarks:
//   ProviderScope only_ours("cudnn:off");
class ProviderScope {
 public:
  explicit ProviderScope(std::string_view rules);
  ~ProviderScope();
  ProviderScope(const ProviderScope&) = delete;
  ProviderScope& operator=(const ProviderScope&) = delete;

 private:
  std::string before_;
};

}  // namespace catena
