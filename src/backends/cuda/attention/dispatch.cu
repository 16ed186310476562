// Parts of attention that are not products: the keys of each query, the sums of rows in backward,
// and the choice of an instance.
#include <algorithm>

#include "backends/cuda/attention/gradient.cuh"
#include "backends/cuda/attention/instances.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

// Keys of the document of a query, and what is added to the query for its position on their axis.
struct Document {
  int64_t start;
  int begin, end;
};

__device__ int between(int x, int least, int most) {
  return x < least ? least : x < most ? x : most;
}

// Offsets that fall, or are outside of the axis, count as the nearest ones that are not.
__device__ Document document_of(const RangeArgs& args, int query) {
  int begin = between(args.query_documents[0], 0, args.queries),
      key_begin = between(args.key_documents[0], 0, args.keys);
  for (int n = 1; n < args.offsets; ++n) {
    const int end = between(args.query_documents[n], begin, args.queries),
              key_end = between(args.key_documents[n], key_begin, args.keys);
    if (query >= begin && query < end) return {int64_t(key_end) - end, key_begin, key_end};
    begin = end;
    key_begin = key_end;
  }
  return {0, 0, 0};
}

__device__ int2 range_of(const RangeArgs& args, int batch, int query) {
  Document document{int64_t(args.keys) - args.queries, 0, args.keys};
  if (args.query_documents)
    document = document_of(args, query);
  else if (args.starts)
    document.start = args.starts[batch];
  const int64_t position = query + document.start;
  int64_t begin = document.begin, end = document.end;
  if (args.lengths) end = min(end, int64_t(args.lengths[batch]));
  if (args.causal) end = min(end, position + 1);
  if (args.window > 0) {
    begin = max(begin, position - args.window + 1);
    end = min(end, position + args.window);
  }
  return begin < end ? int2{int(begin), int(end)} : int2{0, 0};
}

// A warp for each bound.
__global__ void __launch_bounds__(kThreads) ranges_kernel(RangeArgs args) {
  wait_for_previous_kernel();
  static_assert(kBoundQueries == 32);
  const int bounds = (args.queries + kBoundQueries - 1) / kBoundQueries;
  const int64_t warp = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (warp >= int64_t(args.batch) * bounds) return;
  const int batch = int(warp / bounds), query = int(warp % bounds) * 32 + int(threadIdx.x % 32);
  const bool is_there = query < args.queries;
  const int2 range = is_there ? range_of(args, batch, query) : int2{0, 0};
  if (is_there) args.of_query[int64_t(batch) * args.queries + query] = range;
  const bool is_empty = range.x >= range.y;
  // One query without keys: no tile of keys is clean. One that is not there changes nothing.
  int4 all{is_empty ? args.keys : range.x, is_empty ? 0 : range.y,
           !is_there  ? 0
           : is_empty ? args.keys
                      : range.x,
           !is_there  ? args.keys
           : is_empty ? 0
                      : range.y};
  for (int other = 16; other > 0; other /= 2) {
    all.x = min(all.x, __shfl_xor_sync(0xffffffff, all.x, other));
    all.y = max(all.y, __shfl_xor_sync(0xffffffff, all.y, other));
    all.z = max(all.z, __shfl_xor_sync(0xffffffff, all.z, other));
    all.w = min(all.w, __shfl_xor_sync(0xffffffff, all.w, other));
  }
  if (threadIdx.x % 32 == 0) args.of_bound[warp] = all;
}

