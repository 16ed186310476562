#include "backends/cuda/trace/activities.h"

#ifdef CATENA_HAS_CUPTI
#include <cupti_runtime_cbid.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

namespace catena::gpu {
namespace {

// Calls of the runtime that ask for work; there are many more records, of queries and allocations.
constexpr CUpti_CallbackId kRuntimeCalls[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
#if CUPTI_API_VERSION >= 130000
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
#endif
};

// Of the driver's calls only such are recorded.
bool asks_for_work(const CUpti_ActivityAPI& record) {
  return record.kind != CUPTI_ACTIVITY_KIND_RUNTIME ||
         std::find(std::begin(kRuntimeCalls), std::end(kRuntimeCalls), record.cbid) !=
             std::end(kRuntimeCalls);
}

using tracing::Category;
using tracing::DeviceSpan;

constexpr size_t kLongestName = 160;
// A replay of a graph is one call for many kernels, and kernels outnumber calls elsewhere as well.
constexpr size_t kCallsPerSpan = 2;

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

void erase_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
}

// Where the list of parameters begins; parentheses inside of <> are template arguments.
size_t parameters_of(const std::string& text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>') --depth;
    if (text[i] == '(' && depth == 0) return i;
  }
  return text.size();
}

std::string describe_copy(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "copy on the device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "copy between devices";
    default: return "copy";
  }
}

// The oldest makes room once there are `limit`.
template <class Value>
bool push_into_ring(std::vector<Value>& ring, size_t& oldest, size_t limit, Value value) {
  if (ring.size() < limit) return ring.push_back(std::move(value)), true;
  ring[oldest] = std::move(value);
  oldest = (oldest + 1) % limit;
  return false;
}

template <class Record>
const Record& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

}  // namespace

std::string readable_kernel(const char* name) {
  if (name == nullptr) return "kernel";
  std::string text = demangled(name);
  erase_all(text, "(anonymous namespace)::");
  text.resize(parameters_of(text));
  if (text.starts_with("void ")) text.erase(0, 5);
  if (text.size() > kLongestName) text = text.substr(0, kLongestName - 3) + "...";
  return text;
}

bool is_collective(std::string_view name) {
  return name.starts_with("nccl") || name.find("catena::comm::") != std::string_view::npos;
}

uint32_t Activities::name_number(const std::string& name) {
  const auto [found, is_new] = numbers_.emplace(name, static_cast<uint32_t>(names_.size()));
  if (is_new) names_.push_back(name);
  return found->second;
}

template <class Record>
void Activities::keep(const Record& record, Category category, const std::string& name,
                      int64_t bytes) {
  if (record.start == 0 || record.end < record.start) return;  // CUPTI could not get its times
  DeviceSpan span;
  span.begin = static_cast<int64_t>(record.start);
  span.end = static_cast<int64_t>(record.end);
  span.bytes = bytes;
  span.name = name_number(name);
  span.category = category;
  span.in_graph = record.graphId != 0;
  Stream& stream = streams_[{record.deviceId, record.streamId}];
  if (!push_into_ring(stream.spans, stream.oldest, limit_, Span{span, record.correlationId}))
    ++stream.dropped;
}

void Activities::keep_kernel(const CUpti_ActivityKernel9& record) {
  std::string& name = kernels_[record.name == nullptr ? "" : record.name];
  if (name.empty()) name = readable_kernel(record.name);
  keep(record, is_collective(name) ? Category::kCollective : Category::kKernel, name, -1);
}

void Activities::keep_call(const CUpti_ActivityAPI& record) {
  if (record.start == 0 || !asks_for_work(record)) return;
  push_into_ring(calls_, oldest_call_, limit_ * kCallsPerSpan,
                 {record.correlationId, static_cast<int64_t>(record.start)});
}

void Activities::add(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return keep_kernel(as<CUpti_ActivityKernel9>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = as<CUpti_ActivityMemcpy5>(record);
      return keep(copy, Category::kCopy, describe_copy(copy.copyKind),
                  static_cast<int64_t>(copy.bytes));
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& copy = as<CUpti_ActivityMemcpyPtoP4>(record);
      const std::string name = "copy cuda:" + std::to_string(copy.srcDeviceId) +
                               " to cuda:" + std::to_string(copy.dstDeviceId);
      return keep(copy, Category::kCopy, name, static_cast<int64_t>(copy.bytes));
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = as<CUpti_ActivityMemset4>(record);
      return keep(fill, Category::kCopy, "fill", static_cast<int64_t>(fill.bytes));
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return keep_call(as<CUpti_ActivityAPI>(record));
    default: return;
  }
}

tracing::DeviceActivity Activities::take() {
  const std::unordered_map<uint32_t, int64_t> launches(calls_.begin(), calls_.end());
  tracing::DeviceActivity activity;
  activity.names = std::move(names_);
  for (auto& [place, stream] : streams_) {
    tracing::DeviceTrack track;
    track.name = "cuda:" + std::to_string(place.first) + " stream " + std::to_string(place.second);
    track.dropped = stream.dropped;
    for (const Span& kept : stream.spans) {
      track.spans.push_back(kept.span);
      if (const auto call = launches.find(kept.correlation); call != launches.end())
        track.spans.back().launched = call->second;
    }
    activity.tracks.push_back(std::move(track));
  }
  *this = Activities(limit_);
  return activity;
}

}  // namespace catena::gpu
#endif
