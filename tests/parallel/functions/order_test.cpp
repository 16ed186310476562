// The order of differentiable messages in backward, and what is said where it cannot be kept.
#include <gtest/gtest.h>

#include <vector>

#include "catena/array/creation.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/grad_mode.h"
#include "catena/comm/factory.h"
#include "catena/comm/internals.h"
#include "catena/functions/math.h"
#include "catena/functions/recompute.h"
#include "catena/parallel/functions.h"
#include "error_text.h"
#include "rank_results.h"

namespace catena {
namespace {

namespace F = catena::functions;
using comm::run_threads;
using parallel::ArrayType;
using parallel::Header;

Variable root(double value, Communicator& comm) {
  return Variable(array({value, value + 1}, comm.device()));
}

std::vector<std::string> errors_of(int ranks, const std::function<void(Communicator&)>& fn) {
  return testing::errors_of_ranks(testing::AfterError::kLeave, ranks, fn);
}

TEST(MessageOrder, GroupsAreForTheCommunicatorsOwnCalls) {
  run_threads(2, [](Communicator& comm) {
    const Variable x = root(comm.rank(), comm);
    std::string text;
    comm.group([&] {
      try {
        F::send(x, comm, 1 - comm.rank());
      } catch (const ValueError& error) {
        text = error.what();
      }
    });
    EXPECT_NE(text.find("called in a Communicator::group"), std::string::npos) << text;
    EXPECT_EQ(comm.all_reduce_value(1), 2);  // nothing was sent, and nothing is broken
  });
}

// What Chainer's users had to connect by hand: no message is reached by the loss alone.
TEST(MessageOrder, FollowsFromTheRecordedCalls) {
  run_threads(3, [](Communicator& comm) {
    const Variable x = root(comm.rank(), comm);
    const int next = (comm.rank() + 1) % 3, previous = (comm.rank() + 2) % 3;
    Variable sum;
    // Three rounds of a ring; the results of two are thrown away.
    for (int round = 0; round < 3; ++round) {
      if (comm.rank() == 0) F::send(x, comm, next);
      const Variable got = F::recv(comm, previous);
      if (comm.rank() != 0) F::send(x, comm, next);
      if (round == 1) sum = F::sum(got * got);
    }
    backward({sum, F::delegate_variable(comm)});
    // Of the one round whose result was used: 2 x.
    EXPECT_EQ(x.grad().to_vector<double>(), (x.data() * 2).to_vector<double>());
  });
}

// The results are used in the order opposite to that of the messages: without the record, rank 0
// would send its gradients in another order than rank 1 receives them.
TEST(MessageOrder, IsThatOfTheCallsNotOfTheUses) {
  run_threads(2, [](Communicator& comm) {
    if (comm.rank() == 0) {
      const Variable a = root(1, comm), b = Variable(ones({3}, {Dtype::kFloat64, comm.device()}));
      F::send(a, comm, 1);
      F::send(b, comm, 1).backward();
      EXPECT_EQ(a.grad().to_vector<double>(), (std::vector<double>{2, 2}));
      EXPECT_EQ(b.grad().to_vector<double>(), (std::vector<double>{5, 5, 5}));
    } else {
      const Variable a = F::recv(comm, 0), b = F::recv(comm, 0);
      const Variable late = F::sum(b) * 5;
      (late + F::sum(a) * 2).backward();
    }
  });
}

TEST(MessageOrder, ZerosAreSentWhereNoGradientArrives) {
  run_threads(2, [](Communicator& comm) {
    const Variable x = root(1, comm);
    if (comm.rank() == 0) {
      F::send(x, comm, 1).backward();
      EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0, 0}));
    } else {
      F::recv(comm, 0);  // not used
      F::delegate_variable(comm).backward();
    }
    // The same in a collective.
    const Variable y = F::all_reduce(x, comm);
    if (comm.rank() == 0)
      F::sum(y).backward();
    else
      F::delegate_variable(comm).backward();
    EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{1, 1}));
  });
}

TEST(MessageOrder, APassThatLeavesALaterCallOutIsAnError) {
  const auto texts = errors_of(2, [](Communicator& comm) {
    const Variable x = root(1, comm);
    if (comm.rank() == 0) {
      const Variable h = F::all_reduce(x, comm);
      F::send(x, comm, 1);
      F::sum(h).backward();
    } else {
      F::all_reduce(x, comm);
      F::recv(comm, 0);
      F::delegate_variable(comm).backward();
    }
  });
  expect_contains(texts[0], {"all_reduce: backward has come to this call, but not to the send to "
                             "rank 1 recorded behind it",
                             "backward({loss, phi})"});
  expect_contains(texts[1], {"rank 0 failed"});
}

