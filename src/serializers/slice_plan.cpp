#include "serializers/slice_plan.h"

#include <algorithm>
#include <map>

namespace catena::serializers {
namespace {

constexpr int64_t kSmallest = int64_t{64} << 10;  // bytes of a share

std::string key_of(const TensorSlice& slice) {
  return message(slice.name, "\n", slice.begin, slice.extent, slice.order.axes(slice.shape.ndim()),
                 slice.elements.begin, " ", slice.elements.end);
}

}  // namespace

std::vector<SharedSlice> shared_slices(const std::vector<std::vector<TensorSlice>>& slices) {
  std::vector<SharedSlice> shared;
  std::map<std::string, size_t> places;
  for (size_t process = 0; process < slices.size(); ++process) {
    for (size_t part = 0; part < slices[process].size(); ++part) {
      const TensorSlice& slice = slices[process][part];
      if (slice.elements.size() == 0 && element_count(slice.shape) > 0) continue;
      const auto [place, is_new] = places.try_emplace(key_of(slice), shared.size());
      if (is_new) shared.push_back({slice, {}});
      auto& holders = shared[place->second].holders;
      if (holders.empty() || holders.back().process != process) holders.push_back({process, part});
    }
  }
  return shared;
}

namespace {

void check_tensors(const std::vector<SharedSlice>& shared) {
  struct Tensor {
    const TensorSlice* first;
    int64_t elements;
  };
  std::map<std::string, Tensor> tensors;
  for (const SharedSlice& one : shared) {
    const TensorSlice& slice = one.slice;
    Tensor& tensor = tensors.try_emplace(slice.name, Tensor{&slice, 0}).first->second;
    CATENA_CHECK(
        ValueError, tensor.first->shape == slice.shape && tensor.first->dtype == slice.dtype,
        "the name '", slice.name, "' stands for ", tensor.first->dtype, " ", tensor.first->shape,
        " and for ", slice.dtype, " ", slice.shape, "; all ranks must name the parts of one model");
    tensor.elements += slice.elements.size();
  }
  for (const auto& [name, tensor] : tensors)
    CATENA_CHECK(ValueError, tensor.elements == element_count(tensor.first->shape), "of '", name,
                 "' ", tensor.first->shape, " the ranks have ", tensor.elements, " elements in ",
                 "slices that differ, expected ", element_count(tensor.first->shape),
                 "; all ranks must lay the model out alike and call together");
}

class Planner {
 public:
  explicit Planner(size_t processes) : pieces_(processes), bytes_(processes) {}

  void add(const SharedSlice& shared) {
    const TensorSlice& slice = shared.slice;
    const auto holders = int64_t(shared.holders.size());
    const int64_t shares =
        slice.is_equal ? std::clamp<int64_t>(slice.bytes() / kSmallest, 1, holders) : 1;
    if (shares < holders) {
      add_pieces(slice.is_equal ? least_busy(shared) : shared.holders[0], slice);
      return;
    }
    for (int64_t k = 0; k < shares; ++k)
      add_pieces(shared.holders[size_t(k)],
                 with(slice, share(slice, k, shares), share(slice, k + 1, shares)));
  }
  std::vector<std::vector<Piece>> take() { return std::move(pieces_); }

 private:
  static TensorSlice with(TensorSlice slice, int64_t begin, int64_t end) {
    slice.elements = {begin, end};
    return slice;
  }
  // Where share k of `count` begins: at a multiple of 64 elements.
  static int64_t share(const TensorSlice& slice, int64_t k, int64_t count) {
    if (k == count) return slice.elements.end;
    return slice.elements.begin + slice.elements.size() / count / 64 * 64 * k;
  }
  SharedSlice::Holder least_busy(const SharedSlice& shared) const {
    return *std::min_element(
        shared.holders.begin(), shared.holders.end(),
        [&](const auto& a, const auto& b) { return bytes_[a.process] < bytes_[b.process]; });
  }
  void add_pieces(const SharedSlice::Holder& holder, const TensorSlice& slice) {
    const int64_t most = kPieceBytes / int64_t(itemsize(slice.dtype));
    int64_t begin = slice.elements.begin;
    do {
      const int64_t end = std::min(begin + most, slice.elements.end);
      pieces_[holder.process].push_back({holder.part, with(slice, begin, end)});
      begin = end;
    } while (begin < slice.elements.end);
    bytes_[holder.process] += slice.bytes();
  }

  std::vector<std::vector<Piece>> pieces_;
  std::vector<int64_t> bytes_;  // of each process
};

}  // namespace

std::vector<std::vector<Piece>> plan_pieces(const std::vector<std::vector<TensorSlice>>& slices) {
  const std::vector<SharedSlice> shared = shared_slices(slices);
  check_tensors(shared);
  Planner planner(slices.size());
  for (const SharedSlice& one : shared) planner.add(one);
  return planner.take();
}

}  // namespace catena::serializers
