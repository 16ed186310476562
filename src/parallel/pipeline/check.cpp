// check(): the rules, and the end of a schedule proven by executing it.
#include "catena/core/error.h"
#include "catena/parallel/pipeline/schedule.h"
#include "rules.h"
#include "walk.h"

namespace catena::parallel::pipeline {

void check(const Schedule& schedule) {
  const Positions positions(schedule);
  check_computations(schedule, positions, true);
  check_messages(schedule, positions);
  check_updates(schedule, positions);
  Walk walk(schedule, items_of(schedule));
  Observer nobody;
  CATENA_CHECK(ValueError, walk.run(nobody), "schedule '", schedule.name,
               "': ranks wait for each other: ", walk.describe_cycle(),
               "; order the messages alike on both sides, or let with_messages() place them");
}

}  // namespace catena::parallel::pipeline
