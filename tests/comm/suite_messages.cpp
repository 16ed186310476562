// Asynchronous messages: the cases of suite.h that go over streams.
#include <gtest/gtest.h>

#include "catena/array/math.h"
#include "catena/comm/internals.h"
#include "catena/comm/transport.h"
#include "catena/core/graph.h"
#include "comm/suite.h"

namespace catena::comm_suite {

namespace {

constexpr Dtype kSome[] = {Dtype::kBool, Dtype::kInt16, Dtype::kBFloat16, Dtype::kFloat32,
                           Dtype::kFloat64};

int next_of(const Communicator& comm) { return (comm.rank() + 1) % comm.size(); }
int previous_of(const Communicator& comm) { return (comm.rank() + comm.size() - 1) % comm.size(); }

// Rank r receives, adds one on the current stream and sends on, all on the side stream.
void chain_on_a_stream(Communicator& comm) {
  const Stream side = comm.side_stream(), own = current_stream(comm.device());
  for (const int64_t n : {0, 5, 30000}) {
    Array x = zeros({n}, {Dtype::kFloat32, comm.device()});
    if (comm.rank() > 0) {
      const Array got = ones({n}, {Dtype::kFloat32, comm.device()});
      own.wait(comm.recv_async(got, comm.rank() - 1, side));
      x = got;
    }
    x = x + 1;
    if (comm.rank() + 1 < comm.size()) own.wait(comm.send_async(x, comm.rank() + 1, side));
    EXPECT_EQ(to_doubles(x), std::vector<double>(size_t(n), comm.rank() + 1));
  }
}

// A ring in one group, the two directions on different streams; to this rank itself if it is alone.
void ring_on_streams(Communicator& comm) {
  const Stream there = comm.side_stream(), back = Stream::create(comm.device());
  const Stream own = current_stream(comm.device());
  for (const Dtype dtype : kSome) {
    for (const int64_t n : {0, 3, 30000}) {
      SCOPED_TRACE(message(dtype, " of ", n));
      const Array x = make(comm, {n}, dtype, comm.rank());
      const Array y = make(comm, {n}, dtype, 77);
      comm.group([&] {
        EXPECT_FALSE(comm.send_async(x, next_of(comm), there));
        EXPECT_FALSE(comm.recv_async(y, previous_of(comm), back));
      });
      own.wait(there);
      own.wait(back);
      EXPECT_EQ(to_doubles(y), to_doubles(make(comm, {n}, dtype, previous_of(comm))));
    }
  }
}

// All receives of a group are there at once: what comes first is taken first.
void group_takes_what_comes(Communicator& comm) {
  if (comm.size() < 3) return;
  const Array x = make(comm, {4}, Dtype::kFloat32, comm.rank());
  const Array a = make(comm, {4}, Dtype::kFloat32, 9), b = make(comm, {4}, Dtype::kFloat32, 9);
  if (comm.rank() == 0) {
    comm.group([&] {
      comm.recv(a, 1);
      comm.recv(b, 2);
    });
    EXPECT_EQ(to_doubles(a), to_doubles(make(comm, {4}, Dtype::kFloat32, 1)));
    EXPECT_EQ(to_doubles(b), to_doubles(make(comm, {4}, Dtype::kFloat32, 2)));
  } else if (comm.rank() == 1) {
    comm.recv(a, 2);  // which rank 2 sends after its message to rank 0
    comm.send(x, 0);
  } else if (comm.rank() == 2) {
    comm.send(x, 0);
    comm.send(x, 1);
  }
}

// One end in a group, the other call by call; several messages between two ranks stay in order.
void groups_against_single_calls(Communicator& comm) {
  if (comm.size() < 2 || comm.rank() > 1 || comm.name() == "nccl") return;
  const int other = 1 - comm.rank();
  for (const bool groups : {true, false}) {
    for (const int64_t n : {1, 50000}) {
      std::vector<Array> arrays;
      for (int i = 0; i < 4; ++i)
        arrays.push_back(make(comm, {n + i}, Dtype::kFloat32, comm.rank() == 0 ? i : 9));
      const auto calls = [&] {
        for (const Array& x : arrays) comm.rank() == 0 ? comm.send(x, other) : comm.recv(x, other);
      };
      // Rank 0 in a group and rank 1 not, then the other way round.
      if (groups == (comm.rank() == 0))
        comm.group(calls);
      else
        calls();
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(to_doubles(arrays[size_t(i)]),
                  to_doubles(make(comm, {n + i}, Dtype::kFloat32, i)));
    }
  }
}

// As large as messages that copy engines move between GPUs, and then larger: around a ring, several
// in one group against one for each call.
void large_messages(Communicator& comm) {
  for (const int64_t n : {150000, 700000, 150000}) {
    const Array x = make(comm, {n}, Dtype::kFloat32, comm.rank());
    const Array y = make(comm, {n}, Dtype::kFloat32, 77);
    comm.group([&] {
      comm.recv(y, previous_of(comm));
      comm.send(x, next_of(comm));
    });
    EXPECT_EQ(to_doubles(y), to_doubles(make(comm, {n}, Dtype::kFloat32, previous_of(comm))));
  }
  // NCCL wants the same groups at both ends.
  if (comm.size() < 2 || comm.rank() > 1) return;
  if (comm.name() == "nccl" && !comm::internals(comm).transport().messages_are_independent())
    return;
  const int other = 1 - comm.rank();
  Array one, two, back;
  if (comm.rank() == 0) {
    one = make(comm, {140000}, Dtype::kFloat32, 3), two = make(comm, {900000}, Dtype::kFloat32, 4);
    back = make(comm, {200000}, Dtype::kFloat32, 9);
    comm.group([&] {
      comm.recv(back, other);
      comm.send(one, other);
      comm.send(two, other);
    });
  } else {
    one = make(comm, {140000}, Dtype::kFloat32, 9), two = make(comm, {900000}, Dtype::kFloat32, 9);
    back = make(comm, {200000}, Dtype::kFloat32, 5);
    comm.recv(one, other);
    comm.recv(two, other);
    comm.send(back, other);
  }
  EXPECT_EQ(to_doubles(one), to_doubles(make(comm, {140000}, Dtype::kFloat32, 3)));
  EXPECT_EQ(to_doubles(two), to_doubles(make(comm, {900000}, Dtype::kFloat32, 4)));
  EXPECT_EQ(to_doubles(back), to_doubles(make(comm, {200000}, Dtype::kFloat32, 5)));
}

// A captured ring, replayed with other data each time.
void captured_messages(Communicator& comm) {
  if (!comm.device().is_cuda() || comm.name() != "nccl") return;
  for (const int64_t n : {300, 300000}) {
    const Array x = make(comm, {n}, Dtype::kFloat32, comm.rank());
    const Array y = make(comm, {n}, Dtype::kFloat32, 77);
    const auto step = [&] {
      comm.group([&] {
        comm.send(x, next_of(comm));
        comm.recv(y, previous_of(comm));
      });
    };
    if (comm.size() > 1) step();
    cuda::Graph graph = cuda::Graph::capture(comm.device(), step);
    for (int i = 1; i < 4; ++i) {
      x += 1;
      graph.launch();
      EXPECT_EQ(to_doubles(y), to_doubles(make(comm, {n}, Dtype::kFloat32, previous_of(comm)) + i));
    }
  }
}

void asynchronous_errors(Communicator& comm) {
  const Stream on = comm.side_stream();
  const Array x = make(comm, {4, 6}, Dtype::kFloat32, comm.rank());
  const int other = next_of(comm);
  if (comm.size() > 1) {
    EXPECT_THROW(comm.send_async(x.T(), other, on), ValueError);
    EXPECT_THROW(comm.recv_async(x.T(), other, on), ValueError);
  }
  EXPECT_THROW(comm.send_async(x, comm.rank(), on), ValueError) << "it would wait for itself";
  EXPECT_THROW(comm.recv_async(x, comm.size(), on), ValueError);
  EXPECT_THROW(comm.send_async(Array(), other, on), ValueError);
  comm.barrier();
}

}  // namespace

std::vector<Case> message_cases() {
  return {{"chain_on_a_stream", chain_on_a_stream},
          {"ring_on_streams", ring_on_streams},
          {"group_takes_what_comes", group_takes_what_comes},
          {"groups_against_single_calls", groups_against_single_calls},
          {"large_messages", large_messages},
          {"captured_messages", captured_messages},
          {"asynchronous_errors", asynchronous_errors}};
}

}  // namespace catena::comm_suite
