// See ways.h.
#include "ways.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "catena/core/log.h"
#include "core/environment.h"
#include "exchange_kernel.h"

namespace catena::comm::nccl {

namespace {

constexpr int64_t kKibibyte = 1 << 10, kMebibyte = 1 << 20;
constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostInTwoSteps = 16 * kMebibyte;
constexpr int kMostTwoShotBlocks = 128;

// The index of what the variable says among `words`, 0 without one.
int word_from_environment(const char* name, std::initializer_list<std::string_view> words) {
  const char* set = std::getenv(name);
  if (!set || !*set) return 0;
  const auto found = std::find(words.begin(), words.end(), std::string_view(set));
  if (found != words.end()) return int(found - words.begin());
  std::string known;
  for (const std::string_view word : words)
    known += (known.empty() ? "" : ", ") + std::string(word);
  logging::warning(name, "=", set, " is none of ", known, "; ", *words.begin(), " holds");
  return 0;
}

}  // namespace

// Beyond 16 MiB two steps are faster than NCCL only while nothing else runs: their blocks take
// multiprocessors from the products of a backward pass.
Ways measured_ways(int ranks) {
  const auto small = [&](int most_ranks) {
    return ranks <= most_ranks ? 256 * kKibibyte : 64 * kKibibyte;
  };
  return {.exchange = small(4),
          .gather = small(2),
          .two_shot = kMostInTwoSteps,
          .blocks = ranks <= 4 ? 64 : 32,
          .copied_gather = kMostInTwoSteps + 1,
          .copied_sum = kMostInTwoSteps + 1};
}

SharedMemory measured_memory(int) { return SharedMemory::kPeers; }

namespace {

Choice choice_of_environment(int ranks) {
  Choice choice{measured_ways(ranks), measured_memory(ranks)};
  Ways& ways = choice.ways;
  switch (word_from_environment("CATENA_ALL_REDUCE", {"auto", "exchange", "two-shot", "nccl"})) {
    case 1:
      ways.exchange = ways.gather = int64_t(kMostBytes);
      ways.two_shot = ways.copied_gather = ways.copied_sum = 0;
      break;
    case 2:
      ways.exchange = ways.gather = ways.copied_gather = ways.copied_sum = 0;
      ways.two_shot = kAnySize;
      break;
    case 3: ways = {}; break;
    default: break;
  }
  if (const auto blocks = count_from_environment("CATENA_TWO_SHOT_BLOCKS"))
    ways.blocks = std::min(*blocks, kMostTwoShotBlocks);
  if (const auto bytes = count_from_environment("CATENA_COPIED_GATHER"))
    ways.copied_gather = *bytes;
  if (const auto bytes = count_from_environment("CATENA_COPIED_SUM")) ways.copied_sum = *bytes;
  const int memory =
      word_from_environment("CATENA_SHARED_MEMORY", {"auto", "pool", "peers", "window"});
  if (memory > 0) choice.memory = SharedMemory(memory - 1);
  return choice;
}

}  // namespace

Choice choose(Communicator& control) {
  return control.broadcast_object(choice_of_environment(control.size()), 0);
}

}  // namespace catena::comm::nccl
