// Setup, and what is collective besides steps.
#include <algorithm>

#include "catena/array/random.h"
#include "catena/comm/internals.h"
#include "catena/parallel/persistents.h"
#include "core/text_hash.h"
#include "parallel/pipeline/executor.h"
#include "parallel/rank_difference.h"
#include "parallel/synchronised_layers.h"

namespace catena::parallel::pipeline {
namespace {

// A line for each thing in which ranks must agree.
std::string plan_text(Sequence& model, const Cut& cut, const Schedule& schedule,
                      const PipelineOptions& options) {
  std::string text =
      message("the schedule '", schedule.name, "' of ", schedule.micro_batches, " micro-batches\n");
  for (int s = 0; s < schedule.stages(); ++s)
    text += message("stage ", s, " on rank ", schedule.rank_of_stage[size_t(s)], " from unit ",
                    cut.first[size_t(s)], "\n");
  for (int r = 0; r < schedule.ranks(); ++r) {
    text += message("the actions of rank ", r, ":");
    for (const Action& action : schedule.actions[size_t(r)]) text += " " + to_string(action);
    text += "\n";
  }
  const BucketOptions& buckets = options.buckets;
  text += message("clip_norm ", options.clip_norm, "\nbuckets of ", buckets.first_bytes, ", ",
                  buckets.bucket_bytes, " and ", buckets.last_bytes, " bytes, sharding ",
                  int(buckets.sharding), "\n");
  for (size_t u = 0; u < model.size(); ++u) text += message("unit ", u, " '", model.name(u), "'\n");
  for (const auto& [path, p] : model.named_parameters())
    text += message("parameter ", path, " ", p.shape(), " ", p.dtype(), "\n");
  return text;
}

void check_equal(Communicator& comm, const std::string& text) {
  const std::vector<uint64_t> hashes = comm.all_gather_object(text_hash(text));
  if (std::all_of(hashes.begin(), hashes.end(), [&](uint64_t h) { return h == hashes[0]; })) return;
  const std::vector<RankGroup> groups = first_difference(comm.all_gather_bytes(text));
  const auto shown = [](const RankGroup& group) {
    return group.line.empty() ? std::string("nothing more") : group.line;
  };
  const std::string problem =
      message("Pipeline::setup: the ranks have different pipelines; the first difference is: rank ",
              groups[0].ranks[0], " has ", shown(groups[0]), ", rank ", groups[1].ranks[0], " has ",
              shown(groups[1]), "; make model, cut, schedule and options alike on all ranks");
  fail_for_difference(comm, groups, problem);
}

}  // namespace

void Pipeline::Executor::check_equal_plans() const {
  const std::string text = plan_text(model, cut, schedule, options_);
  if (is_over_ranks()) check_equal(*place_.comm, text);
  if (place_.data && place_.data->size() > 1) check_equal(*place_.data, text);
  if (place_.tensor_size() > 1) check_equal(*place_.tensor, text);
}

// A layer waits for all ranks of its communicator, but the other ranks of the pipeline have other
// stages.
void Pipeline::Executor::check_synchronised_layers() const {
  if (!is_over_ranks()) return;
  const Communicator& comm = *place_.comm;
  for (const CommunicatorPtr& layers : communicators_of_layers(model)) {
    for (int other = 0; other < comm.size(); ++other) {
      bool is_there = false;
      for (int r = 0; r < layers->size(); ++r)
        is_there |= comm::internals(*layers).rank_in_job(r) ==
                    comm::internals(*place_.comm).rank_in_job(other);
      CATENA_CHECK(
          ValueError, other == comm.rank() || !is_there,
          "Pipeline::setup: the model has BatchNormalization layers that are synchronised over ",
          layers->size(), " ranks, among which are ranks ", std::min(other, comm.rank()), " and ",
          std::max(other, comm.rank()),
          " of the pipeline; these have different stages, so that a layer would wait for ever; "
          "synchronise over the replicas alone: "
          "synchronize_normalization(model, grid.data().shared_from_this())");
    }
  }
}

void Pipeline::Executor::setup(const MakeRule& make_rule) {
  const OnlyCall only(*this, "setup");
  const comm::PurposeScope purpose(place_.comm, "pipeline setup");
  CATENA_CHECK(ValueError, !is_set_up_,
               "Pipeline::setup: the pipeline is set up already; make another one");
  check_synchronised_layers();
  check_equal_plans();
  uint64_t seed = options_.seed.value_or(random::default_state(cpu(0)).state().seed);
  if (place_.comm) seed = place_.comm->broadcast_object(seed);
  if (place_.data) seed = place_.data->broadcast_object(seed);
  if (place_.tensor) seed = place_.tensor->broadcast_object(seed);
  set_seed(seed);
  updates_.begin_setup();
  add_optimizers(make_rule);
  updates_.finish_setup(model.untie(), ranks_of_ties());
  UnitRange last(model, cut.first.back(), static_cast<int>(model.size()));
  CATENA_CHECK(ValueError, !updates_.has_loss_scale() || last.parameter_count() > 0,
               "Pipeline::setup: the last stage has no parameters, so that there is no optimizer "
               "whose scale multiplies the loss; move the cut");
  is_set_up_ = true;
}

void Pipeline::Executor::add_optimizers(const MakeRule& make_rule) {
  for (int s = 0; s < schedule.stages(); ++s) {
    if (!has_stage(s)) continue;
    UnitRange& units = stage(s).units();
    units.to(stage(s).device());
    if (units.parameter_count() == 0) continue;
    std::unique_ptr<Optimizer> optimizer = make_rule();
    CATENA_CHECK(ValueError, optimizer != nullptr,
                 "Pipeline::setup: the function that makes rules returned null");
    updates_.add_stage(s, units, std::move(optimizer), options_.buckets);
  }
}

std::vector<std::vector<int>> Pipeline::Executor::ranks_of_ties() const {
  std::vector<std::vector<int>> ranks;
  for (const Sequence::Tie& tie : model.untie()) {
    std::vector<int>& of_tie = ranks.emplace_back();
    for (const auto& [unit, parameter] : tie) {
      int s = schedule.stages() - 1;
      while (cut.first[size_t(s)] > static_cast<int>(unit)) --s;
      of_tie.push_back(rank_of(s));
    }
  }
  return ranks;
}

void Pipeline::Executor::set_batch_weight(int64_t n_local, int64_t n_global) {
  require_setup("set_batch_weight");
  CATENA_CHECK(ValueError, place_.data != nullptr,
               "Pipeline::set_batch_weight: there are no replicas; make the pipeline with a Grid");
  CATENA_CHECK(
      ValueError, n_local >= 0 && n_global > 0 && n_local <= n_global,
      "Pipeline::set_batch_weight: expected 0 <= n_local <= n_global and n_global > 0, got ",
      n_local, " of ", n_global);
  updates_.set_batch_weight(n_local, n_global);
  weight_ = static_cast<double>(n_local) / static_cast<double>(n_global);
}

void Pipeline::Executor::set_steps(int64_t n) {
  CATENA_CHECK(ValueError, n >= 0, "Pipeline::set_steps: expected at least 0 steps, got ", n);
  *next_step_ = n;
}

void Pipeline::Executor::set_seed(uint64_t seed) {
  seed_ = seed;
  numbers_.set_seed(seed, place_.data ? place_.data->rank() : 0);
}

void Pipeline::Executor::prepare_for_capture() {
  require_setup("prepare_for_capture");
  updates_.prepare_for_capture();
}

double Pipeline::Executor::loss() {
  const OnlyCall only(*this, "loss");
  const comm::PurposeScope purpose(place_.comm, "pipeline loss");
  CATENA_CHECK(ValueError, last_step_ != LastStep::kNone, "Pipeline::loss: there was no step yet");
  CATENA_CHECK(ValueError, last_step_ == LastStep::kDone,
               "Pipeline::loss: the last step has thrown, so that it has no loss; make a step that "
               "succeeds first");
  const int last = schedule.stages() - 1;
  double value = loss_.defined() ? loss_.item<double>() : 0;
  if (is_over_ranks()) value = place_.comm->broadcast_object(value, rank_of(last));
  if (!place_.data) return value;
  const double weight = weight_.value_or(1.0 / place_.data->size());
  return place_.data->all_reduce_value(value * weight);
}

void Pipeline::Executor::average_persistents() {
  const OnlyCall only(*this, "average_persistents");
  const comm::PurposeScope purpose(place_.comm, "pipeline average_persistents");
  require_setup("average_persistents");
  for (const auto& one : stages_)
    if (one && place_.data) parallel::average_persistents(one->units(), place_.data);
}

// Stage by stage, array by array, in the same order on the owner and on the root.
void Pipeline::Executor::collect(int root) {
  const OnlyCall only(*this, "collect");
  const comm::PurposeScope purpose(place_.comm, "pipeline collect");
  CATENA_CHECK(ValueError, root >= 0 && root < schedule.ranks(), "Pipeline::collect: rank ", root,
               " of ", schedule.ranks(), " ranks");
  if (!is_over_ranks()) return;
  Communicator& comm = *place_.comm;
  const auto move = [&](int owner, const auto& values) {
    if (comm.rank() == owner) {
      comm.send(values.data(), root);
    } else {
      const Array received = Array::uninitialized(values.shape(), values.dtype(), comm.device());
      comm.recv(received, owner);
      values.copy_from(received);
    }
  };
  for (int s = 0; s < schedule.stages(); ++s) {
    const int owner = rank_of(s);
    if (owner == root || (comm.rank() != owner && comm.rank() != root)) continue;
    UnitRange units(model, cut.first[size_t(s)], cut.end(s, model.size()));
    for (const auto& [path, p] : units.named_parameters()) move(owner, p);
    for (const auto& [path, p] : units.named_persistents()) move(owner, p);
  }
}

}  // namespace catena::parallel::pipeline
