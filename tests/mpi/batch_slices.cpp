// Slices of a batch over processes, in the job of suite_main.cpp, against one rank alone.
#include <gtest/gtest.h>

#include "error_text.h"
#include "parallel/sliced_training.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // NOLINT: the networks of these tests

template <class Model>
Bits trained_alone(const SlicedRun& run, Device device) {
  Bits bits;
  comm::ThreadsOptions options;
  options.devices = {device};
  comm::run_threads(
      1,
      [&](Communicator& comm) {
        Model model;
        train_slices(comm, model, run);
        bits = bits_of(model);
        bits.merge(bits_of_persistents(model));
      },
      options);
  return bits;
}

template <class Model>
void expect_bits_of_one_rank(Communicator& comm, const SlicedRun& run) {
  Model model;
  train_slices(comm, model, run);
  Bits bits = bits_of(model);
  bits.merge(bits_of_persistents(model));
  EXPECT_EQ(bits, trained_alone<Model>(run, comm.device()));
}

TEST(ProcessBatchSlices, GiveTheBitsOfOneRank) {
  const DeterministicScope scope;
  const CommunicatorPtr comm = create_communicator();
  if (8 % comm->size() != 0) {
    expect_contains(error_of<ValueError>([&] {
                      create_multi_node_optimizer(optimizers::SGD(0.1), *comm, {.slices = 8});
                    }),
                    {"cannot be divided over"});
    return;
  }
  expect_bits_of_one_rank<WideNet>(*comm, {.batch = 37});
  expect_bits_of_one_rank<ConvolutionNet>(*comm, {.batch = 37});
  expect_bits_of_one_rank<ConvolutionNet>(*comm,
                                          {.sharding = Sharding::kStates, .bucket_bytes = 1 << 12});
}

}  // namespace
}  // namespace catena::parallel
