// Host numbers, added in the order of the ranks.
#include "catena/parallel/sum_over_ranks.h"

#include <algorithm>
#include <vector>

namespace catena::parallel {

void sum_over_ranks(std::span<double> numbers, Communicator* comm) {
  if (comm == nullptr) return;
  const auto all = comm->all_gather_object(std::vector<double>(numbers.begin(), numbers.end()));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    CATENA_CHECK(ValueError, all[rank].size() == numbers.size(), "sum_over_ranks: rank ", rank,
                 " gave ", all[rank].size(), " numbers, rank ", comm->rank(), " gave ",
                 numbers.size(), "; all ranks must give equally many");
  }
  std::fill(numbers.begin(), numbers.end(), 0.0);
  for (const std::vector<double>& one : all) {
    for (size_t i = 0; i < one.size(); ++i) numbers[i] += one[i];
  }
}

}  // namespace catena::parallel
