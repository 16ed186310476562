// Element-wise functions and reductions written as C++ lambdas, for arrays of CPU devices: by
// themselves, or as the CPU side of an ElementwiseKernel or ReductionKernel (its on_cpu).
//
// The lambda's parameters say what it works on: a value (float x) is an input, a reference
// (float& y) an output, RawView<float> an argument that the lambda indexes itself, and KernelIndex
// the position in the loop. Their types are written out, or those of a template are given to
// on_cpu. Pointers to functions and objects with one operator() do as well. Loops run on the
// library's threads, contiguous ones vectorised. Lambdas must not write to shared state without
// care of their own; a mutable one starts with a fresh copy of its captures for every element. An
// exception in one ends the call and comes out of it.
#pragma once

#include <tuple>
#include <utility>

#include "catena/array/array.h"

// The steps of the loop that follows do not depend on each other.
#ifdef __clang__
#define CATENA_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define CATENA_IVDEP _Pragma("GCC ivdep")
#endif

namespace catena {

// Where the loop stands: element i (C order) of n. For an element-wise lambda's first parameter.
struct KernelIndex {
  int64_t i, n;
};

// An argument that takes no part in broadcasting: indexed by a C-order linear index or by one
// index a dimension, as `raw` arguments in CUDA text.
template <class T>
class RawView {
 public:
  explicit RawView(const Array& array)
      : data_(static_cast<char*>(array.raw_data())),
        size_(array.size()),
        contiguous_(array.is_contiguous()),
        shape_(array.shape()),
        strides_(array.strides()) {}

  // Elements, extents, and strides in elements.
  int64_t size() const { return size_; }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }
  template <std::integral I>
  T& operator[](I linear) const {
    if (contiguous_) return reinterpret_cast<T*>(data_)[linear];
    int64_t offset = 0, rest = int64_t(linear);
    for (int d = shape_.ndim() - 1; d >= 0; --d) {
      offset += rest % shape_[size_t(d)] * strides_[size_t(d)];
      rest /= shape_[size_t(d)];
    }
    return *reinterpret_cast<T*>(data_ + offset);
  }
  template <std::integral I>
  T& operator[](const I* index) const {
    int64_t offset = 0;
    for (int d = 0; d < shape_.ndim(); ++d) offset += int64_t(index[d]) * strides_[size_t(d)];
    return *reinterpret_cast<T*>(data_ + offset);
  }

 private:
  char* data_;
  int64_t size_;
  bool contiguous_;
  Shape shape_;
  Strides strides_;
};

namespace detail {

// n elements of a loop: addresses and byte strides of the operands.
struct HostRow {
  char* const* pointers;
  const int64_t* strides;
  int64_t n;
  int64_t first, size;  // C-order index of the first element, elements of the loop
};

struct HostParameter {
  Dtype dtype;
  bool raw = false, output = false;
};

class HostElementwise {
 public:
  virtual ~HostElementwise() = default;
  virtual void run(const HostRow& row, const Array* raws) const = 0;
  std::vector<HostParameter> parameters;
  bool indexed = false;  // asks for KernelIndex: rows come in C order
};

// A reduction over accumulators of any trivially copyable type.
class HostReduction {
 public:
  virtual ~HostReduction() = default;
  virtual void fill(void* accumulators, int64_t n) const = 0;
  // All n elements into one accumulator; element j into accumulator j.
  virtual void fold_row(const HostRow& row, void* accumulator) const = 0;
  virtual void fold_columns(const HostRow& row, void* accumulators) const = 0;
  virtual void combine(void* accumulator, const void* other) const = 0;
  virtual void finish(const void* accumulator, char* const* outputs) const = 0;
  std::vector<Dtype> inputs, outputs;
  size_t accumulator_bytes = 0;
};

// ---- the parameters of a lambda -----------------------------------------------------------------

template <class P>
struct HostTraits {
  using Value = std::remove_cvref_t<P>;
  static constexpr bool kOutput =
      std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;
  static constexpr bool kRaw = false, kIndex = false;
  static_assert(kIsDtypeStorage<Value>,
                "a kernel lambda's parameters are element types such as float, references to them "
                "for outputs, RawView<float> and KernelIndex");
};
template <class T>
struct HostTraits<RawView<T>> {
  using Value = std::remove_const_t<T>;
  static constexpr bool kOutput = false, kRaw = true, kIndex = false;
};
template <class T>
struct HostTraits<const RawView<T>&> : HostTraits<RawView<T>> {};
template <>
struct HostTraits<KernelIndex> {
  using Value = char;
  static constexpr bool kOutput = false, kRaw = false, kIndex = true;
};

template <class F, class... P>
class HostElementwiseOf final : public HostElementwise {
 public:
  explicit HostElementwiseOf(F function) : function_(std::move(function)) {
    (add<HostTraits<P>>(), ...);
  }

  void run(const HostRow& row, const Array* raws) const override {
    run(row, raws, std::index_sequence_for<P...>());
  }

 private:
  // Of parameter k: its place among the looped operands, or among the raw ones.
  static constexpr size_t operand_of(size_t k) {
    constexpr bool looped[] = {(!HostTraits<P>::kRaw && !HostTraits<P>::kIndex)...};
    size_t at = 0;
    for (size_t j = 0; j < k; ++j) at += looped[j];
    return at;
  }
  static constexpr size_t raw_of(size_t k) {
    constexpr bool raw[] = {HostTraits<P>::kRaw...};
    size_t at = 0;
    for (size_t j = 0; j < k; ++j) at += raw[j];
    return at;
  }

