#include "core/read_budget.h"

#include "catena/core/error.h"

namespace catena {
namespace {

constexpr uint64_t kEntryBytes = 256;  // about what readers keep of a tensor beside its name
constexpr const char* kAdvice =
    ", which no file of arrays or models needs: it is damaged or made to do harm";

}  // namespace

void ReadBudget::charge_bytes(uint64_t bytes) {
  CATENA_CHECK(IoError, bytes <= kMostBytes - bytes_, source_,
               ": what describes its content takes more than ", kMostBytes >> 20, " MiB of memory",
               kAdvice);
  bytes_ += bytes;
}

void ReadBudget::charge_steps(uint64_t steps) {
  CATENA_CHECK(IoError, steps <= kMostSteps - steps_, source_,
               ": what describes its content takes more than ", kMostSteps, " steps to read",
               kAdvice);
  steps_ += steps;
}

void ReadBudget::charge_entry(std::string_view name) {
  check_name(name);
  CATENA_CHECK(IoError, entries_ < kMostEntries, source_, ": it has more than ", kMostEntries,
               " entries", kAdvice);
  ++entries_;
  charge_bytes(kEntryBytes + 2 * name.size());
}

void ReadBudget::check_name(std::string_view name) const {
  CATENA_CHECK(IoError, name.size() <= kLongestName, source_, ": a name of ", name.size(),
               " bytes, '", name.substr(0, 60), "...', longer than the ", kLongestName,
               " that are read");
}

void ReadBudget::check_depth(int depth) const {
  CATENA_CHECK(IoError, depth <= kDeepest, source_, ": a value is more than ", kDeepest,
               " containers deep, or inside itself");
}

}  // namespace catena
