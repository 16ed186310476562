// One record a slot: a call through the public routines, run with every provider that is there and
// compared with the built-in one of the CPU, which the records of functions, of layers of arrays
// and of optimizers hold against definitions. No slot may be without a record or without a built-in
// provider.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "catena/kernels/slot.h"
#include "kernels/rule_problems.h"
#include "kernels/slot_record.h"

namespace catena {

#define CATENA_ITEM(name) CATENA_SLOT_RECORDS(name);
#include "lists/slot_records.inc"
#undef CATENA_ITEM

namespace {

constexpr int kCompanionPriority = 10;  // providers below it are built in

// Sums of float32 in another order differ by roundings; everything else is far closer.
constexpr double kTolerance = 1e-4;

const SlotRecordList& records() {
  static const SlotRecordList all = [] {
    SlotRecordList list;
#define CATENA_ITEM(name) \
  for (const SlotRecord& record : name##_slot_records()) list.push_back(record);
#include "lists/slot_records.inc"
#undef CATENA_ITEM
    return list;
  }();
  return all;
}

// Those that slot_test.cpp makes in the same process.
bool is_of_slot_test(std::string_view name) {
  return name == "slot_test" || name == "cudnn_test" || name == "empty_slot" ||
         name == "pair_forward" || name == "pair_backward";
}

SlotBase* slot_named(const std::string& name) {
  for (SlotBase* slot : all_slots())
    if (slot->name() == name) return slot;
  return nullptr;
}

std::vector<Device> devices() {
  std::vector<Device> all{cpu()};
  if (device_count(DeviceType::kCuda) > 0) all.push_back(cuda_device(0));
  return all;
}

class SlotRecords : public ::testing::TestWithParam<size_t> {
 protected:
  const SlotRecord& record() const { return records()[GetParam()]; }
};

// Without its providers the record must fail: it reaches the slot that it is of.
TEST_P(SlotRecords, ReachTheirSlot) {
  std::string off;
  for (const ProviderInfo& p : slot_named(record().slot)->providers(DeviceType::kCpu))
    off += (off.empty() ? "" : ",") + std::string(record().slot) + "/" + p.name + ":off";
  const ProviderScope none(off);
  EXPECT_THROW(record().run(cpu()), DeviceError);
}

// The calls of records that a companion may decline, with the reason. Every other one it must take:
// a companion that declines everything would pass otherwise.
struct Decline {
  const char *provider, *slot, *reason;
};
constexpr const char* kChannelsFirst = "it has channels first alone, and the record both layouts";
constexpr const char* kNotByCausality = "it computes by causality alone, and the record by more";
constexpr Decline kDeclines[] = {
    {"cudnn", "attention", kNotByCausality},
    {"cudnn", "attention_grad", kNotByCausality},
    {"small", "matmul", "it computes small products only, and the record has a wide one"},
    {"cublaslt", "linear_activation", "it is for 16 bits, and the record is of float32"},
    {"small", "convolution", kChannelsFirst},
    {"small", "convolution_grad_x", kChannelsFirst},
    {"small", "convolution_grad_w", kChannelsFirst},
    {"cudnn", "lstm_grad", "it goes back only from its own forward call, in the record of lstm"}};
bool may_decline(const std::string& provider, const std::string& slot) {
  return std::ranges::any_of(
      kDeclines, [&](const Decline& d) { return provider == d.provider && slot == d.slot; });
}

// Each provider alone, so that a declined call is an error and not another provider's result.
TEST_P(SlotRecords, AgreeForEachProvider) {
  const SlotBase& slot = *slot_named(record().slot);
  const auto run = [&](const ProviderInfo& provider, Device device) {
    const ProviderScope alone(message(record().slot, "/", provider.name, ":only"));
    return record().run(device);
  };
  const std::vector<ProviderInfo> of_cpu = slot.providers(DeviceType::kCpu);
  const ProviderInfo& built_in = *std::ranges::min_element(of_cpu, {}, &ProviderInfo::priority);
  const Results expected = run(built_in, cpu());
  for (const Device device : devices()) {
    for (const ProviderInfo& p : slot.providers(device.type())) {
      SCOPED_TRACE(message(record().slot, " by ", p.name, " on ", device));
      if (may_decline(p.name, record().slot)) {
        EXPECT_THROW(run(p, device), DeviceError) << "no longer declined: take it off the list";
        continue;
      }
      const Results results = run(p, device);
      ASSERT_EQ(results.size(), expected.size());
      for (size_t i = 0; i < results.size(); ++i)
        EXPECT_EQ(testing::difference(results[i], expected[i], kTolerance, kTolerance), "") << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SlotRecords, ::testing::Range(size_t{0}, records().size()),
                         [](const auto& info) { return std::string(records()[info.param].slot); });

TEST(Slots, HaveARecord) {
  for (const SlotBase* slot : all_slots()) {
    if (is_of_slot_test(slot->name())) continue;
    EXPECT_TRUE(
        std::any_of(records().begin(), records().end(),
                    [&](const SlotRecord& r) { return r.slot == std::string(slot->name()); }))
        << slot->name() << " has no record in tests/kernels/records";
  }
  for (const SlotRecord& r : records()) EXPECT_NE(slot_named(r.slot), nullptr) << r.slot;
}

void expect_builtin_providers(DeviceType type) {
  for (const SlotBase* slot : all_slots()) {
    if (is_of_slot_test(slot->name())) continue;
    const auto providers = slot->providers(type);
    EXPECT_TRUE(std::any_of(providers.begin(), providers.end(),
                            [](const ProviderInfo& p) { return p.priority < kCompanionPriority; }))
        << slot->name() << " has no built-in provider for " << name(type);
  }
}

// By the sources, so that a build without CUDA notices too.
TEST(Slots, HaveASourceForCuda) {
  const std::vector<std::string_view> provided = {
#define CATENA_ITEM(slot) #slot,
#include "lists/cuda_kernels.inc"
#undef CATENA_ITEM
  };
  for (const SlotBase* slot : all_slots())
    EXPECT_TRUE(is_of_slot_test(slot->name()) || std::ranges::count(provided, slot->name()) == 1)
        << "no source in src/backends/cuda or common provides " << slot->name();
}

TEST(Slots, HaveABuiltInProviderOnTheCpu) { expect_builtin_providers(DeviceType::kCpu); }

// Also where no GPU is: the plug-in's kernels are registered without its backend.
TEST(Slots, HaveABuiltInProviderOnCuda) {
  const std::string file = CATENA_TEST_CUDA_PLUGIN;  // dlopen("") would be this program
  if (file.empty()) GTEST_SKIP() << "SKIPPED: no cuda plug-in in this build";
  void* plugin = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << dlerror();
  if (device_count(DeviceType::kCuda) == 0) {
    const auto entry = reinterpret_cast<void (*)()>(dlsym(plugin, "catena_plugin_kernels"));
    ASSERT_NE(entry, nullptr);
    entry();
  }
  expect_builtin_providers(DeviceType::kCuda);
  for (const SlotBase* slot : all_slots())
    for (const ProviderInfo& p : slot->providers(DeviceType::kCuda))
      EXPECT_TRUE(p.priority >= kCompanionPriority ||
                  std::ranges::find(kProvidersOfCuda, p.name) != std::end(kProvidersOfCuda))
          << p.name << " is not in kProvidersOfCuda";
}

}  // namespace
}  // namespace catena