  template <class T>
  void add() {
    if constexpr (T::kIndex)
      indexed = true;
    else
      parameters.push_back({dtype_of<typename T::Value>, T::kRaw, T::kOutput});
  }

  // What stays the same over a row: a typed address, a view, nothing.
  template <class Q, size_t k>
  static auto prepare(const HostRow& row, const Array* raws) {
    using T = HostTraits<Q>;
    if constexpr (T::kRaw)
      return RawView<typename T::Value>(raws[raw_of(k)]);
    else if constexpr (T::kIndex)
      return 0;
    else
      return reinterpret_cast<typename T::Value*>(row.pointers[operand_of(k)]);
  }
  template <class Q, size_t k, class S>
  static decltype(auto) at(const S& prepared, const HostRow& row, int64_t j) {
    using T = HostTraits<Q>;
    if constexpr (T::kRaw)
      return (prepared);
    else if constexpr (T::kIndex)
      return KernelIndex{row.first + j, row.size};
    else
      return (prepared[j]);
  }
  template <class Q, size_t k, class S>
  static decltype(auto) strided(const S& prepared, const HostRow& row, int64_t j) {
    using T = HostTraits<Q>;
    if constexpr (T::kRaw || T::kIndex)
      return at<Q, k>(prepared, row, j);
    else
      return (*reinterpret_cast<typename T::Value*>(reinterpret_cast<char*>(prepared) +
                                                    j * row.strides[operand_of(k)]));
  }

  template <size_t... K>
  void run(const HostRow& row, const Array* raws, std::index_sequence<K...>) const {
    const auto prepared = std::make_tuple(prepare<P, K>(row, raws)...);
    const bool dense =
        ((HostTraits<P>::kRaw || HostTraits<P>::kIndex ||
          row.strides[operand_of(K)] == int64_t(sizeof(typename HostTraits<P>::Value))) &&
         ...);
    const F& f = function_;
    if (dense) {
      CATENA_IVDEP
      for (int64_t j = 0; j < row.n; ++j) f(at<P, K>(std::get<K>(prepared), row, j)...);
    } else {
      for (int64_t j = 0; j < row.n; ++j) f(strided<P, K>(std::get<K>(prepared), row, j)...);
    }
  }

  F function_;
};

// What is called for one element, as `R(P...)`.
template <class F>
struct FunctionOf;
template <class R, class... P, bool no_throw>
struct FunctionOf<R (*)(P...) noexcept(no_throw)> {
  using Type = R(P...);
};
template <class R, class C, class... P, bool no_throw>
struct FunctionOf<R (C::*)(P...) noexcept(no_throw)> {
  using Type = R(P...);
};
template <class R, class C, class... P, bool no_throw>
struct FunctionOf<R (C::*)(P...) const noexcept(no_throw)> {
  using Type = R(P...);
};
template <class F>
constexpr auto function_of() {
  constexpr bool plain = std::is_pointer_v<F> || requires { &F::operator(); };
  static_assert(plain,
                "catena: a kernel lambda must name the types of its parameters, such as [](float "
                "x, float& y) {...}; for a lambda with auto or template parameters write an "
                "ElementwiseKernel with on_cpu<float, double>(lambda)");
  if constexpr (std::is_pointer_v<F>)
    return FunctionOf<F>();
  else if constexpr (plain)
    return FunctionOf<decltype(&F::operator())>();
  else
    return FunctionOf<void (*)()>();
}
template <class F>
using FunctionType = typename decltype(function_of<F>())::Type;

// A mutable lambda as a constant function.
template <class F>
struct FreshCopy {
  F function;
  template <class... A>
  decltype(auto) operator()(A&&... arguments) const {
    return F(function)(std::forward<A>(arguments)...);
  }
};
// Something that may be called with these arguments from several threads.
template <class... A, class F>
auto constant_function(F function) {
  if constexpr (std::is_invocable_v<const F&, A...>)
    return function;
  else
    return FreshCopy<F>{std::move(function)};
}

// A lambda that returns its only output.
template <class F, class R, class... P>
struct HostReturning {
  F function;
  void operator()(P... parameters, R& result) const { result = R(function(parameters...)); }
};

template <class F, class Function = FunctionType<F>>
struct HostSignature;
template <class F, class R, class... P>
struct HostSignature<F, R(P...)> {
  static std::shared_ptr<const HostElementwise> make(F f) {
    auto call = constant_function<P...>(std::move(f));
    using Call = decltype(call);
    if constexpr (std::is_void_v<R>)
      return std::make_shared<HostElementwiseOf<Call, P...>>(std::move(call));
    else
      return std::make_shared<HostElementwiseOf<HostReturning<Call, R, P...>, P..., R&>>(
          HostReturning<Call, R, P...>{std::move(call)});
  }
  static constexpr int kOutputs =
      (0 + ... + int(HostTraits<P>::kOutput)) + (std::is_void_v<R> ? 0 : 1);
};
// []<class T>(T x, T& y) for one T.
template <class T, class F>
auto make_generic_host(const F& f) {
  constexpr bool is_template = requires { &F::template operator()<T>; };
  static_assert(is_template,
                "catena: on_cpu<float, ...> takes a lambda that is a template of one type, such as "
                "[]<class T>(T x, T& y) {...}; leave the types out for a lambda that names them");
  if constexpr (is_template)
    return HostSignature<F, typename FunctionOf<decltype(&F::template operator()<T>)>::Type>::make(
        f);
}

// ---- reductions ---------------------------------------------------------------------------------

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
    // Several accumulators, so that a step does not wait for the one before.
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

}  // namespace detail
}  // namespace catena

#undef CATENA_IVDEP