// row = sum(gout * out) - glog_sum, by as many lanes as a row has chunks of 16 bytes, rounded up to
// a power of two, at most a warp.
template <class T>
__global__ void __launch_bounds__(kThreads)
    attention_rows_kernel(AttentionGradArgs args, int lanes) {
  wait_for_previous_kernel();
  constexpr int kChunk = 16 / sizeof(T);
  const AttentionArgs& forward = args.forward;
  const int64_t rows = int64_t(forward.batch) * forward.heads * forward.queries;
  const int64_t row = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
  float sum = 0;
  if (row < rows) {
    const int query = int(row % forward.queries), head = int(row / forward.queries % forward.heads),
              batch = int(row / forward.queries / forward.heads);
    using P = Pack<T, kChunk>;
    const T* const gout = rows_of<T>(args.gout, batch, head) + query * args.gout.row;
    const T* const out = rows_of<T>(forward.out, batch, head) + query * forward.out.row;
    for (int column = int(threadIdx.x % lanes) * kChunk; column < forward.width;
         column += lanes * kChunk) {
      const P a = *reinterpret_cast<const P*>(gout + column);
      const P b = *reinterpret_cast<const P*>(out + column);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) sum = fmaf(widen(a.v[i]), widen(b.v[i]), sum);
    }
  }
  for (int other = lanes / 2; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffff, sum, other);
  if (row < rows && threadIdx.x % lanes == 0)
    args.row[row] = args.glog_sum ? sum - args.glog_sum[row] : sum;
}

template <class T>
void launch_rows(const AttentionGradArgs& args, const Launch& launch) {
  const int chunks = args.forward.width / int(16 / sizeof(T));
  int lanes = 1;
  while (lanes < chunks && lanes < 32) lanes *= 2;
  const int64_t rows = int64_t(args.forward.batch) * args.forward.heads * args.forward.queries;
  launch_kernel<attention_rows_kernel<T>>(unsigned((rows * lanes + kThreads - 1) / kThreads),
                                          kThreads, launch, args, lanes);
}

// Calls f with an element of the storage type and the columns of an instance.
template <class F>
void choose_instance(Float type, int columns, F f) {
  const auto choose = [&](auto element) {
    if (columns <= 64)
      f(element, std::integral_constant<int, 64>());
    else if (columns <= 128)
      f(element, std::integral_constant<int, 128>());
    else
      f(element, std::integral_constant<int, kMostAttentionColumns>());
  };
  switch (type) {
    case Float::kF16: return choose(__half());
    case Float::kBf16: return choose(__nv_bfloat16());
    default: return choose(float());
  }
}

template <class T, int kColumns>
size_t shared_memory_of(bool with_gradient) {
  size_t bytes = ForwardTile<T, kColumns>::kShared;
  if (with_gradient) {
    bytes = std::max(bytes, QueryGradTile<T, kColumns>::kShared);
    bytes = std::max(bytes, KeyGradTile<T, kColumns>::kShared);
  }
  return bytes;
}

int columns_of(const AttentionArgs& args) {
  return args.depth > args.width ? args.depth : args.width;
}

}  // namespace

void launch_attention_ranges(const RangeArgs& args, const Launch& launch) {
  const int64_t bounds = (args.queries + kBoundQueries - 1) / kBoundQueries * int64_t(args.batch);
  launch_kernel<ranges_kernel>(unsigned((bounds * 32 + kThreads - 1) / kThreads), kThreads, launch,
                               args);
}

size_t attention_shared_memory(Float type, int columns, bool with_gradient) {
  size_t bytes = 0;
  choose_instance(type, columns, [&](auto element, auto instance) {
    bytes = shared_memory_of<decltype(element), decltype(instance)::value>(with_gradient);
  });
  return bytes;
}

bool attention_has_products(int device) { return is_code_for<ranges_kernel, 80>(device); }

void launch_attention(Float type, const AttentionArgs& args, const Launch& launch) {
  choose_instance(type, columns_of(args), [&](auto element, auto columns) {
    run_attention<decltype(element), decltype(columns)::value>(args, launch);
  });
}

void launch_attention_grad(Float type, const AttentionGradArgs& args, const Launch& launch) {
  choose_instance(type, columns_of(args.forward), [&](auto element, auto columns) {
    using T = decltype(element);
    launch_rows<T>(args, launch);
    run_attention_key_grad<T, decltype(columns)::value>(args, launch);
    run_attention_query_grad<T, decltype(columns)::value>(args, launch);
  });
}

}  // namespace catena::gpu
