// Simulation of a schedule: seconds, idle shares and memory, from the costs of its stages alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catena/parallel/pipeline/costs.h"
#include "catena/parallel/pipeline/schedule.h"

namespace catena::parallel::pipeline {

// What is simulated.
struct SimulateOptions {
  // Training steps, one after the other. Without synchronisation a rank begins the next step as
  // soon as it has done its own part of this one, which is how zero-bubble schedules come to zero.
  int steps = 1;
  // All ranks wait before their first kUpdate until all gradients of the step are complete, as
  // clipping by the global norm does when it is done before the update; at the end of the step
  // where there is no kUpdate.
  bool synchronise_updates = false;
};

// An action, when it ran. Messages are there twice, once at each end, from the moment that both are
// ready.
struct Span {
  int rank = 0;
  int step = 0;
  Action action{};
  double begin = 0, end = 0;
  // Of a computation: when its rank was free for it, so that until `begin` it waited for what other
  // ranks send. Of a message: `begin`.
  double waits_from = 0;
};

// The result, in the units of the costs. Pipeline::measure has one of a step that ran.
struct Simulation {
  std::string name;
  int micro_batches = 0;
  std::vector<int> rank_of_stage;
  double seconds = 0;              // from the first action to the end of the last
  std::vector<double> busy;        // seconds of computations of each rank
  std::vector<double> peak_bytes;  // of each rank: activations, and messages that wait
  int64_t messages = 0;            // between ranks, over all steps
  double message_bytes = 0;
  std::vector<Span> timeline;  // of all ranks, by the time of their begin

  // How many there are.
  int ranks() const { return static_cast<int>(busy.size()); }
  // Idle share of a rank's time, and of that of all ranks.
  double bubble(int rank) const;
  double bubble() const;
  // The time that the rank with the most work computes: no schedule with these stages on these
  // ranks takes less.
  double ideal_seconds() const;
  // Of all ranks, in bytes.
  double largest_peak() const;
};

// Where a rank's time goes, in the units of the simulation; together they are its `seconds`.
struct RankTimes {
  double computing = 0;
  // The rank waits, and what it waits for is on its way: the time of messages that nothing hides.
  double messages = 0;
  // It waits for what another rank has not made yet, or has no more to do.
  double ranks = 0;
  // Nothing waits, and nothing runs: in a step that was measured, the host has not issued the next
  // computation yet, or a device computes for another rank that shares it.
  double host = 0;
};
// Of each rank, and as a table with a line for each, shares of the time included.
std::vector<RankTimes> rank_times(const Simulation& simulation);
std::string describe_times(const Simulation& simulation);

// Executes the schedule with those costs. Computations of a rank follow each other, with messages
// as costs.transfers says; messages of a group are on the wire at the same time, those from one
// rank to another one after the other. kReduce runs beside later computations where messages
// overlap. ValueError as check() of the schedule and of the costs, and if updates that synchronise
// stand before gradients that other ranks wait for.
Simulation simulate(const Schedule& schedule, const Costs& costs = {},
                    const SimulateOptions& options = {});

}  // namespace catena::parallel::pipeline