TEST(MessageOrder, ATapeStartsAgainAfterEachPass) {
  run_threads(2, [](Communicator& comm) {
    const Variable x = root(1, comm);
    for (int step = 0; step < 3; ++step) {
      EXPECT_FALSE(F::delegate_variable(comm).defined());
      if (comm.rank() == 0) {
        F::send(x, comm, 1).backward();
        EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{3, 3}));
      } else {
        F::sum(F::recv(comm, 0) * 3).backward();
      }
    }
    // Recorded, and dropped on both ranks.
    if (comm.rank() == 0)
      F::send(x, comm, 1);
    else
      F::recv(comm, 0);
    F::delegate_variable(comm).unchain_backward();
    EXPECT_FALSE(F::delegate_variable(comm).defined());
  });
}

TEST(MessageOrder, APassMayGoThroughTwice) {
  run_threads(2, [](Communicator& comm) {
    const Variable x = root(1, comm);
    const Variable y = comm.rank() == 0 ? F::send(x, comm, 1) : F::sum(F::recv(comm, 0));
    for (int pass = 0; pass < 2; ++pass) y.backward();
    if (comm.rank() == 0) {
      EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{1, 1}));
    }
  });
}

TEST(Messages, AConstantIsOneWhereItArrives) {
  run_threads(2, [](Communicator& comm) {
    const Array data = array({1, 2, 3}, comm.device());
    if (comm.rank() == 0) {
      F::send(data, comm, 1);
    } else {
      const Variable got = F::recv(comm, 0);
      EXPECT_FALSE(got.requires_grad());
      EXPECT_EQ(got.dtype(), data.dtype());
    }
    EXPECT_FALSE(F::delegate_variable(comm).defined());
  });
}

TEST(Messages, PseudoConnectReachesADelegate) {
  run_threads(2, [](Communicator& comm) {
    const CommunicatorPtr other = comm.split(0);
    const Variable x = root(1, comm), w = root(5, comm);
    if (comm.rank() == 0) {
      const Variable phi = F::send(x, comm, 1);
      F::sum(F::pseudo_connect(phi, w) * 4).backward();
      EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{3, 3}));
      EXPECT_EQ(w.grad().to_vector<double>(), (std::vector<double>{4, 4}));
      // As an argument of recv, over two communicators.
      F::sum(F::recv(*other, 1, F::send(x, comm, 1))).backward();
    } else {
      F::sum(F::recv(comm, 0) * 3).backward();
      const Variable got = F::recv(comm, 0);
      const Variable phi = F::send(x, *other, 0);
      backward({phi, F::sum(got)});
      EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{1, 1}));
    }
  });
}

TEST(Messages, ARankThatRecordsNothingIsAnError) {
  const auto texts = errors_of(2, [](Communicator& comm) {
    if (comm.rank() == 0) {
      F::send(root(1, comm), comm, 1).backward();
    } else {
      const NoBackprop off;
      F::recv(comm, 0);
    }
  });
  expect_contains(texts[1], {"recv: rank 0 has recorded what it sends", "NoBackprop"});
}

TEST(Messages, WrongArgumentsAreNamed) {
  run_threads(2, [](Communicator& comm) {
    const Variable x = root(1, comm);
    const auto text = [](auto f) { return error_of<ValueError>(f); };
    expect_contains(text([&] { F::send(x, comm, 2); }),
                    {"send: destination 2 is not a rank", "expected 0 to 1"});
    expect_contains(text([&] { F::recv(comm, -1); }), {"recv: source -1 is not a rank"});
    expect_contains(text([&] { F::send(x, comm, comm.rank()); }), {"is this rank itself"});
    expect_contains(text([&] { F::send(Variable(), comm, 1 - comm.rank()); }), {"undefined"});
    expect_contains(text([&] { F::all_gather(Variable(), comm); }), {"all_gather", "undefined"});
    expect_contains(text([&] { F::gather(x, comm, 7); }), {"gather: root 7 is not a rank"});
    expect_contains(text([&] { F::all_reduce(x, comm, comm::Reduction::kMax); }),
                    {"all_reduce: max has no gradient here"});
    EXPECT_THROW(F::all_reduce(Variable(ones({2}, {Dtype::kInt32, comm.device()})), comm,
                               comm::Reduction::kMean),
                 DtypeError);
    EXPECT_THROW(F::reduce_scatter(Variable(ones({3}, comm.device())), comm), ShapeError);
    EXPECT_THROW(F::all_reduce(Variable(ones({3}, "cpu:9")), comm), DeviceError);
    EXPECT_THROW(F::pseudo_connect(Variable(), x), ValueError);
    comm.barrier();
  });
}

