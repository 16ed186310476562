// Functions that remember their results, as CuPy's memoize.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "catena/core/device.h"
#include "catena/core/fork_mutex.h"

namespace catena {

namespace detail {
// Called by clear_memo while `owner` lives.
void register_memo(std::weak_ptr<void> owner, std::function<void()> clear);
template <class F>
struct MemoSignature : MemoSignature<decltype(&F::operator())> {};
template <class R, class C, class... P>
struct MemoSignature<R (C::*)(P...) const> {
  using Result = std::decay_t<R>;
  using Key = std::tuple<int, std::decay_t<P>...>;
};
}  // namespace detail

// Empties the tables of all memoized functions and the list of kernels made by cuda::elementwise,
// cuda::reduce and cuda::raw. Kernels in use stay valid.
void clear_memo();

// A function that calls `function` once for each list of arguments and then returns copies of what
// it gave; with for_each_device once for each current device too. Arguments must be ordered by <.
// Copies share one table. Calls from several threads are safe; two of them may compute the same
// result, of which the first is kept.
//
//   const auto table = memoize([](int64_t n) { return expensive(n); }, true);
template <class F>
auto memoize(F function, bool for_each_device = false) {
  using Signature = detail::MemoSignature<F>;
  struct Memo {
    ForkMutex mutex;
    std::map<typename Signature::Key, typename Signature::Result> results;
  };
  const auto memo = std::make_shared<Memo>();
  detail::register_memo(memo, [raw = memo.get()] {
    const std::lock_guard lock(raw->mutex);
    raw->results.clear();
  });
  return [function = std::move(function), memo, for_each_device](const auto&... arguments) ->
         typename Signature::Result {
           const Device device = for_each_device ? current_device() : Device();
           typename Signature::Key key(int(device.type()) * 4096 + device.index(), arguments...);
           {
             const std::lock_guard lock(memo->mutex);
             const auto found = memo->results.find(key);
             if (found != memo->results.end()) return found->second;
           }
           auto result = function(arguments...);
           const std::lock_guard lock(memo->mutex);
           return memo->results.try_emplace(std::move(key), std::move(result)).first->second;
         };
}

}  // namespace catena
