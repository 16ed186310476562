#include "catena/autograd/kept_results.h"

#include <algorithm>
#include <cstring>

#include "autograd/contribute.h"
#include "catena/autograd/function_call.h"

namespace catena {
namespace {

constexpr const char* kRecompute = "Recompute";

KeptResultsScope*& innermost() {
  thread_local KeptResultsScope* scope = nullptr;
  return scope;
}

}  // namespace

// KeptResults -------------------------------------------------------------------------------------

bool KeptResults::Call::operator==(const Call& other) const {
  return std::strcmp(name, other.name) == 0 && operands == other.operands;
}

KeptResults::Call KeptResults::call_of(const FunctionCall& call) {
  Call made{call.name(), {}};
  for (const Variable* v : call.inputs()) made.operands.emplace_back(v->shape(), v->dtype());
  return made;
}

// "Linear of (4, 3) float32, (2, 3) float32"
std::string KeptResults::text(const Call& call) {
  std::string text = call.name;
  const char* before = " of ";
  for (const auto& [shape, dtype] : call.operands) {
    text += message(before, shape, " ", dtype);
    before = ", ";
  }
  return text;
}

void KeptResults::reduce_to(Keep keep) {
  keep_ = keep;
  std::erase_if(entries_, [&](const Entry& entry) { return entry.from > keep; });
}

Arrays KeptResults::arrays(Keep keep) const {
  Arrays all;
  for (const Entry& entry : entries_)
    if (entry.from <= keep) all.insert(all.end(), entry.arrays.begin(), entry.arrays.end());
  return all;
}

Arrays KeptResults::give_away() {
  Arrays all;
  for (Entry& entry : entries_)
    for (Array& a : entry.arrays) all.push_back(std::exchange(a, Array()));
  return all;
}

void KeptResults::take_back(std::span<const Array> arrays) {
  size_t next = 0;
  for (Entry& entry : entries_)
    for (size_t i = 0; i < entry.arrays.size(); ++i) {
      entry.arrays[i] = arrays[next++];
      entry.versions[i] = write_count(entry.arrays[i]);
    }
}

// KeptResultsScope --------------------------------------------------------------------------------

KeptResultsScope::KeptResultsScope(KeptResults& results, Mode mode)
    : results_(results), mode_(mode), outer_(std::exchange(innermost(), this)) {}
KeptResultsScope::~KeptResultsScope() { innermost() = outer_; }

bool KeptResultsScope::wants(Keep from) {
  for (const KeptResultsScope* scope = innermost(); scope != nullptr; scope = scope->outer_)
    if (scope->wants_own(from)) return true;
  return false;
}

bool KeptResultsScope::take(const FunctionCall& call, Keep from, std::span<Array> arrays) {
  for (KeptResultsScope* scope = innermost(); scope != nullptr; scope = scope->outer_) {
    if (!scope->wants_own(from) || scope->mode_ == Mode::kNote) continue;
    scope->hand_out(call, arrays);
    return true;
  }
  return false;
}

void KeptResultsScope::note(const FunctionCall& call, Keep from, std::span<const Array> arrays) {
  for (KeptResultsScope* scope = innermost(); scope != nullptr; scope = scope->outer_) {
    if (!scope->wants_own(from)) continue;
    if (scope->mode_ == Mode::kRepeat) return;
    KeptResults::Entry entry{from, KeptResults::call_of(call), {arrays.begin(), arrays.end()}, {}};
    for (const Array& a : arrays) entry.versions.push_back(write_count(a));
    scope->results_.entries_.push_back(std::move(entry));
  }
}

void KeptResultsScope::hand_out(const FunctionCall& call, std::span<Array> arrays) {
  const auto& entries = results_.entries_;
  const KeptResults::Call now = KeptResults::call_of(call);
  CATENA_CHECK(ValueError, next_ < entries.size(), kRecompute, ": f called ",
               KeptResults::text(now), " when it ran again, after all ", entries.size(),
               " calls whose results the first run kept; f must do the same both times");
  const KeptResults::Entry& entry = entries[next_++];
  CATENA_CHECK(ValueError, entry.call == now && entry.arrays.size() == arrays.size(), kRecompute,
               ": f called ", KeptResults::text(now),
               " when it ran again, where the first run had ", KeptResults::text(entry.call),
               ", number ", next_, " of the ", entries.size(),
               " calls whose results it kept; f must do the same both times");
  for (size_t i = 0; i < arrays.size(); ++i) {
    CATENA_CHECK(GradientError, write_count(entry.arrays[i]) == entry.versions[i], kRecompute,
                 ": the result of ", KeptResults::text(entry.call),
                 " that the first run kept was written to; backward runs once where a function "
                 "writes in place, and nobody else may write to results that are kept");
    arrays[i] = entry.arrays[i];
  }
}

void KeptResultsScope::require_all_taken() const {
  const auto& entries = results_.entries_;
  if (next_ == entries.size()) return;
  fail<ValueError>(kRecompute, ": f ended after ", next_, " of the ", entries.size(),
                   " calls whose results the first run kept, when it ran again; the next is ",
                   KeptResults::text(entries[next_].call), "; f must do the same both times");
}

}  // namespace catena
