#include "catena/parallel/multi_node_chain_list.h"

#include <algorithm>
#include <deque>

#include "catena/parallel/functions.h"

namespace catena::parallel {

namespace F = catena::functions;

MultiNodeChainList::MultiNodeChainList(const MultiNodeChainList& other)
    : Parameterized(other), comm_(other.comm_) {
  for (const Placed& placed : other.links_)
    links_.push_back({placed.link->clone(), placed.in, placed.out});
}

MultiNodeChainList& MultiNodeChainList::operator=(const MultiNodeChainList& other) {
  if (this == &other) return *this;
  if (links_.empty())
    *this = MultiNodeChainList(other);
  else
    copy_parameters_from(other);
  return *this;
}

void MultiNodeChainList::check_ranks(const LinkRanks& ranks, const char* which) const {
  if (!ranks) return;
  CATENA_CHECK(ValueError, !ranks.list().empty(), "add_link: ", which,
               " is an empty list; leave it out (none) for the model's own inputs or outputs");
  for (const int rank : ranks.list())
    CATENA_CHECK(ValueError, rank >= 0 && rank < comm_->size(), "add_link: ", which, " ", rank,
                 " is not a rank of this communicator, expected 0 to ", comm_->size() - 1);
}

void MultiNodeChainList::insert(std::unique_ptr<EntryBase> link, const LinkRanks& in,
                                const LinkRanks& out) {
  check_ranks(in, "rank_in");
  check_ranks(out, "rank_out");
  const auto makes_output = [](const Placed& placed) { return !placed.out; };
  CATENA_CHECK(ValueError, out || std::none_of(links_.begin(), links_.end(), makes_output),
               "add_link: a link without rank_out is there already, whose results are those of the "
               "model on this rank; return several results from one link");
  if (Parameterized* const part = link->parameters(); part && part->training() != training())
    part->train(training());
  links_.push_back({std::move(link), in, out});
}

void MultiNodeChainList::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  for (size_t i = 0; i < links_.size(); ++i)
    if (Parameterized* const part = links_[i].link->parameters())
      part->visit_parameters(visitor, message(prefix, i, "/"));
}

void MultiNodeChainList::visit_functions(const FunctionVisitor& visitor) {
  for (size_t i = 0; i < links_.size(); ++i)
    if (Parameterized* const part = links_[i].link->parameters()) visitor(std::to_string(i), *part);
}

// One forward pass of this rank.
class MultiNodeChainList::Run {
 public:
  Run(Communicator& comm, const Variables& inputs) : comm_(comm), inputs_(inputs) {}

  void step(size_t number, Placed& placed) {
    number_ = number;
    const Variables xs = placed.in ? receive(placed.in.list()) : inputs_;
    std::optional<Variables> ys = placed.link->call(xs);
    CATENA_CHECK(ValueError, ys, "MultiNodeChainList: link ", number,
                 " does not take the number of variables that it gets, ", xs.size(),
                 placed.in ? ", one from each rank of rank_in"
                           : ", the inputs of the model; on this rank call it with as many as the "
                             "link takes");
    if (placed.out)
      send(*ys, placed.out.list());
    else
      outputs_ = std::move(ys);
  }

  // The outputs, behind whose backward all calls are; else the delegate variable.
  Variables finish() {
    CATENA_CHECK(ValueError, queue_.empty(), "MultiNodeChainList: ", queue_.size(),
                 " results were sent to this rank itself (rank_out ", comm_.rank(),
                 ") and no later link takes them (rank_in ", comm_.rank(), ")");
    const Variable last = F::delegate_variable(comm_);
    if (!outputs_) return last.defined() ? Variables{last} : Variables();
    return called_ && last.defined() ? F::pseudo_connect(last, *outputs_) : *outputs_;
  }

 private:
  Variables receive(const std::vector<int>& ranks) {
    Variables xs;
    for (const int rank : ranks) {
      const bool is_own = rank == comm_.rank();
      xs.push_back(is_own ? from_queue() : F::recv(comm_, rank));
      called_ |= !is_own;
    }
    return xs;
  }

  Variable from_queue() {
    CATENA_CHECK(ValueError, !queue_.empty(), "MultiNodeChainList: link ", number_,
                 " receives from its own rank, ", comm_.rank(),
                 ", but no earlier link has sent to it");
    Variable x = std::move(queue_.front());
    queue_.pop_front();
    return x;
  }

  void send(const Variables& ys, const std::vector<int>& ranks) {
    CATENA_CHECK(ValueError, ys.size() == 1 || ys.size() == ranks.size(),
                 "MultiNodeChainList: link ", number_, " returned ", ys.size(),
                 " variables for the ", ranks.size(),
                 " ranks of rank_out, expected one for all, or one for each");
    for (size_t i = 0; i < ranks.size(); ++i) {
      const Variable& y = ys.size() == 1 ? ys[0] : ys[i];
      if (ranks[i] == comm_.rank()) {
        queue_.push_back(y);
      } else {
        F::send(y, comm_, ranks[i]);
        called_ = true;
      }
    }
  }

  Communicator& comm_;
  const Variables& inputs_;
  std::optional<Variables> outputs_;
  std::deque<Variable> queue_;  // to this rank itself
  size_t number_ = 0;
  bool called_ = false;  // has sent or received: the output may depend on none of it
};

Variables MultiNodeChainList::run(const Variables& inputs) {
  Run one(*comm_, inputs);
  for (size_t i = 0; i < links_.size(); ++i) one.step(i, links_[i]);
  return one.finish();
}

Variable MultiNodeChainList::run_for_one(const Variables& inputs) {
  const Variables results = run(inputs);
  CATENA_CHECK(ValueError, results.size() <= 1, "MultiNodeChainList: the last link made ",
               results.size(), " variables, expected one; call run(inputs) for several");
  return results.empty() ? Variable() : results[0];
}

}  // namespace catena::parallel
