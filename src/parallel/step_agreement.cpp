// Digests of steps, added up over the ranks beside their first bucket, and the report when the sums
// show that ranks differ.
#include "step_agreement.h"

#include <algorithm>
#include <bit>

#include "catena/array/creation.h"
#include "catena/array/transfer.h"
#include "catena/comm/internals.h"
#include "catena/comm/transport.h"
#include "comm/agreement.h"

namespace catena::parallel {
namespace {

constexpr size_t kHistory = 128;  // steps
// Steps from one exchange to the next, and the first steps, after which a CPU begins to count them.
constexpr int64_t kOnGpu = 8, kOnCpu = 4, kFirstOnCpu = 8;

uint64_t mix_fact(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace

StepAgreement::StepAgreement(Communicator& comm, int owner)
    : comm_(comm), owner_(static_cast<uint16_t>(owner)) {
  sums_ = zeros({2}, {Dtype::kUInt64, comm.device()});
  read_ = comm.device().is_cuda() ? empty_pinned({2}, Dtype::kUInt64) : sums_;
}

void StepAgreement::set_shares(int64_t n_local, int64_t n_global) {
  facts_.weighted = 1;
  facts_.n_local = n_local;
  facts_.n_global = n_global;
}

// The samples of each step count with another factor, equal on all ranks, so that too many in one
// step do not make up for too few in another.
void StepAgreement::fold() {
  if (history_.size() == kHistory) history_.pop_front();
  history_.push_back(facts_);
  const BatchOrder& order = facts_.order;
  const auto rate = std::bit_cast<int64_t>(facts_.rate);
  const auto first = std::bit_cast<int64_t>(facts_.first);
  for (const int64_t fact :
       {facts_.updates, rate, first, facts_.weighted, facts_.n_global, order.samples, order.batch,
        int64_t(order.seed), order.epoch, order.position})
    own_.digest = mix_fact(own_.digest, static_cast<uint64_t>(fact));
  const uint64_t factor = mix_fact(1, static_cast<uint64_t>(++steps_)) | 1;
  own_.shares += factor * static_cast<uint64_t>(facts_.n_local);
  own_.whole += factor * static_cast<uint64_t>(facts_.n_global);
}

bool StepAgreement::begin_step(int64_t updates) {
  if (comm_.size() == 1) return false;
  facts_.updates = updates;
  fold();
  if (comm_.device().is_cuda()) return steps_ % kOnGpu == 1;
  return steps_ <= kFirstOnCpu || steps_ % kOnCpu == 0;
}

void StepAgreement::exchange(const std::function<void(const Array& sums)>& reduce) {
  check();  // the sums before these, which arrived steps ago
  sent_ = own_;
  const std::array<uint64_t, 2> mine{own_.digest, own_.shares};
  const Stream stream = current_stream(sums_.device());
  if (sums_.device().is_cuda())
    set_async(sums_, std::span<const uint64_t>(mine), stream);
  else
    std::copy(mine.begin(), mine.end(), static_cast<uint64_t*>(sums_.raw_data()));
  reduce(sums_);
  exchanged_at_ = steps_;
  if (sums_.device().is_cuda())
    arrived_ = copy_to_host_async(sums_, read_.raw_data(), stream);
  else
    check();
}

void StepAgreement::replay_step(int64_t updates) {
  if (!begin_step(updates)) return;
  exchange([this](const Array& sums) {
    comm_.all_reduce_async(sums, comm::Reduction::kSum, current_stream(sums.device()), tag());
  });
}

// The digests are equal if the sum is a multiple of each. Ranks whose digests differ all see that
// it is not: differences of hashes do not cancel.
void StepAgreement::check() {
  if (exchanged_at_ < 0) return;
  if (arrived_) arrived_.synchronize();
  exchanged_at_ = -1;
  const auto* sums = static_cast<const uint64_t*>(read_.raw_data());
  const auto ranks = static_cast<uint64_t>(comm_.size());
  if (sums[0] != ranks * sent_.digest || sums[1] != sent_.whole) fail_with_report();
}

// The report --------------------------------------------------------------------------------------

void StepAgreement::fail_with_report() {
  const comm::PurposeScope purpose(&comm_, "the report about ranks that differ");
  const auto ranks = comm_.all_gather_object(std::vector<Facts>(history_.begin(), history_.end()));
  const Difference found = first_difference_of(ranks);
  const std::string problem = "multi-node optimizer: " + found.text;
  comm::internals(comm_).note_failure(problem, true,
                                      comm::internals(comm_).rank_in_job(found.odd_rank));
  throw ValueError(problem);
}

namespace {

constexpr char kAlike[] =
    "; make the data set and its iterator alike on all ranks, with equal seeds, and give each rank "
    "its part by datasets::RankOf{comm.rank(), comm.size()}";
constexpr char kUpdates[] = "the number of updates made before it";
constexpr char kRate[] = "the learning rate";
constexpr char kFirst[] = "the number of samples of the first pass";

const char* advice_on(const std::string& name) {
  return name == kUpdates ? "; every rank must call update() in every step"
         : name == kRate  ? "; set the same rate on every rank"
         : name == kFirst ? "; call set_batch_weight in every pass on all ranks, with 0 on those "
                            "that have no samples in it"
                          : kAlike;
}

}  // namespace

// The first step in which they differ, as far back as it is known.
StepAgreement::Difference StepAgreement::first_difference_of(
    const std::vector<std::vector<Facts>>& ranks) const {
  const int64_t first = steps_ - static_cast<int64_t>(history_.size()) + 1;
  for (size_t k = 0; k < history_.size(); ++k) {
    const std::string step = message("in step ", first + static_cast<int64_t>(k), " since setup, ");
    std::vector<std::string> texts;
    int64_t sum = 0;
    std::string shares;
    for (size_t r = 0; r < ranks.size(); ++r) {
      const Facts& f = ranks[r].at(k);
      texts.push_back(comm::Agreement()
                          .add(kUpdates, f.updates)
                          .add(kRate, f.rate)
                          .add("the size of the data set", f.order.samples)
                          .add("the batch size", f.order.batch)
                          .add("the seed of the order", f.order.seed)
                          .add("the epoch", f.order.epoch)
                          .add("the position in the epoch", f.order.position)
                          .add("the number of samples over all ranks", f.n_global)
                          .add(kFirst, f.first)
                          .text());
      sum += f.n_local;
      shares += message(r == 0 ? "" : ", ", f.n_local, " on rank ", r);
    }
    if (const auto difference = comm::Agreement::compare(texts))
      return {step + difference->text() + advice_on(difference->name()), difference->odd_rank()};
    if (sum != ranks[0][k].n_global)
      return {message(step, "the samples of the ranks add up to ", sum, " (", shares,
                      "), but the batch has ", ranks[0][k].n_global,
                      "; give the iterator datasets::RankOf{comm.rank(), comm.size()}, or "
                      "set_batch_weight counts that add up")};
  }
  return {
      "the ranks differ in the order of their data, or in the number of their updates, in a step "
      "that is too long ago to be named"};
}

}  // namespace catena::parallel
