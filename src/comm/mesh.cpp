#include "catena/comm/mesh.h"

#include <algorithm>
#include <limits>

#include "agreement.h"
#include "catena/comm/internals.h"
#include "catena/core/entry_scope.h"
#include "communicator_state.h"
#include "threads/threads_transport.h"

namespace catena::comm {
namespace {

// "{data 2, pipeline 3}"
std::string text_of(const std::vector<Mesh::Axis>& axes) {
  std::string text;
  for (const Mesh::Axis& axis : axes)
    text += message(text.empty() ? "" : ", ", axis.name, " ", axis.size);
  return "{" + text + "}";
}

void check_equal(Communicator& comm, const std::vector<Mesh::Axis>& axes) {
  const auto difference = Agreement().add("the shape", text_of(axes)).compare(comm);
  if (!difference) return;
  const auto& groups = difference->groups();
  fail<ValueError>("rank ", groups[0].ranks[0], " gave ", groups[0].value, ", rank ",
                   groups[1].ranks[0], " ", groups[1].value, "; give all ranks the same shape");
}

void check_names(const std::vector<Mesh::Axis>& axes) {
  constexpr size_t kMost = 31;  // bits of a tag
  CATENA_CHECK(ValueError, !axes.empty() && axes.size() <= kMost, "expected 1 to ", kMost,
               " axes, got ", axes.size());
  for (const Mesh::Axis& axis : axes) {
    const auto same = [&](const Mesh::Axis& other) { return other.name == axis.name; };
    CATENA_CHECK(ValueError,
                 !axis.name.empty() && std::count_if(axes.begin(), axes.end(), same) == 1,
                 "expected a different name for each axis, got ", text_of(axes));
  }
}

// The product of the sizes that are known. It may be large: false if only a part of it was taken.
bool multiply_sizes(const std::vector<Mesh::Axis>& axes, int64_t& product) {
  product = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (product > std::numeric_limits<int>::max()) return false;
    if (axis->size != -1) product *= axis->size;
  }
  return true;
}

// Checks the sizes, and fills in the one that is -1.
void complete_sizes(std::vector<Mesh::Axis>& axes, int ranks) {
  const auto is_open = [](const Mesh::Axis& axis) { return axis.size == -1; };
  const auto open = std::find_if(axes.begin(), axes.end(), is_open);
  for (const Mesh::Axis& axis : axes)
    CATENA_CHECK(ValueError, axis.size >= 1 || is_open(axis), "expected at least 1 of each, got ",
                 text_of(axes), "; one may be -1");
  CATENA_CHECK(ValueError, std::count_if(axes.begin(), axes.end(), is_open) <= 1,
               "expected one size of -1 at most, got ", text_of(axes));
  int64_t product = 1;
  const bool is_whole = multiply_sizes(axes, product);
  if (open == axes.end()) {
    CATENA_CHECK(ValueError, product == ranks, text_of(axes), " needs ",
                 is_whole ? "" : "at least ", product, " ranks, the communicator has ", ranks);
    return;
  }
  CATENA_CHECK(ValueError, ranks % product == 0, text_of(axes), " needs a multiple of ", product,
               " ranks, the communicator has ", ranks);
  open->size = int(ranks / product);
}

}  // namespace

std::string MeshAxes::text() const {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "+") + name;
  return text.empty() ? "ranks" : text;
}

Mesh::Mesh(Communicator& comm, std::vector<Axis> axes)
    : comm_(&comm), keep_(comm.weak_from_this().lock()), axes_(std::move(axes)) {
  const EntryScope call("Mesh");
  check_equal(comm, axes_);
  check_names(axes_);
  complete_sizes(axes_, comm.size());
  auto& state = Communicator::State::of(comm);
  number_ = ++state.meshes;
  state.coordinates.clear();
  for (int r = 0; r < comm.size(); ++r) state.coordinates.push_back(coordinates_of(r));
}

uint32_t Mesh::mask_of(const std::vector<std::string>& names) const {
  uint32_t mask = 0;
  for (const std::string& name : names) {
    const auto axis =
        std::find_if(axes_.begin(), axes_.end(), [&](const Axis& one) { return one.name == name; });
    CATENA_CHECK(ValueError, axis != axes_.end(), "there is no axis '", name, "', expected one of ",
                 text_of(axes_));
    const uint32_t bit = 1u << (axis - axes_.begin());
    CATENA_CHECK(ValueError, (mask & bit) == 0, "the axis '", name, "' is given twice");
    mask |= bit;
  }
  return mask;
}

// Where a rank of the mesh is along some axes, as one number.
RankOf Mesh::place_in(uint32_t mask, int rank) const {
  RankOf place;
  for (size_t i = axes_.size(); i-- > 0; rank /= axes_[i].size) {
    if ((mask >> i & 1) == 0) continue;
    place.rank += rank % axes_[i].size * place.ranks;
    place.ranks *= axes_[i].size;
  }
  return place;
}

RankOf Mesh::rank_of(const std::vector<std::string>& names) const {
  const EntryScope call("Mesh");
  return place_in(mask_of(names), comm_->rank());
}

std::vector<std::string> Mesh::names_of(uint32_t mask) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < axes_.size(); ++i)
    if ((mask >> i & 1) != 0) names.push_back(axes_[i].name);
  return names;
}

std::string Mesh::coordinates_of(int rank) const {
  std::string text;
  for (size_t i = 0; i < axes_.size(); ++i)
    text += message(i == 0 ? "" : ", ", axes_[i].name, " ", place_in(1u << i, rank).rank);
  return text;
}

Communicator& Mesh::over(const std::vector<std::string>& names) {
  const EntryScope call("Mesh");
  const uint32_t mask = mask_of(names);
  if (const auto known = parts_.find(mask); known != parts_.end()) return *known->second;
  MeshAxes axes{number_, names_of(mask)};
  const RankOf place = place_in(mask, comm_->rank());
  CommunicatorPtr part;
  if (place.ranks == 1) {
    part = make_alone(*comm_);
  } else {
    const std::string purpose = "the first use of mesh[" + axes.text() + "]";
    const PurposeScope scope(comm_, purpose.c_str());
    part = comm_->split(place_in(~mask, comm_->rank()).rank, place.rank,
                        {TagKind::kMesh, uint16_t(number_), int32_t(mask)});
  }
  Communicator::State::of(*part).axes = std::move(axes);
  return *(parts_[mask] = std::move(part));
}

}  // namespace catena::comm
