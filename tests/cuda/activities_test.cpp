// CUPTI's records as spans, with records made up here: no GPU and no CUPTI is needed.
#include "backends/cuda/trace/activities.h"

#include <cupti_runtime_cbid.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "backends/cuda/trace/cupti.h"

namespace catena::gpu {
namespace {

#ifdef CATENA_HAS_CUPTI

using tracing::Category;
using tracing::DeviceActivity;
using tracing::DeviceSpan;

template <class Record>
Record record_of(CUpti_ActivityKind kind, uint64_t start, uint64_t end) {
  Record record;
  std::memset(&record, 0, sizeof record);
  record.kind = kind;
  record.start = start;
  record.end = end;
  return record;
}

CUpti_ActivityKernel9 kernel(const char* name, uint64_t start, uint64_t end, uint32_t stream = 7) {
  auto record = record_of<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, start, end);
  record.name = name;
  record.streamId = stream;
  return record;
}

template <class Record>
void add(Activities& activities, const Record& record) {
  activities.add(reinterpret_cast<const CUpti_Activity&>(record));
}

const DeviceSpan& only_span(const DeviceActivity& activity) {
  EXPECT_EQ(activity.tracks.size(), 1u);
  EXPECT_EQ(activity.tracks.at(0).spans.size(), 1u);
  return activity.tracks.at(0).spans.at(0);
}

TEST(CuptiActivities, Kernels) {
  Activities activities(10);
  auto record = kernel("plain_kernel", 1000, 1600);
  record.deviceId = 1;
  record.graphId = 4;
  add(activities, record);
  add(activities, kernel("plain_kernel", 2000, 2100, 9));
  const DeviceActivity activity = activities.take();
  ASSERT_EQ(activity.tracks.size(), 2u);
  EXPECT_EQ(activity.tracks[0].name, "cuda:0 stream 9");
  EXPECT_EQ(activity.tracks[1].name, "cuda:1 stream 7");
  const DeviceSpan& span = activity.tracks[1].spans.at(0);
  EXPECT_EQ(span.begin, 1000);
  EXPECT_EQ(span.end, 1600);
  EXPECT_EQ(span.bytes, -1);
  EXPECT_EQ(span.launched, 0);
  EXPECT_TRUE(span.in_graph);
  EXPECT_FALSE(activity.tracks[0].spans.at(0).in_graph);
  EXPECT_EQ(span.category, Category::kKernel);
  EXPECT_EQ(activity.names, std::vector<std::string>({"plain_kernel"}));
  EXPECT_TRUE(activities.take().tracks.empty());
}

TEST(CuptiActivities, CollectivesAreKernelsOfCommunicators) {
  Activities activities(10);
  add(activities,
      kernel("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", 1,
             2));
  const DeviceActivity activity = activities.take();
  EXPECT_EQ(only_span(activity).category, Category::kCollective);
  EXPECT_EQ(activity.names[0], "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  EXPECT_TRUE(is_collective("ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_f32"));
  EXPECT_TRUE(is_collective("catena::comm::nccl::exchange_kernel<true>"));
  EXPECT_FALSE(is_collective("catena::gpu::softmax_kernel<float>"));
}

TEST(CuptiActivities, CopiesAndFills) {
  Activities activities(10);
  auto copy = record_of<CUpti_ActivityMemcpy5>(CUPTI_ACTIVITY_KIND_MEMCPY, 10, 20);
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 4096;
  add(activities, copy);
  auto peer = record_of<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, 30, 40);
  peer.srcDeviceId = 2;
  peer.dstDeviceId = 0;
  peer.bytes = 8;
  add(activities, peer);
  auto fill = record_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 50, 60);
  fill.bytes = 3;
  add(activities, fill);
  const DeviceActivity activity = activities.take();
  ASSERT_EQ(activity.tracks.size(), 1u);
  const auto& spans = activity.tracks[0].spans;
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(activity.names,
            std::vector<std::string>({"copy host to device", "copy cuda:2 to cuda:0", "fill"}));
  EXPECT_EQ(spans[0].bytes, 4096);
  EXPECT_EQ(spans[1].bytes, 8);
  EXPECT_EQ(spans[2].bytes, 3);
  for (const DeviceSpan& span : spans) EXPECT_EQ(span.category, Category::kCopy);
}

