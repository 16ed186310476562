// Reductions of host_kernel.h: lambdas that map, fold and finish, as loops over rows.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/array/detail/host_function.h"
#include "catena/core/dtype.h"

namespace catena::detail {

// A reduction over accumulators of any trivially copyable type.
class HostReduction {
 public:
  virtual ~HostReduction() = default;
  virtual void fill(void* accumulators, int64_t n) const = 0;
  // Folds all n elements into one accumulator; folds element j into accumulator j.
  virtual void fold_row(const HostRow& row, void* accumulator) const = 0;
  virtual void fold_columns(const HostRow& row, void* accumulators) const = 0;
  virtual void combine(void* accumulator, const void* other) const = 0;
  virtual void finish(const void* accumulator, char* const* outputs) const = 0;
  std::vector<Dtype> inputs, outputs;
  size_t accumulator_bytes = 0;
};

template <class A, class Map, class Fold, class Post, class Inputs, class Outputs>
class HostReductionOf;
template <class A, class Map, class Fold, class Post, class... In, class... Out>
class HostReductionOf<A, Map, Fold, Post, std::tuple<In...>, std::tuple<Out...>> final
    : public HostReduction {
  static_assert(std::is_trivially_copyable_v<A>,
                "the accumulator of a reduction must be trivially copyable");

 public:
  HostReductionOf(A identity, Map map, Fold fold, Post post)
      : identity_(identity), map_(std::move(map)), fold_(std::move(fold)), post_(std::move(post)) {
    inputs = {dtype_of<In>...};
    outputs = {dtype_of<Out>...};
    accumulator_bytes = sizeof(A);
  }

  void fill(void* accumulators, int64_t n) const override {
    for (int64_t j = 0; j < n; ++j) static_cast<A*>(accumulators)[j] = identity_;
  }
  void fold_row(const HostRow& row, void* accumulator) const override {
    fold_row(row, *static_cast<A*>(accumulator), std::index_sequence_for<In...>());
  }
  void fold_columns(const HostRow& row, void* accumulators) const override {
    fold_columns(row, static_cast<A*>(accumulators), std::index_sequence_for<In...>());
  }
  void combine(void* accumulator, const void* other) const override {
    A& a = *static_cast<A*>(accumulator);
    a = A(fold_(a, *static_cast<const A*>(other)));
  }
  void finish(const void* accumulator, char* const* results) const override {
    finish(*static_cast<const A*>(accumulator), results, std::index_sequence_for<Out...>());
  }

 private:
  template <size_t... K>
  A mapped(const HostRow& row, int64_t j, std::index_sequence<K...>) const {
    return A(map_(*reinterpret_cast<const In*>(row.pointers[K] + j * row.strides[K])...));
  }
  template <size_t... K>
  void fold_row(const HostRow& row, A& a, std::index_sequence<K...> all) const {
    // Several accumulators, so that a step does not depend on the previous one.
    constexpr int kLanes = 16;
    A lanes[kLanes];
    fill(lanes, kLanes);
    int64_t j = 0;
    if (((row.strides[K] == int64_t(sizeof(In))) && ...)) {
      const auto in = std::make_tuple(reinterpret_cast<const In*>(row.pointers[K])...);
      for (; j + kLanes <= row.n; j += kLanes) {
        CATENA_IVDEP
        for (int l = 0; l < kLanes; ++l)
          lanes[l] = A(fold_(lanes[l], A(map_(std::get<K>(in)[j + l]...))));
      }
    }
    for (; j < row.n; ++j) {
      A& lane = lanes[j % kLanes];
      lane = A(fold_(lane, mapped(row, j, all)));
    }
    for (const A& lane : lanes) a = A(fold_(a, lane));
  }
  template <size_t... K>
  void fold_columns(const HostRow& row, A* a, std::index_sequence<K...> all) const {
    if (((row.strides[K] == int64_t(sizeof(In))) && ...)) {
      const auto in = std::make_tuple(reinterpret_cast<const In*>(row.pointers[K])...);
      CATENA_IVDEP
      for (int64_t j = 0; j < row.n; ++j) a[j] = A(fold_(a[j], A(map_(std::get<K>(in)[j]...))));
    } else {
      for (int64_t j = 0; j < row.n; ++j) a[j] = A(fold_(a[j], mapped(row, j, all)));
    }
  }
  template <size_t... K>
  void finish(const A& a, char* const* results, std::index_sequence<K...>) const {
    post_(a, *reinterpret_cast<Out*>(results[K])...);
  }

  A identity_;
  Map map_;
  Fold fold_;
  Post post_;
};

template <class Function>
struct MapInputs;
template <class R, class... P>
struct MapInputs<R(P...)> {
  using Types = std::tuple<std::remove_cvref_t<P>...>;
  template <class F>
  static auto make(F f) {
    return constant_function<P...>(std::move(f));
  }
};
template <class Function>
struct PostSignature;
template <class R, class A, class... Out>
struct PostSignature<R(A, Out...)> {
  using Types = std::conditional_t<std::is_void_v<R>, std::tuple<std::remove_cvref_t<Out>...>,
                                   std::tuple<std::remove_cvref_t<R>>>;
  template <class F>
  static auto make(F f) {
    auto call = constant_function<A, Out...>(std::move(f));
    if constexpr (std::is_void_v<R>)
      return call;
    else
      return [call](A a, R& result) { result = call(a); };
  }
};
template <class A, class Map, class Fold, class Post>
std::shared_ptr<const HostReduction> make_host_reduction(A identity, Map map, Fold fold,
                                                         Post post) {
  using Inputs = MapInputs<FunctionType<Map>>;
  using Outputs = PostSignature<FunctionType<Post>>;
  auto mapped = Inputs::make(std::move(map));
  auto folded = constant_function<A, A>(std::move(fold));
  auto finish = Outputs::make(std::move(post));
  return std::make_shared<HostReductionOf<A, decltype(mapped), decltype(folded), decltype(finish),
                                          typename Inputs::Types, typename Outputs::Types>>(
      identity, std::move(mapped), std::move(folded), std::move(finish));
}

}  // namespace catena::detail