TEST(Messages, WrongTypesAreNamed) {
  const auto texts = errors_of(2, [](Communicator& comm) {
    if (comm.rank() == 0)
      F::send(root(1, comm), comm, 1, Header::kNone);
    else
      F::recv(comm, 0, ArrayType{{3}, Dtype::kFloat32});
  });
  for (const std::string& text : texts)
    expect_contains(text, {"send #1 float64[2] to rank 1", "recv #1 float32[3] from rank 0"});
  run_threads(2, [](Communicator& comm) {
    if (comm.rank() != 0) return;
    EXPECT_THROW(F::broadcast(root(1, comm), comm, ArrayType{{3}, Dtype::kFloat64}), ShapeError);
    EXPECT_THROW(F::broadcast(root(1, comm), comm, ArrayType{{2}, Dtype::kFloat32}), DtypeError);
    EXPECT_THROW(F::scatter(root(1, comm), comm, ArrayType{{2}, Dtype::kFloat64}), ShapeError);
  });
}

// Calls that the user did not write are named after those that he did.
TEST(Messages, AHeaderThatNobodyExpectsIsNamed) {
  const ArrayType type{{2}, Dtype::kFloat64};
  for (const std::string& text : errors_of(2, [&](Communicator& comm) {
         if (comm.rank() == 0)
           F::send(root(1, comm), comm, 1);
         else
           F::recv(comm, 0, type);
       }))
    expect_contains(text, {"rank 0 called send #1 int64[1] to rank 1, in the header of F::send; "
                           "rank 1 called recv #1 float64[2] from rank 0"});
  for (const std::string& text : errors_of(2, [&](Communicator& comm) {
         if (comm.rank() == 0)
           F::send(root(1, comm), comm, 1, Header::kNone);
         else
           F::recv(comm, 0);
       }))
    expect_contains(text, {"rank 1 called recv #1 int64[1] from rank 0, in the header of F::recv"});
  for (const std::string& text : errors_of(2, [&](Communicator& comm) {
         if (comm.rank() == 0)
           F::broadcast(root(1, comm), comm);
         else
           F::broadcast({}, comm, type);
       }))
    expect_contains(text,
                    {"broadcast_object #1 root 0 of std::vector", "the header of F::broadcast",
                     "rank 1 called broadcast #1 float64[2] root 0"});
}

TEST(Messages, CallsOfBackwardAreNamed) {
  for (const std::string& text : errors_of(2, [&](Communicator& comm) {
         if (comm.rank() == 0)
           F::sum(F::all_reduce(root(1, comm), comm)).backward();
         else
           F::all_gather(F::all_reduce(root(1, comm), comm), comm);
       }))
    expect_contains(text, {"rank 0 called all_reduce #2 sum float64[2], in backward of "
                           "F::all_reduce; rank 1 called all_gather #2"});
}

TEST(Messages, BackwardAfterTheCommunicatorIsGoneIsAnError) {
  Variable y;
  run_threads(1, [&](Communicator& comm) { y = F::sum(F::all_reduce(root(1, comm), comm)); });
  expect_contains(error_of<CommError>([&] { y.backward(); }), {"all_reduce", "destroyed"});
}

TEST(Messages, RecomputationIsRefused) {
  const auto texts = errors_of(1, [](Communicator& comm) {
    const Variable y =
        F::recompute([&](const Variable& x) { return F::all_reduce(x, comm); }, root(1, comm));
    F::sum(y).backward();
  });
  expect_contains(texts[0], {"all_reduce: called inside F::recompute"});
}

TEST(Messages, WeightedAndMeanReductionsHaveTheirGradients) {
  run_threads(2, [](Communicator& comm) {
    const Variable x = root(comm.rank() + 1, comm);
    F::sum(F::all_reduce(x, comm, comm::weighted(comm.rank() + 2)) * (comm.rank() + 1)).backward();
    const double w = comm.rank() + 2;
    EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{3 * w, 3 * w}));
    F::sum(F::all_reduce(x, comm, comm::Reduction::kMean) * (comm.rank() + 1)).backward();
    EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{1.5, 1.5}));
    const Variable mine = F::reduce_scatter(x, comm, comm::Reduction::kMean);
    EXPECT_EQ(mine.data().to_vector<double>(), (std::vector<double>{1.5 + comm.rank()}));
    F::sum(mine * (comm.rank() + 1)).backward();
    EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0.5, 1}));
  });
}

// The first rank of a model goes back from its delegate: forgotten, the next step is a deadlock.
TEST(Messages, AForgottenBackwardIsFound) {
  const auto texts = errors_of(2, [](Communicator& comm) {
    for (int step = 0; step < 2; ++step) {
      if (comm.rank() == 0)
        F::send(root(1, comm), comm, 1);  // and nothing else
      else
        F::sum(F::recv(comm, 0)).backward();
    }
  });
  for (const std::string& text : texts)
    expect_contains(text, {"deadlock", "rank 0 waited in send",
                           "int64[1] to rank 1, in the header of F::send; ",
                           "rank 1 waited in send #1 float64", "in backward of F::recv"});
  for (const std::string& text : texts)  // which these functions refuse
    EXPECT_EQ(text.find("one group"), std::string::npos) << text;
}

}  // namespace
}  // namespace catena
