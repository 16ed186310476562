#include "catena/parallel/persistents.h"

namespace catena::parallel {
namespace {

void check_device(const std::string& path, const Persistent& p, const Communicator& comm) {
  CATENA_CHECK(DeviceError, p.device() == comm.device(), "persistent array '", path, "' is on ",
               p.device(), ", this rank's communicator on ", comm.device(),
               "; move the model with model.to(comm.device())");
}

}  // namespace

void average_persistents(const NamedPersistents& persistents, Communicator* comm) {
  if (comm == nullptr || comm->size() == 1) return;
  Arrays arrays;
  for (const auto& [path, p] : persistents) {
    if (p.over_ranks() != OverRanks::kMean) continue;
    check_device(path, p, *comm);
    if (p.size() > 0) arrays.push_back(p.data());
  }
  if (arrays.empty()) return;
  comm->group([&] {  // most are small: issued together
    for (const Array& a : arrays) comm->all_reduce(a, comm::Reduction::kMean, a);
  });
}

void broadcast_persistents(const NamedPersistents& persistents, Communicator& comm, int root) {
  for (const auto& [path, p] : persistents) check_device(path, p, comm);
  for (const auto& [path, p] : persistents) {
    if (p.size() > 0) comm.broadcast(p.data(), root);
  }
}

}  // namespace catena::parallel
