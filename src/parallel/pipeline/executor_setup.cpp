// Setup of a pipeline.
#include <algorithm>
#include <unordered_map>

#include "catena/array/random.h"
#include "catena/autograd/placement.h"
#include "catena/comm/internals.h"
#include "catena/parallel/tensor/placement.h"
#include "parallel/pipeline/executor.h"
#include "parallel/setup_agreement.h"
#include "parallel/synchronised_layers.h"
#include "parallel/tensor/slices.h"

namespace catena::parallel::pipeline {
namespace {

comm::Agreement agreement_on(const Plan& plan) {
  const Schedule& schedule = plan.schedule;
  comm::Agreement lines;
  lines.add("the schedule",
            message("'", schedule.name, "' of ", schedule.micro_batches, " micro-batches"));
  for (int s = 0; s < plan.schedule.stages(); ++s)
    lines.add(message("the rank of stage ", s), plan.rank_of(s))
        .add(message("the first unit of stage ", s), plan.cut.first[size_t(s)]);
  for (int r = 0; r < plan.schedule.ranks(); ++r) {
    std::string list;
    for (const Action& action : schedule.actions[size_t(r)])
      list += (list.empty() ? "" : " ") + to_string(action);
    lines.add(message("the actions of rank ", r, " are"), list);
  }
  lines.add(".clip_norm", plan.options.clip_norm);
  add_options(lines, plan.options.buckets);
  for (size_t u = 0; u < plan.model.size(); ++u) lines.add(message("unit ", u), plan.model.name(u));
  for (const auto& [path, p] : plan.model.named_parameters()) add_parameter(lines, path, p);
  for (const auto& [path, p] : plan.model.named_persistents()) add_persistent(lines, path, p);
  return lines;
}

void check_equal_plans(const Plan& plan) {
  const comm::Agreement lines = agreement_on(plan);
  for (Communicator* comm : plan.place.communicators())
    if (const auto difference = lines.compare(*comm))
      difference->fail(
          *comm,
          message("Pipeline::setup: the ranks have different pipelines: ", difference->text(),
                  "; make model, cut, schedule and options alike on all ranks"));
}

std::string list_stages(const std::vector<int>& stages) {
  std::string list;
  for (const int s : stages) list += message(list.empty() ? "" : ", ", s);
  return (stages.size() == 1 ? "stage " : "stages ") + list;
}

// The rule of each stage of all ranks, or "" for stages without parameters.
std::vector<std::string> gather_rules(const Plan& plan, const Updates& updates) {
  std::vector<std::string> rules(size_t(plan.schedule.stages()));
  for (int s = 0; s < plan.schedule.stages(); ++s) {
    comm::Agreement rule;
    if (const Optimizer* optimizer = updates.optimizer(s)) add_rule(rule, *optimizer);
    rules[size_t(s)] = rule.text();
    if (plan.is_over_ranks())
      rules[size_t(s)] =
          plan.place.comm->broadcast_bytes(std::move(rules[size_t(s)]), plan.rank_of(s));
  }
  return rules;
}

// One rule trains the model, whatever the cut.
void check_equal_rules(const Plan& plan, const Updates& updates) {
  std::vector<std::string> rules = gather_rules(plan, updates);
  std::string of_all;
  for (const std::string& rule : rules)
    if (of_all.empty()) of_all = rule;
  for (std::string& rule : rules)
    if (rule.empty()) rule = of_all;
  constexpr char kAdvice[] =
      "; the function that makes rules must return the same for all stages, with the same "
      "hyper-parameters, groups and loss scale; pipeline.optimizer(s) changes one stage's later";
  if (const auto difference = comm::Agreement::compare(rules, list_stages)) {
    const std::string text =
        message("Pipeline::setup: the stages have different rules: ", difference->text(), kAdvice);
    if (!plan.is_over_ranks()) throw ValueError(text);
    const int odd = difference->odd_rank();  // a stage
    const auto inside = comm::internals(*plan.place.comm);
    inside.note_failure(text, true, inside.rank_in_job(odd < 0 ? odd : plan.rank_of(odd)));
    throw ValueError(text);
  }
  for (Communicator* others : {plan.place.data(), plan.place.tensor}) {
    if (others == nullptr || others->size() == 1) continue;
    if (const auto difference = comm::Agreement::compare(others->all_gather_bytes(of_all)))
      difference->fail(*others, message("Pipeline::setup: the ranks have different rules: ",
                                        difference->text(), kAdvice));
  }
}

// A layer waits for all ranks of its communicator, but the other ranks of the pipeline have other
// stages.
void check_synchronised_layers(const Plan& plan) {
  if (!plan.is_over_ranks()) return;
  const Communicator& comm = *plan.place.comm;
  for (const CommunicatorPtr& layers : communicators_of_layers(plan.model)) {
    for (int other = 0; other < comm.size(); ++other) {
      bool is_there = false;
      for (int r = 0; r < layers->size(); ++r)
        is_there |=
            comm::internals(*layers).rank_in_job(r) == comm::internals(comm).rank_in_job(other);
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

// `placement` as it is for the rank that has this coordinate of the pipeline.
Placement held_by(const Placement* placement, const Placement::Over& held) {
  Placement result = placement == nullptr ? Placement() : *placement;
  auto& over = result.over;
  over.erase(std::remove_if(over.begin(), over.end(),
                            [](const auto& one) { return one.kind == Placement::Kind::kHeld; }),
             over.end());
  over.push_back(held);
  result.tied_to.clear();
  return result;
}

// Says of everything in the model which rank has it, and of tied weights which copy is the first.
void place_units(const Plan& plan) {
  std::unordered_map<const ParameterState*, std::string> first_of, paths;
  for (const auto& [path, p] : plan.model.named_parameters()) paths.try_emplace(p.state(), path);
  for (const Sequence::Tie& tie : plan.model.untie())
    for (size_t k = 1; k < tie.size(); ++k)
      first_of[tie[k].second.state()] = paths.at(tie[0].second.state());
  Placement::Over held{.mesh_axis = "pipeline", .kind = Placement::Kind::kHeld};
  if (plan.is_over_ranks()) {
    held.index = plan.place.comm->rank(), held.count = plan.place.comm->size();
    if (const std::string named = mesh_axis_of(*plan.place.comm); !named.empty())
      held.mesh_axis = named;
  }
  for (int s = 0; s < plan.schedule.stages(); ++s) {
    if (plan.is_over_ranks()) held.holder = plan.rank_of(s);
    UnitRange units = plan.units(s);
    for (const auto& [path, p] : units.named_parameters()) {
      Placement placement = held_by(p.placement(), held);
      if (const auto first = first_of.find(p.state()); first != first_of.end())
        placement.tied_to = first->second;
      p.place(placement);
    }
    for (const auto& [path, p] : units.named_persistents()) p.place(held_by(p.placement(), held));
  }
  if (plan.place.tensor)
    for (const Parameter& p : plan.options.sliced) place_as_cut(p, *plan.place.tensor);
}

std::vector<std::vector<int>> ranks_of_ties(const Plan& plan) {
  std::vector<std::vector<int>> ranks;
  for (const Sequence::Tie& tie : plan.model.untie()) {
    std::vector<int>& of_tie = ranks.emplace_back();
    for (const auto& [unit, parameter] : tie) {
      int s = plan.schedule.stages() - 1;
      while (plan.cut.first[size_t(s)] > static_cast<int>(unit)) --s;
      of_tie.push_back(plan.rank_of(s));
    }
  }
  return ranks;
}

}  // namespace

void Pipeline::Executor::make_optimizers(const MakeRule& make_rule) {
  for (int s = 0; s < plan.schedule.stages(); ++s) {
    if (!plan.has_stage(s)) continue;
    UnitRange& units = runner.stage(s).units();
    units.to(plan.device_of(s));
    if (units.parameters().empty()) continue;
    std::unique_ptr<Optimizer> optimizer = make_rule();
    CATENA_CHECK(ValueError, optimizer != nullptr,
                 "Pipeline::setup: the function that makes rules returned null");
    updates.add_stage(s, units, std::move(optimizer));
  }
}

void Pipeline::Executor::setup(const MakeRule& make_rule) {
  const OnlyCall only = begin_call("setup");
  const comm::PurposeScope purpose(plan.place.comm, "pipeline setup");
  CATENA_CHECK(ValueError, state == State::kNew,
               "Pipeline::setup: the pipeline is set up already; make another one");
  check_synchronised_layers(plan);
  check_equal_plans(plan);
  uint64_t seed = plan.options.seed.value_or(random::default_state(cpu(0)).state().seed);
  for (Communicator* comm : plan.place.communicators()) seed = comm->broadcast_object(seed);
  numbers.set_seed(seed);
  place_units(plan);
  updates.begin_setup();
  make_optimizers(make_rule);
  check_equal_rules(plan, updates);
  updates.setup_stages(plan.options.buckets, plan.model.untie());
  updates.finish_setup(ranks_of_ties(plan));
  UnitRange last = plan.units(plan.last_stage());
  CATENA_CHECK(ValueError, !updates.has_loss_scale() || !last.parameters().empty(),
               "Pipeline::setup: the last stage has no parameters, so that there is no optimizer "
               "whose scale multiplies the loss; move the cut");
  state = State::kSetUp;
}

}  // namespace catena::parallel::pipeline
