#include "equal_options.h"

#include "catena/comm/internals.h"
#include "rank_difference.h"

namespace catena::parallel {
namespace {

std::string list_of_units(const std::vector<std::string>& units) {
  std::string list;
  for (const std::string& unit : units) list += (list.empty() ? "" : ", ") + unit;
  return "{" + list + "}";
}

// A line for each option; first those from which others follow.
std::string text_of_options(const BucketOptions& options) {
  const std::string dtype = options.reduce_dtype ? message(*options.reduce_dtype) : "none";
  return message(".sharding\t", name(options.sharding), "\n.slices\t", options.slices,
                 "\n.reduce_dtype\t", dtype, "\n.units\t", list_of_units(options.units),
                 "\n.gather_ahead\t", options.gather_ahead ? "on" : "off", "\n.first_bytes\t",
                 options.first_bytes, "\n.bucket_bytes\t", options.bucket_bytes, "\n.last_bytes\t",
                 options.last_bytes);
}

}  // namespace

void check_equal_options(Communicator& comm, const BucketOptions& options, const char* who) {
  if (comm.size() == 1) return;
  const comm::PurposeScope purpose(&comm, who);
  const auto groups = first_difference(comm.all_gather_bytes(text_of_options(options)));
  if (groups.empty()) return;
  fail_for_difference(
      comm, groups,
      message(who, ": the ranks give different BucketOptions: ", describe_values(groups),
              "; give the multi-node optimizers of all ranks the same options"));
}

}  // namespace catena::parallel
