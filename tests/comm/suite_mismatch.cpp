// Ranks that disagree. Each case makes three equal calls first, so that the named call is #4.
#include <gtest/gtest.h>

#include <chrono>

#include "catena/comm/mesh.h"
#include "comm/suite.h"

namespace catena::comm_suite {

using comm::Reduction;

namespace {

Array vec(Communicator& comm, int64_t n = 4, Dtype dtype = Dtype::kFloat32) {
  return make(comm, {n}, dtype, comm.rank());
}

void operation(Communicator& c, bool odd) { odd ? c.broadcast(vec(c)) : c.all_reduce(vec(c)); }
void count(Communicator& c, bool odd) { c.all_reduce(vec(c, odd ? 5 : 4)); }
void dtype(Communicator& c, bool odd) {
  c.all_reduce(vec(c, 4, odd ? Dtype::kFloat64 : Dtype::kFloat32));
}
void reduction(Communicator& c, bool odd) {
  c.all_reduce(vec(c), odd ? Reduction::kMax : Reduction::kSum);
}
void root(Communicator& c, bool odd) { c.broadcast(vec(c), odd ? 1 : 0); }
void order(Communicator& c, bool odd) {
  if (odd) c.all_gather(vec(c));
  c.all_reduce(vec(c));
  if (!odd) c.all_gather(vec(c));
}
void extra_call(Communicator& c, bool odd) {
  if (odd) c.all_reduce(vec(c, 7));
  c.barrier();
}
void object_kind(Communicator& c, bool odd) {
  if (odd)
    c.broadcast_object(3);
  else
    c.all_gather_object(3);
}
void in_a_group(Communicator& c, bool odd) {
  c.group([&] {
    c.all_reduce(vec(c));
    c.all_reduce(vec(c, odd ? 6 : 4));
  });
}
void group_against_a_call(Communicator& c, bool odd) {
  if (odd) {
    c.all_reduce(vec(c, 1));
    return;
  }
  c.group([&] {
    c.all_reduce(vec(c));
    c.all_reduce(vec(c, 2));
  });
}
void bucket_of_gradients(Communicator& c, bool odd) {
  const Array x = vec(c);
  c.all_reduce_async(x, Reduction::kMean, c.side_stream(),
                     {comm::TagKind::kBucket, uint16_t(odd ? 2 : 1), 3});
}
void message_size(Communicator& c, bool odd) {
  if (odd)
    c.recv(vec(c, 3), c.size() - 2);
  else if (c.rank() == c.size() - 2)
    c.send(vec(c, 4), c.size() - 1);
  c.barrier();
}

// One rank alone uses an axis for the first time.
void axis_of_a_mesh(Communicator& comm, bool odd) {
  Mesh mesh(comm, {{"data", 1}, {"tensor", -1}});
  if (odd)
    mesh["tensor"];
  else
    comm.barrier();
}

void axes_of_a_mesh(Communicator& comm, bool odd) {
  Mesh mesh(comm, {{"data", -1}, {"tensor", 1}});
  odd ? mesh["data"] : mesh.over({"data", "tensor"});
}

}  // namespace

std::vector<MismatchCase> mismatch_cases() {
  return {
      {"operation",
       operation,
       {"call #4", "all_reduce #4 sum float32[4]", "broadcast #4 float32[4] root 0"}},
      {"count", count, {"call #4", "float32[4]", "float32[5]"}},
      {"dtype", dtype, {"call #4", "float32[4]", "float64[4]"}},
      {"reduction", reduction, {"call #4", "all_reduce #4 sum", "all_reduce #4 max"}},
      {"root", root, {"call #4", "root 0", "root 1"}},
      {"order", order, {"call #4", "all_gather #4", "all_reduce #4"}},
      {"extra_call", extra_call, {"call #4", "all_reduce #4 sum float32[7]", "barrier #4"}},
      {"object_kind", object_kind, {"call #4", "broadcast_object", "all_gather_object"}},
      {"in_a_group", in_a_group, {"call #5", "float32[4]", "float32[6]"}},
      {"group_against_a_call", group_against_a_call, {"call #4", "float32[1]", "float32[4]"}},
      {"bucket_of_gradients",
       bucket_of_gradients,
       {"call #4", "float32[4] (bucket 3 of optimizer 1)", "(bucket 3 of optimizer 2)"}},
      {"axis_of_a_mesh",
       axis_of_a_mesh,
       {"call #6", "barrier #6",
        "split #6 (over axis 1 of mesh 1), in the first use of mesh[tensor]"}},
      {"axes_of_a_mesh", axes_of_a_mesh, {"over axis 0 of mesh 1", "over axes 0, 1 of mesh 1"}},
      {"message_size",
       message_size,
       {"send #1 float32[4] to rank", "recv #1 float32[3] from rank"}},
  };
}

std::vector<MismatchCase> device_mismatch_cases() {
  std::vector<MismatchCase> cases = mismatch_cases();
  std::erase_if(cases, [](const MismatchCase& one) {
    return one.body == object_kind || one.body == axis_of_a_mesh || one.body == axes_of_a_mesh;
  });
  return cases;
}

void expect_mismatch(Communicator& comm, const MismatchCase& one) {
  const bool odd = comm.rank() == comm.size() - 1;
  for (int i = 0; i < 3; ++i) comm.barrier();
  std::string text;
  const auto start = std::chrono::steady_clock::now();
  try {
    one.body(comm, odd);
    // A rank whose own calls were done before the others found out is told at its next call.
    comm.barrier();
    ADD_FAILURE() << "rank " << comm.rank() << " was told nothing";
  } catch (const CommError& error) {
    text = error.what();
  }
  for (const std::string& word : one.words)
    EXPECT_NE(text.find(word), std::string::npos)
        << "rank " << comm.rank() << " was not told '" << word << "': " << text;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_TRUE(comm.failed());
  try {
    comm.barrier();
    ADD_FAILURE() << "the communicator is still alive";
  } catch (const CommError& error) {
    EXPECT_EQ(std::string(error.what()), text);
  }
}

}  // namespace catena::comm_suite
