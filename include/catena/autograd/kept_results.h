// Results of expensive functions that the first run of a part of a model keeps for the second.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catena/autograd/variable.h"

namespace catena {
class FunctionCall;

// What is kept of a part of a model that is computed again for backward. Each keeps what those
// before it keep.
enum class Keep : uint8_t {
  kNothing,    // what goes in alone
  kAttention,  // and what attention gives
  kProducts,   // and what products of matrices and convolutions give
  kEverything  // all that backward reads: nothing is computed again
};

// What expensive functions gave, in the order in which they ran, and what they were called with.
class KeptResults {
 public:
  explicit KeptResults(Keep keep) : keep_(keep) {}
  // Forgets what `keep` does not name.
  void reduce_to(Keep keep);
  // What of it `keep` names.
  Arrays arrays(Keep keep) const;
  // Gives all arrays away, in their order, and takes the same values back, in whatever memory.
  Arrays give_away();
  void take_back(std::span<const Array> arrays);

 private:
  friend class KeptResultsScope;
  struct Call {
    const char* name;
    std::vector<std::pair<Shape, Dtype>> operands;
    bool operator==(const Call& other) const;
  };
  struct Entry {
    Keep from;
    Call call;
    Arrays arrays;
    std::vector<uint64_t> versions;  // write counts of the arrays
  };
  static Call call_of(const FunctionCall& call);
  static std::string text(const Call& call);

  Keep keep_;
  std::vector<Entry> entries_;
};

// While it lives, results of expensive functions that the calling thread runs are noted, or those
// that were noted are handed out instead. Scopes nest; a result is noted in those that note, up
// to one that hands it out.
class KeptResultsScope {
 public:
  enum class Mode : uint8_t { kNote, kRepeat };
  KeptResultsScope(KeptResults& results, Mode mode);
  ~KeptResultsScope();
  KeptResultsScope(const KeptResultsScope&) = delete;
  KeptResultsScope& operator=(const KeptResultsScope&) = delete;

  // ValueError that names the next call unless all results were handed out.
  void require_all_taken() const;

  // Whether somebody on this thread wants results that are kept by `from` and what is above it.
  static bool wants(Keep from);
  // For make_once. Whether the arrays were handed out; ValueError unless the noted call was of
  // the same function and operands, GradientError if the arrays were written to since.
  static bool take(const FunctionCall& call, Keep from, std::span<Array> arrays);
  static void note(const FunctionCall& call, Keep from, std::span<const Array> arrays);

 private:
  bool wants_own(Keep from) const { return results_.keep_ >= from; }
  void hand_out(const FunctionCall& call, std::span<Array> arrays);

  KeptResults& results_;
  Mode mode_;
  size_t next_ = 0;
  KeptResultsScope* outer_;
};

// What make() gives, an Array or a std::array of them: all that the call computes and that takes
// long, its results and what backward reads besides. In a second run of code whose first run kept
// it, that of the first run, and make() does not run. Nobody may write to the arrays later. Every
// function that takes long by its arithmetic goes through here (docs/how-to/add-a-function.md);
// `from` is the first choice that keeps it.
template <class Make>
auto make_once(const FunctionCall& call, Keep from, Make make) -> decltype(make()) {
  using Made = decltype(make());
  if (!KeptResultsScope::wants(from)) [[likely]]
    return make();
  Made made{};
  std::span<Array> arrays;
  if constexpr (std::same_as<Made, Array>)
    arrays = {&made, 1};
  else
    arrays = made;
  if (!KeptResultsScope::take(call, from, arrays)) made = make();
  KeptResultsScope::note(call, from, arrays);
  return made;
}

}  // namespace catena
