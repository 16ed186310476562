#include "catena/kernels/slot.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "backends/cpu/register.h"
#include "catena/core/backend.h"
#include "catena/core/error.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/plugin.h"
#include "kernels/rule_problems.h"

namespace catena {
namespace {

ForkMutex& provider_mutex() {
  static ForkMutex* m = new ForkMutex;
  return *m;
}

std::vector<SlotBase*>& slot_list() {
  static auto* list = new std::vector<SlotBase*>;
  return *list;
}

std::vector<SlotBase*> copy_of_slot_list() {
  std::lock_guard lock(provider_mutex());
  return slot_list();
}

// Set when the CPU's kernels and companions are there: before, rules cannot be judged.
std::atomic<bool> g_registered{false};

void judge_rules() {
  if (!g_registered) return;
  std::vector<std::string_view> kernels;
  for (const SlotBase* slot : copy_of_slot_list()) kernels.push_back(slot->name());
  warn_of_rules(kernels);
}

void apply_rules_to_all() {
  for (SlotBase* slot : copy_of_slot_list()) slot->apply_rules();
  judge_rules();
}

// The CPU kernels are part of this library. They are registered when a slot first finds no
// provider. The companions of the CPU are loaded with them, as those of a GPU are with its plug-in.
void register_builtin_kernels() {
  static std::once_flag once;
  const ForkScope scope;
  std::call_once(once, [] {
    config();  // reads its rules from the environment before changes are announced
    on_provider_rules(&apply_rules_to_all);
    register_cpu_kernels();
    load_companions(DeviceType::kCpu);
    g_registered = true;
    judge_rules();
  });
}

// The companions that the rules force although they are not loaded: no other provider may serve
// then.
std::vector<std::string> forced_absent(const char* kernel, DeviceType type,
                                       const std::vector<ProviderInfo>& providers) {
  std::vector<std::string> absent = absent_companions(kernel, type, providers);
  std::erase_if(absent, [&](const std::string& name) {
    return config().providers.use(kernel, name) != ProviderUse::kOnly;
  });
  return absent;
}

// Whether a provider is forced, so that it alone is asked.
bool any_forced(const char* kernel, DeviceType type, const std::vector<ProviderInfo>& providers) {
  const bool forced = std::any_of(providers.begin(), providers.end(), [](const ProviderInfo& p) {
    return p.use == ProviderUse::kOnly;
  });
  return forced || !forced_absent(kernel, type, providers).empty();
}

bool is_asked(const ProviderInfo& provider, bool forced) {
  return forced ? provider.use == ProviderUse::kOnly : provider.use != ProviderUse::kOff;
}

// Why the plug-in is not loaded.
std::string reason_of(const std::string& plugin) {
  const std::string reason = plugin_error(plugin.c_str());
  return reason.empty() ? message("plug-in '", plugin, "' is not loaded") : reason;
}

}  // namespace

SlotBase::SlotBase(const char* name) : name_(name) {
  std::lock_guard lock(provider_mutex());
  slot_list().push_back(this);
}

std::vector<ProviderInfo> SlotBase::providers(DeviceType type) const {
  register_builtin_kernels();
  find_backend(type);
  std::lock_guard lock(provider_mutex());
  return listed(type);
}

// The caller holds the lock.
std::vector<ProviderInfo> SlotBase::listed(DeviceType type) const {
  std::vector<ProviderInfo> result;
  for (const Entry& e : entries_[static_cast<int>(type)])
    result.push_back({e.provider, e.priority, config().providers.use(name_, e.provider)});
  return result;
}

void SlotBase::apply_rules() {
  std::lock_guard lock(provider_mutex());
  for (int type = 0; type < kDeviceTypeCount; ++type)
    if (!entries_[type].empty()) publish(static_cast<DeviceType>(type));
}

void SlotBase::add(DeviceType type, const char* provider, int priority, AnyFunction function) {
  std::lock_guard lock(provider_mutex());
  auto& entries = entries_[static_cast<int>(type)];
  const auto place = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& e) { return e.priority < priority; });
  entries.insert(place, Entry{provider, priority, function});
  note_provider(name_, provider);
  publish(type);
}

