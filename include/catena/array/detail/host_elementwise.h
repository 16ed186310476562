// Element-wise lambdas of host_kernel.h as loops over rows.
#pragma once

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "catena/array/detail/host_function.h"
#include "catena/array/raw_view.h"

namespace catena::detail {

struct HostParameter {
  Dtype dtype;
  bool raw = false, output = false;
};

class HostElementwise {
 public:
  virtual ~HostElementwise() = default;
  virtual void run(const HostRow& row, const Array* raws) const = 0;
  std::vector<HostParameter> parameters;
  bool indexed = false;  // takes a KernelIndex: rows come in C order
};

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
  // The index of parameter k among the looped operands, or among the raw ones.
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

  // What is constant over a row: a typed address, a view, nothing.
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

}  // namespace catena::detail
