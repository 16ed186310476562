#include "catena/parallel/data_axes.h"

#include <algorithm>

namespace catena::parallel {
namespace {

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Communicator& not_null(const CommunicatorPtr& comm) {
  CATENA_CHECK(ValueError, comm != nullptr,
               "create_multi_node_optimizer: the communicator is null; make it with "
               "create_communicator");
  return *comm;
}

}  // namespace

BatchRanks::BatchRanks(Communicator& comm) : all_(&comm), shard_(&comm) {
  keep_.push_back(comm.weak_from_this().lock());
}

BatchRanks::BatchRanks(const CommunicatorPtr& comm) : BatchRanks(not_null(comm)) {}

BatchRanks::BatchRanks(const DataAxes& axes) : BatchRanks(axes.mesh.over(axes.batch)) {
  std::vector<std::string> others;
  for (const std::string& name : axes.batch)
    if (!is_among(axes.shard, name)) others.push_back(name);
  for (const std::string& name : axes.shard)
    CATENA_CHECK(ValueError, is_among(axes.batch, name), "DataAxes: '", name,
                 "' of .shard is not in .batch; arrays are spread over ranks that have other "
                 "samples and the same parameters");
  if (axes.shard.empty() || axes.mesh.rank_of(others).ranks == 1) return;
  shard_ = &axes.mesh.over(axes.shard);
  across_ = &axes.mesh.over(others);
  for (Communicator* comm : {shard_, across_}) keep_.push_back(comm->weak_from_this().lock());
}

}  // namespace catena::parallel