// The caller holds the lock.
void SlotBase::publish(DeviceType type) {
  const auto& entries = entries_[static_cast<int>(type)];
  const std::vector<ProviderInfo> all = listed(type);
  const bool forced = any_forced(name_, type, all);
  Table table;
  for (size_t i = 0; i < entries.size(); ++i)
    if (is_asked(all[i], forced)) table.push_back(entries[i].function);
  table.push_back(nullptr);
  tables_[static_cast<int>(type)].store(keep(std::move(table)), std::memory_order_release);
}

// Tables are never freed, because a call of another thread may be reading one. Equal tables are
// made once, so rules may change any number of times.
const SlotBase::AnyFunction* SlotBase::keep(Table table) {
  static auto* kept = new std::vector<std::unique_ptr<const Table>>;
  const auto same =
      std::find_if(kept->begin(), kept->end(), [&](const auto& other) { return *other == table; });
  if (same != kept->end()) return (*same)->data();
  kept->push_back(std::make_unique<const Table>(std::move(table)));
  return kept->back()->data();
}

SlotBase::AnyFunction SlotBase::find(DeviceType type, std::string_view provider) const {
  register_builtin_kernels();
  find_backend(type);  // loads the plug-in
  std::lock_guard lock(provider_mutex());
  for (const Entry& e : entries_[static_cast<int>(type)]) {
    if (e.provider == provider) return e.function;
  }
  fail<DeviceError>(name_, ": no provider '", provider, "' for ", catena::name(type));
}

const SlotBase::AnyFunction* SlotBase::load_or_fail(Device device) const {
  register_builtin_kernels();
  require_device(device);  // loads the plug-in, or says why there is none
  const AnyFunction* table =
      tables_[static_cast<int>(device.type())].load(std::memory_order_acquire);
  if (table == nullptr) refuse(device);
  return table;
}

const SlotBase::AnyFunction* SlotBase::after_registration(Device device,
                                                          const AnyFunction* asked) const {
  register_builtin_kernels();
  wait_for_plugins();
  const AnyFunction* now = tables_[static_cast<int>(device.type())].load(std::memory_order_acquire);
  return now == asked ? nullptr : now;
}

void SlotBase::refuse(Device device) const {
  const auto all = providers(device.type());
  if (all.empty())
    fail<DeviceError>(name_, ": ", catena::name(device.type()), " has no such kernel");
  const bool forced = any_forced(name_, device.type(), all);
  std::string asked, left_out;
  for (const ProviderInfo& p : all) {
    std::string& list = is_asked(p, forced) ? asked : left_out;
    list += (list.empty() ? "" : ", ") + p.name;
  }
  std::string rules = left_out.empty()
                          ? ""
                          : message("; left out by the rules '", config().providers.text(),
                                    "' (config().providers, CATENA_PROVIDERS): ", left_out);
  for (const std::string& plugin : forced_absent(name_, device.type(), all))
    rules += "; " + reason_of(plugin);
  fail<DeviceError>(name_, ": no provider takes this call on ", device,
                    "; asked: ", asked.empty() ? "none" : asked, rules);
}

void SlotBase::refuse_kept(Device device) const {
  fail<DeviceError>(name_, ": the provider that took the forward call on ", device,
                    " does not take the backward call, and no other one can read what it kept; "
                    "see catena/kernels/kept.h");
}

std::vector<SlotBase*> all_slots() {
  register_builtin_kernels();
  return copy_of_slot_list();
}

ProviderScope::ProviderScope(std::string_view rules) : before_(config().providers.text()) {
  config().providers = before_.empty() ? std::string(rules) : message(before_, ",", rules);
}

ProviderScope::~ProviderScope() { config().providers = before_; }

}  // namespace catena
