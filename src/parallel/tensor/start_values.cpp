#include "start_values.h"

#include <algorithm>

#include "catena/array/indexing.h"
#include "comm/agreement.h"
#include "parallel/array_digest.h"

namespace catena::parallel {
namespace {

// A few numbers, evenly spaced.
uint64_t digest_of_sample(const Array& whole) {
  constexpr int64_t kNumbers = 8;
  const int64_t step = std::max<int64_t>(1, whole.size() / kNumbers);
  return digest_of(whole.reshape({-1})(Slice(none, none, step)).copy());
}

}  // namespace

CommunicatorPtr kept_communicator(const char* who, Communicator& comm) {
  CommunicatorPtr pointer = comm.weak_from_this().lock();
  CATENA_CHECK(ValueError, pointer, who, ": expected a communicator of create_communicator, ",
               "run_threads, split or a Grid, which layers can keep");
  return pointer;
}

void check_pieces(const char* who, const char* extent_name, int64_t extent,
                  const Communicator& comm) {
  CATENA_CHECK(ValueError, extent % comm.size() == 0, who, ": ", extent_name, " ", extent,
               " cannot be divided among ", comm.size(), " ranks; choose a multiple of ",
               comm.size());
}

void check_equal_start(const char* who, const Array& whole, Communicator& comm) {
  if (comm.size() == 1) return;
  constexpr char kForm[] = "the layer", kNumbers[] = "the start of the layer's numbers";
  const auto difference = comm::Agreement()
                              .add(kForm, message(whole.shape(), " ", whole.dtype()))
                              .add_digest(kNumbers, digest_of_sample(whole))
                              .compare(comm);
  if (!difference) return;
  const char* advice = difference->name() == kForm
                           ? "; make the same layers on all ranks"
                           : ", expected slices of one array; seed all ranks of the communicator "
                             "alike before the model is made: "
                             "random::default_state(comm.device()).seed(number)";
  fail<ValueError>(who, ": ", difference->text(), advice);
}

}  // namespace catena::parallel
