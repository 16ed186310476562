// Recorders before the CPU's slots. See program_requests.h. The rules by which a call becomes a
// program are those of src/backends/cuda/jit: elementwise.cpp, copies.cpp and reduce.cpp.
#include "device/program_requests.h"

#include <mutex>

#include "array/fusion/fused_program.h"
#include "backends/cuda/jit/compile/fused_source.h"
#include "backends/cuda/jit/tool/bundle_list.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/elementwise_ops.h"
#include "catena/kernels/reduce.h"

namespace catena::jit {

namespace {

std::mutex g_mutex;
std::map<std::string, std::string> g_requests;

void request(const BundleItem& item) {
  const std::lock_guard lock(g_mutex);
  g_requests[item.source] = item.what;
}

Dtype word_of(int64_t itemsize) {
  return itemsize == 1   ? Dtype::kUInt8
         : itemsize == 2 ? Dtype::kUInt16
         : itemsize == 4 ? Dtype::kUInt32
                         : Dtype::kUInt64;
}

void on_elementwise(const ElementwiseCall& call) {
  const ElementwiseInfo& row = info(call.op);
  MapSpec spec{call.op, call.dtype, {}};
  spec.memory[0] = call.output->dtype();
  bool same = spec.memory[0] == row.natural_result(call.dtype);
  for (int k = 0; k < call.input_count; ++k) {
    const Dtype natural = row.operand_dtype(k, call.dtype);
    spec.memory[1 + k] = call.arrays[k] ? call.arrays[k]->dtype() : natural;
    same = same && spec.memory[1 + k] == natural;
  }
  request(same ? map_item(call.op, call.dtype) : mixed_item(spec));
}

void on_copy(const CopyCall& call) {
  const auto& [source, destination] = call;
  if (destination.size() == 0) return;
  if (source.dtype() != destination.dtype())
    request(cast_item(source.dtype(), destination.dtype()));
  else if (!source.is_contiguous() || !destination.is_contiguous())
    request(map_item(ops::positive, word_of(source.itemsize())));
}

// Zeros into a contiguous array are a memset; other numbers may be.
void on_fill(const FillCall& call) {
  const auto& [destination, value] = call;
  if (destination.is_contiguous() && value.to_double() == 0) return;
  request(map_item(ops::positive, word_of(destination.itemsize())));
}

void on_arange(const ArangeCall& call) {
  const Array& destination = call.destination;
  if (destination.size() > 0) request(arange_item(destination.dtype()));
}

// The width of the words depends on addresses.
void on_concatenate(const ConcatenateCall& call) {
  for (const int bytes : {1, 2, 4, 8, 16}) request(concatenate_item(bytes));
  for (const Array& input : call.inputs) on_copy({input, call.output});
}

void on_reduce(const ReduceCall& call) {
  if (call.output->size() > 0)
    request(reduce_item(call.op, call.input->dtype(), call.output->dtype()));
}

void on_arg_reduce(const ArgReduceCall& call) {
  if (call.output->size() > 0) request(arg_reduce_item(call.input->dtype()));
}

void on_fused(const FusedCall& call) {
  request({"fused " + fused_name(*call.program), fused_source(*call.program)});
}

// A provider that is asked first, records what the call requests and leaves it to the next.
template <auto kRecord, class Call>
bool record_call(const Call& call) {
  kRecord(call);
  return false;
}
template <auto kRecord, class Call>
void record(Slot<Call>& slot) {
  slot.providers(DeviceType::kCpu);  // loads them, so that this one comes before all
  slot.provide(DeviceType::kCpu, "recording", &record_call<kRecord, Call>, 1000);
}

}  // namespace

void record_requests() {
  static const bool once = [] {
    record<&on_elementwise>(kernels::elementwise);
    record<&on_copy>(kernels::copy);
    record<&on_fill>(kernels::fill);
    record<&on_arange>(kernels::arange);
    record<&on_concatenate>(kernels::concatenate);
    record<&on_reduce>(kernels::reduce);
    record<&on_arg_reduce>(kernels::arg_reduce);
    record<&on_fused>(kernels::fused);
    return true;
  }();
  static_cast<void>(once);
}

std::map<std::string, std::string> take_requests() {
  const std::lock_guard lock(g_mutex);
  return std::exchange(g_requests, {});
}

}  // namespace catena::jit
