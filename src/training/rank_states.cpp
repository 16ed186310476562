#include "training/rank_states.h"

#include <optional>

#include "catena/array/creation.h"
#include "core/split_mix.h"

namespace catena::training {
namespace {

using States = std::map<std::string, Array>;

std::string entry(int rank, const std::string& what) { return message(rank, "/", what); }
std::string entry_of_mean(const std::string& name) { return "means/" + name; }
std::string entry_of_term(const std::string& name, size_t i) {
  return message("terms/", i, "/", name);
}
std::string entry_of_array(const std::string& path) { return "model/" + path; }

NamedArrays to_arrays(const RankState& own, int rank) {
  const RandomState::State random = own.random.state();
  NamedArrays arrays{{"random", array<uint64_t>({random.seed, random.offset}, cpu(0))}};
  for (const std::string& name : own.names) {
    const Means::Sum sum = own.means.sum(name);
    arrays.emplace_back(entry_of_mean(name), array<double>({sum.sum, sum.count}, cpu(0)));
    for (size_t i = 0; i < sum.terms.size(); ++i)
      arrays.emplace_back(entry_of_term(name, i),
                          array<double>({sum.terms[i].sum, sum.terms[i].count}, cpu(0)));
  }
  if (rank == 0) return arrays;  // its arrays are those of the model in the checkpoint
  for (const auto& [path, p] : own.model.named_persistents())
    if (p.over_ranks() == OverRanks::kPerRank)
      arrays.emplace_back(entry_of_array(path), p.data().to_cpu());
  return arrays;
}

// The two numbers of an entry, if it is there.
template <class T>
std::optional<std::vector<T>> pair_of(const States& saved, const std::string& name) {
  const auto found = saved.find(name);
  if (found == saved.end()) return {};
  const Array& a = found->second;
  CATENA_CHECK(IoError, a.dtype() == dtype_of<T> && a.shape() == Shape{2}, "checkpoint: '", name,
               "' is ", a.dtype(), " of shape ", a.shape(), ", expected ", dtype_of<T>,
               " of shape (2,)");
  return a.to_vector<T>();
}

std::vector<RandomState::State> generators(const States& saved) {
  std::vector<RandomState::State> states;
  while (const auto pair = pair_of<uint64_t>(saved, entry(int(states.size()), "random")))
    states.push_back({pair->at(0), pair->at(1)});
  return states;
}

std::optional<Means::Sum> mean_of_rank(const States& saved, int rank, const std::string& name) {
  const auto whole = pair_of<double>(saved, entry(rank, entry_of_mean(name)));
  if (!whole) return {};
  Means::Sum sum{whole->at(0), whole->at(1)};
  while (const auto term =
             pair_of<double>(saved, entry(rank, entry_of_term(name, sum.terms.size()))))
    sum.terms.push_back({term->at(0), term->at(1)});
  return sum;
}

bool all_equal(const std::vector<RandomState::State>& states) {
  for (const auto& s : states)
    if (s.seed != states[0].seed || s.offset != states[0].offset) return false;
  return true;
}

void restore_generator(const std::vector<RandomState::State>& saved, RandomState& random,
                       int rank) {
  if (rank < int(saved.size())) return random.set_state(saved[size_t(rank)]);
  const bool drew_alike = saved.size() > 1 && all_equal(saved);
  if (rank > 0 && !drew_alike) random.seed(split_mix(random.state().seed, uint64_t(rank - 1)));
}

}  // namespace

std::map<std::string, Array> gather_rank_states(const RankState& own, Communicator* comm) {
  const NamedArrays mine = to_arrays(own, comm ? comm->rank() : 0);
  const auto all = comm ? comm->gather_object(mine) : std::vector<NamedArrays>{mine};
  States states;
  for (size_t rank = 0; rank < all.size(); ++rank)
    for (const auto& [what, a] : all[rank]) states.emplace(entry(int(rank), what), a);
  return states;
}

void restore_rank_state(const std::map<std::string, Array>& saved, const RankState& own,
                        Communicator* comm) {
  const int rank = comm ? comm->rank() : 0, ranks = comm ? comm->size() : 1;
  const std::vector<RandomState::State> random = generators(saved);
  if (!own.draws_alike) restore_generator(random, own.random, rank);
  for (int from = rank; from < int(random.size()); from += ranks)
    for (const std::string& name : own.names)
      if (const auto sum = mean_of_rank(saved, from, name)) own.means.add(name, *sum);
  for (const auto& [path, p] : own.model.named_persistents()) {
    const auto found = saved.find(entry(rank, entry_of_array(path)));
    if (p.over_ranks() == OverRanks::kPerRank && found != saved.end()) p.copy_from(found->second);
  }
}

}  // namespace catena::training
