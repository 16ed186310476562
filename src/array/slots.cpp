#include "catena/array/slots.h"

#include <algorithm>

#include "backends/cpu/register.h"
#include "catena/core/backend.h"
#include "catena/core/log.h"

namespace catena {
namespace {

std::mutex& provider_mutex() {
  static std::mutex* m = new std::mutex;
  return *m;
}

std::vector<const SlotBase*>& slot_list() {
  static auto* list = new std::vector<const SlotBase*>;
  return *list;
}

// The CPU kernels are part of this library: they are registered when a slot first finds no
// provider.
void register_builtin_kernels() {
  static std::once_flag once;
  std::call_once(once, register_cpu_kernels);
}

}  // namespace

SlotBase::SlotBase(const char* name) : name_(name) { slot_list().push_back(this); }

std::vector<std::string> SlotBase::providers(DeviceType type) const {
  register_builtin_kernels();
  std::lock_guard lock(provider_mutex());
  std::vector<std::string> names;
  for (const Entry& e : entries_[static_cast<int>(type)]) names.push_back(e.provider);
  return names;
}

void SlotBase::add(DeviceType type, const char* provider, int priority, AnyFunction function) {
  std::lock_guard lock(provider_mutex());
  auto& entries = entries_[static_cast<int>(type)];
  const auto place = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& e) { return e.priority < priority; });
  entries.insert(place, Entry{provider, priority, function});
  best_[static_cast<int>(type)].store(entries.front().function, std::memory_order_release);
}

SlotBase::AnyFunction SlotBase::find(DeviceType type, const char* provider) const {
  register_builtin_kernels();
  find_backend(type);  // loads the plug-in
  std::lock_guard lock(provider_mutex());
  for (const Entry& e : entries_[static_cast<int>(type)]) {
    if (e.provider == provider) return e.function;
  }
  fail<DeviceError>(name_, ": no provider '", provider, "' for ", catena::name(type));
}

SlotBase::AnyFunction SlotBase::load_or_fail(Device device) const {
  register_builtin_kernels();
  require_device(device);  // loads the plug-in; says why there is none
  AnyFunction f = best_[static_cast<int>(device.type())].load(std::memory_order_acquire);
  CATENA_CHECK(DeviceError, f != nullptr, name_, ": no kernel for ", device,
               "; plug-ins loaded: ", catena::name(device.type()));
  return f;
}

std::vector<const SlotBase*> all_slots() { return slot_list(); }

namespace kernels {

#define CATENA_DEFINE_SLOT(slot_name) decltype(slot_name) slot_name(#slot_name);
CATENA_DEFINE_SLOT(elementwise)
CATENA_DEFINE_SLOT(fused)
CATENA_DEFINE_SLOT(copy)
CATENA_DEFINE_SLOT(fill)
CATENA_DEFINE_SLOT(arange)
CATENA_DEFINE_SLOT(reduce)
CATENA_DEFINE_SLOT(arg_reduce)
CATENA_DEFINE_SLOT(matmul)
CATENA_DEFINE_SLOT(concatenate)
CATENA_DEFINE_SLOT(take)
CATENA_DEFINE_SLOT(scatter_add)
CATENA_DEFINE_SLOT(sort)
CATENA_DEFINE_SLOT(order_statistics)
CATENA_DEFINE_SLOT(searchsorted)
CATENA_DEFINE_SLOT(run_starts)
CATENA_DEFINE_SLOT(scan)
CATENA_DEFINE_SLOT(nonzero_count)
CATENA_DEFINE_SLOT(nonzero)
CATENA_DEFINE_SLOT(bincount)
CATENA_DEFINE_SLOT(histogram)
CATENA_DEFINE_SLOT(gather)
CATENA_DEFINE_SLOT(scatter)
CATENA_DEFINE_SLOT(random)
CATENA_DEFINE_SLOT(permutation)
CATENA_DEFINE_SLOT(dropout)
CATENA_DEFINE_SLOT(softmax)
CATENA_DEFINE_SLOT(softmax_grad)
CATENA_DEFINE_SLOT(softmax_cross_entropy)
CATENA_DEFINE_SLOT(softmax_cross_entropy_grad)
CATENA_DEFINE_SLOT(accuracy)
CATENA_DEFINE_SLOT(int_range)
CATENA_DEFINE_SLOT(sgd)
CATENA_DEFINE_SLOT(momentum_sgd)
CATENA_DEFINE_SLOT(adam)
#undef CATENA_DEFINE_SLOT

}  // namespace kernels

}  // namespace catena