// The call may come before the kernels or after them, and a replay is one call for several.
TEST(CuptiActivities, SpansKnowWhenTheyWereAskedFor) {
  Activities activities(10);
  auto first = kernel("a", 100, 110), second = kernel("b", 110, 120), other = kernel("c", 130, 140);
  first.correlationId = second.correlationId = 5;
  other.correlationId = 6;
  add(activities, first);
  auto call = record_of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME, 40, 44);
  call.correlationId = 5;
  call.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020;
  add(activities, call);
  auto query = record_of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME, 50, 54);
  query.correlationId = 6;
  query.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020;
  add(activities, query);
  add(activities, second);
  add(activities, other);
  const DeviceActivity activity = activities.take();
  const auto& spans = activity.tracks.at(0).spans;
  EXPECT_EQ(spans[0].launched, 40);
  EXPECT_EQ(spans[1].launched, 40);
  EXPECT_EQ(spans[2].launched, 0);
}

TEST(CuptiActivities, KeepTheLastOfEachStream) {
  Activities activities(3);
  for (uint64_t i = 1; i <= 5; ++i) add(activities, kernel("k", i * 10, i * 10 + 1));
  add(activities, kernel("k", 7, 8, 2));
  const DeviceActivity activity = activities.take();
  ASSERT_EQ(activity.tracks.size(), 2u);
  EXPECT_EQ(activity.tracks[0].dropped, 0u);
  EXPECT_EQ(activity.tracks[1].dropped, 2u);
  ASSERT_EQ(activity.tracks[1].spans.size(), 3u);
  for (const DeviceSpan& span : activity.tracks[1].spans) EXPECT_GE(span.begin, 30);
}

TEST(CuptiActivities, OtherRecordsAndThoseWithoutTimesAreIgnored) {
  Activities activities(10);
  add(activities, kernel("k", 0, 0));
  add(activities, kernel("k", 20, 10));
  add(activities, record_of<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD, 1, 2));
  EXPECT_TRUE(activities.take().tracks.empty());
}

TEST(CuptiActivities, NamesAreReadable) {
  EXPECT_EQ(readable_kernel("_ZN6catena3gpu6kernelIfLi4EEEvPKT_Pfm"),
            "catena::gpu::kernel<float, 4>");
  EXPECT_EQ(readable_kernel("_ZN6catena12_GLOBAL__N_16kernelEPf"), "catena::kernel");
  EXPECT_EQ(readable_kernel("map_f32_123"), "map_f32_123");
  EXPECT_EQ(readable_kernel(nullptr), "kernel");
  EXPECT_EQ(readable_kernel(std::string(500, 'x').c_str()).size(), 160u);
}

// Opening the library needs no GPU.
TEST(CuptiActivities, TheLibraryHasWhatIsCalled) {
  const Cupti& api = cupti();
  if (api.result_string == nullptr) GTEST_SKIP() << "SKIPPED: needs CUPTI's library: " << api.error;
  EXPECT_EQ(api.error, "");
  const char* text = nullptr;
  EXPECT_EQ(api.result_string(CUPTI_ERROR_INVALID_PARAMETER, &text), CUPTI_SUCCESS);
  EXPECT_STREQ(text, "CUPTI_ERROR_INVALID_PARAMETER");
}

#else

TEST(CuptiActivities, NeedCupti) { GTEST_SKIP() << "SKIPPED: the toolkit has no CUPTI"; }

#endif

}  // namespace
}  // namespace catena::gpu
