// MultiNodeChainList: a model whose layers are on different ranks.
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/array/axes.h"
#include "catena/autograd/function_set.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// The ranks that a link receives from or sends to, in order; none: it takes the inputs of the
// model, or makes its outputs. A rank may be there several times, for a message each.
class LinkRanks {
 public:
  LinkRanks(std::nullopt_t) {}
  LinkRanks(int rank) : ranks_(std::vector<int>{rank}) {}
  LinkRanks(std::initializer_list<int> ranks) : ranks_(std::vector<int>(ranks)) {}
  LinkRanks(std::vector<int> ranks) : ranks_(std::move(ranks)) {}

  // Whether there are ranks, and which.
  explicit operator bool() const { return ranks_.has_value(); }
  const std::vector<int>& list() const { return *ranks_; }

 private:
  std::optional<std::vector<int>> ranks_;
};

namespace detail {

inline Variables as_list(Variable y) { return {std::move(y)}; }
inline Variables as_list(Variables ys) { return ys; }

template <class Link, size_t... i>
std::optional<Variables> call_with(Link& link, const Variables& xs, std::index_sequence<i...>) {
  if constexpr (std::is_invocable_v<Link&, decltype((static_cast<void>(i), xs[i]))...>)
    return as_list(link(xs[i]...));
  else
    return std::nullopt;
}

// link(xs), or link(xs[0], xs[1], ...); nothing if it takes another number of variables.
template <class Link>
std::optional<Variables> call_link(Link& link, const Variables& xs) {
  if constexpr (std::is_invocable_v<Link&, const Variables&>) {
    return as_list(link(xs));
  } else {
    switch (xs.size()) {
      case 0: return call_with(link, xs, std::make_index_sequence<0>());
      case 1: return call_with(link, xs, std::make_index_sequence<1>());
      case 2: return call_with(link, xs, std::make_index_sequence<2>());
      case 3: return call_with(link, xs, std::make_index_sequence<3>());
      case 4: return call_with(link, xs, std::make_index_sequence<4>());
      default: return std::nullopt;
    }
  }
}

}  // namespace detail

// ChainerMN's model over ranks. Every rank makes one and adds its own links, in the order in which
// they run there; the parameters are those of this rank's links, with the paths "0/W", "1/b". The
// links of a rank receive their inputs, compute and send what they made, one after another, by the
// functions of parallel/functions.h: values and gradients are those of the same layers in one
// process.
//
//   parallel::MultiNodeChainList model(comm);
//   if (comm.rank() == 0) {
//     model.add_link(F::Linear(784, 100), none, 1);   // from the caller to rank 1
//     model.add_link(F::Linear(100, 10), 1, none);    // from rank 1 to the caller
//   } else {
//     model.add_link(Middle(), 0, 0);
//   }
//   const Variable y = model(x);   // on rank 0 the output
//
// Every rank calls the model, and afterwards goes back: the rank with the output from its loss, the
// others from the result of the call itself, their delegate variable: model().backward().
class MultiNodeChainList : public Parameterized {
 public:
  // Without links. Keeps the communicator, which another owner may close.
  explicit MultiNodeChainList(Communicator& comm) : comm_(comm.shared_from_this()) {}

  // A copy has its own parameters, a move keeps them.
  MultiNodeChainList(const MultiNodeChainList& other);
  MultiNodeChainList(MultiNodeChainList&&) noexcept = default;
  // Assigning writes into the parameters that are there, as with FunctionBag.
  MultiNodeChainList& operator=(const MultiNodeChainList& other);
  MultiNodeChainList& operator=(MultiNodeChainList&&) noexcept = default;

  // Adds a layer, a model or another function of up to four variables, or of a Variables, which
  // returns a Variable or Variables. One result goes to every rank of rank_out; several go one to
  // each. To and from this rank itself they wait in a queue. Returns the link.
  //
  // ValueError for ranks that do not exist, an empty list, or a second link without rank_out.
  template <class Link>
  Link& add_link(Link link, const LinkRanks& rank_in = none, const LinkRanks& rank_out = none) {
    auto entry = std::make_unique<Entry<Link>>(std::move(link));
    Link& result = entry->value;
    insert(std::move(entry), rank_in, rank_out);
    return result;
  }
  size_t size() const { return links_.size(); }

  // Runs this rank's links; `inputs` are for those without rank_in. On the rank with the output the
  // output, which must be one (ValueError); its backward also goes through the calls behind it. On
  // the others the delegate variable of the last call, undefined if nothing was recorded.
  // ValueError for a link that takes or makes another number of variables.
  template <std::convertible_to<Variable>... Inputs>
  Variable operator()(const Inputs&... inputs) {
    return run_for_one(Variables{inputs...});
  }
  // The same for several outputs; on the other ranks the delegate variable alone, or nothing.
  Variables run(const Variables& inputs);

  // See Parameterized.
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  void visit_functions(const FunctionVisitor& visitor) override;

 private:
  struct EntryBase {
    virtual ~EntryBase() = default;
    virtual std::optional<Variables> call(const Variables& xs) = 0;
    virtual Parameterized* parameters() = 0;  // null for a plain function
    virtual std::unique_ptr<EntryBase> clone() const = 0;
  };
  template <class Link>
  struct Entry : EntryBase {
    explicit Entry(Link v) : value(std::move(v)) {}
    std::optional<Variables> call(const Variables& xs) override {
      return detail::call_link(value, xs);
    }
    Parameterized* parameters() override {
      if constexpr (std::derived_from<Link, Parameterized>)
        return &value;
      else
        return nullptr;
    }
    std::unique_ptr<EntryBase> clone() const override { return std::make_unique<Entry>(value); }
    Link value;
  };
  struct Placed {
    std::unique_ptr<EntryBase> link;
    LinkRanks in, out;
  };
  class Run;

  void insert(std::unique_ptr<EntryBase> link, const LinkRanks& in, const LinkRanks& out);
  Variable run_for_one(const Variables& inputs);
  void check_ranks(const LinkRanks& ranks, const char* which) const;

  CommunicatorPtr comm_;
  std::vector<Placed> links_;
};

}  // namespace catena::parallel
