// Findings of the status board about the other ranks of this host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "status/status_board.h"

namespace catena::comm {

class Communicator;

// Where the ranks of a communicator are on the status board of this host.
struct BoardPlace {
  std::shared_ptr<StatusBoard> board;
  std::vector<int> slots;  // of every rank; -1 on other hosts
  // Of every rank, its number in the job and the name of its host; empty when not known.
  std::vector<int> ranks = {};
  std::vector<std::string> hosts = {};
  // Of every rank, where it is in a mesh, "data 0, tensor 1"; empty for those of no mesh.
  std::vector<std::string> coordinates = {};
};

// The number in the whole job of a communicator's rank, as far as this host knows it.
int rank_in_job(const BoardPlace& place, int rank);

// Which ranks of the job those of a communicator are, where the numbers differ, to follow a text
// that uses the communicator's: " (ranks of a part of the job: 0, 1 are ranks 2, 3 of the job)". ""
// where they do not differ. in_job[r] is the number of rank r in the job, -1 if it is not known.
// Ranks of a mesh have their coordinates: "0 (data 1), 1 (data 1) are ranks ...".
std::string describe_part(const std::vector<int>& in_job,
                          const std::vector<std::string>& coordinates = {});
std::string describe_part(const BoardPlace& place);
std::string describe_part(const Communicator& comm);

// The first difference in the last `depth` calls of the ranks on this host; "" when there is none.
// `came` becomes whether they have made all calls of this rank that were compared.
std::string difference_on_board(const BoardPlace& place, int rank, int size, uint64_t id, int depth,
                                bool* came);
// The first difference, or failure of a peer, that the board shows; see
// CommunicatorInternals::find_problem.
std::string problem_on_board(const BoardPlace& place, int rank, int size, uint64_t id,
                             double waited_seconds, int* culprit = nullptr);

}  // namespace catena::comm
