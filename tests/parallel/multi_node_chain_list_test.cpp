// Layers on ranks against the same layers in one process.
#include "catena/parallel/multi_node_chain_list.h"

#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/grad_mode.h"
#include "catena/functions/array.h"
#include "catena/parallel/functions.h"
#include "error_text.h"
#include "parallel/network.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // NOLINT: the network of the tests of parallel training
using comm::run_threads;

F::Linear linear(int64_t in, int64_t out, double phase) {
  return layer(in, out, Dtype::kFloat64, phase);
}

struct Activated : FunctionSet {
  F::Linear l;
  explicit Activated(int64_t in, int64_t out, double phase) : l(linear(in, out, phase)) {}
  CATENA_FUNCTIONS(l)
  Variable operator()(const Variable& x) { return F::tanh(l(x)); }
};

struct Joined : FunctionSet {
  F::Linear left, right;
  explicit Joined(double phase) : left(linear(5, 4, phase)), right(linear(5, 4, phase + 0.3)) {}
  CATENA_FUNCTIONS(left, right)
  Variable operator()(const Variable& a, const Variable& b) { return left(a) + F::tanh(right(b)); }
};

// Two results, of one input.
struct Forked : FunctionSet {
  F::Linear l;
  explicit Forked(double phase) : l(linear(kInputs, 5, phase)) {}
  CATENA_FUNCTIONS(l)
  Variables operator()(const Variable& x) {
    const Variable h = l(x);
    return {F::tanh(h), h * h};
  }
};

Batch data() { return batch_of(0, 4, Dtype::kFloat64); }
Variable loss_of(const Variable& y) { return F::sum(y * y); }

using Gradients = std::vector<std::vector<double>>;
Gradients gradients_of(const Parameterized& model) {
  Gradients all;
  for (const Array& g : model.gradients()) all.push_back(g.to_vector<double>());
  return all;
}

// A model for n ranks, and the same in one process: its loss, and the gradients by rank.
struct Placement {
  const char* name;
  int ranks;
  void (*build)(MultiNodeChainList& model, int rank);
  double (*alone)(std::vector<Gradients>& gradients);
  int first, last;  // the ranks with input and output
};

template <class... Models>
double finish(const Variable& loss, Models&... models) {
  (models.zero_grads(), ...);
  loss.backward();
  return loss.item<double>();
}

// 0 -> 1 -> 2 -> 0: the first rank has the last layer.
void build_circle(MultiNodeChainList& model, int rank) {
  if (rank == 0) {
    model.add_link(Activated(kInputs, 5, 1), none, 1);
    model.add_link(Activated(3, 2, 4), 2, none);
  } else if (rank == 1) {
    model.add_link(Activated(5, 4, 2), 0, 2);
  } else {
    model.add_link(Activated(4, 3, 3), 1, 0);
  }
}
double circle_alone(std::vector<Gradients>& gradients) {
  Activated a(kInputs, 5, 1), b(5, 4, 2), c(4, 3, 3), d(3, 2, 4);
  const double loss = finish(loss_of(d(c(b(a(data().x))))), a, b, c, d);
  gradients[0] = gradients_of(a);
  for (const auto& g : gradients_of(d)) gradients[0].push_back(g);
  gradients[1] = gradients_of(b);
  gradients[2] = gradients_of(c);
  return loss;
}

// Rank 0 makes two results, both for rank 1, one after another; the last one keeps its own.
void build_pair(MultiNodeChainList& model, int rank) {
  if (rank == 0)
    model.add_link(Forked(1), none, {1, 1});
  else
    model.add_link(Joined(2), {0, 0}, none);
}
double pair_alone(std::vector<Gradients>& gradients) {
  Forked a(1);
  Joined b(2);
  const Variables h = a(data().x);
  const double loss = finish(loss_of(b(h[0], h[1])), a, b);
  gradients[0] = gradients_of(a);
  gradients[1] = gradients_of(b);
  return loss;
}

// A branch over rank 1 and one over rank 0 itself, which also sends behind its output.
void build_branches(MultiNodeChainList& model, int rank) {
  if (rank == 0) {
    model.add_link(Activated(kInputs, 5, 1), none, {0, 1});
    model.add_link(Joined(2), {0, 1}, {2, 0});
    model.add_link([](const Variable& y) { return y; }, 0, none);
  } else if (rank == 1) {
    model.add_link(Activated(5, 5, 3), 0, 0);
  } else {
    model.add_link(Activated(4, 2, 4), 0, none);
  }
}
double branches_alone(std::vector<Gradients>& gradients) {
  Activated a(kInputs, 5, 1), c(5, 5, 3), d(4, 2, 4);
  Joined b(2);
  const Variable h = a(data().x), y = b(h, c(h));
  const Variable one = loss_of(y), two = loss_of(d(y));
  const double loss = one.item<double>() + two.item<double>();
  finish(one + two, a, b, c, d);
  gradients[0] = gradients_of(a);
  for (const auto& g : gradients_of(b)) gradients[0].push_back(g);
  gradients[1] = gradients_of(c);
  gradients[2] = gradients_of(d);
  return loss;
}

void run_placed(const Placement& p, Communicator& comm, const std::vector<Gradients>& want,
                double want_loss) {
  MultiNodeChainList model(comm);
  p.build(model, comm.rank());
  model.to(comm.device());
  for (int step = 0; step < 2; ++step) {
    model.zero_grads();
    const Array x = data().x.to(comm.device());
    const Variable y = comm.rank() == p.first ? model(x) : model();
    double loss = 0;
    if (y.ndim() == 2) {
      const Variable own = loss_of(y);
      loss = own.item<double>();
      own.backward();
    } else {
      y.backward();
    }
    EXPECT_NEAR(comm.all_reduce_value(loss), want_loss, 1e-12 * want_loss);
    const Gradients got = gradients_of(model);
    ASSERT_EQ(got.size(), want[size_t(comm.rank())].size());
    for (size_t i = 0; i < got.size(); ++i)
      for (size_t k = 0; k < got[i].size(); ++k)
        EXPECT_NEAR(got[i][k], want[size_t(comm.rank())][i][k], 1e-12) << comm.rank();
  }
}

TEST(MultiNodeChainList, GivesWhatOneProcessGives) {
  const Placement placements[] = {
      {"circle", 3, build_circle, circle_alone, 0, 0},
      {"pair", 2, build_pair, pair_alone, 0, 1},
      {"branches", 3, build_branches, branches_alone, 0, 0},
  };
  for (const Placement& p : placements) {
    SCOPED_TRACE(p.name);
    std::vector<Gradients> want(static_cast<size_t>(p.ranks));
    const double loss = p.alone(want);
    run_threads(p.ranks, [&](Communicator& comm) { run_placed(p, comm, want, loss); },
                {.timeout = 30});
  }
}

// The first rank waits for a gradient, of zeros, all the same.
TEST(MultiNodeChainList, AnInputThatIsNotUsedSendsItsGradient) {
  run_threads(
      3,
      [](Communicator& comm) {
        MultiNodeChainList model(comm);
        if (comm.rank() < 2)
          model.add_link(linear(kInputs, 4, 1 + comm.rank()), none, 2);
        else
          model.add_link([](const Variable& a, const Variable&) { return a; }, {0, 1}, none);
        model.to(comm.device());
        for (int step = 0; step < 2; ++step) {
          model.zero_grads();
          if (comm.rank() == 2)
            loss_of(model()).backward();
          else
            model(data().x.to(comm.device())).backward();
        }
        if (comm.rank() == 2) return;
        double norm = 0;
        for (const Array& g : model.gradients()) norm += sum(square(g)).item<double>();
        EXPECT_EQ(norm > 0, comm.rank() == 0) << comm.rank();
      },
      {.timeout = 10});
}

TEST(MultiNodeChainList, IsAModel) {
  run_threads(2, [](Communicator& comm) {
    MultiNodeChainList model(comm);
    Activated& first = model.add_link(Activated(6, 5, 1), none, 1 - comm.rank());
    model.add_link(linear(5, 2, 1), 1 - comm.rank(), none);
    EXPECT_EQ(model.parameter_names(), (std::vector<std::string>{"0/l/W", "0/l/b", "1/W", "1/b"}));
    model.eval();
    EXPECT_FALSE(first.training());
    MultiNodeChainList copy = model;
    EXPECT_EQ(copy.size(), 2u);
    EXPECT_FALSE(copy.parameters()[0] == model.parameters()[0]);
    copy = model;
  });
}

TEST(MultiNodeChainList, EvaluatesWithoutARecord) {
  run_threads(3, [](Communicator& comm) {
    MultiNodeChainList model(comm);
    build_circle(model, comm.rank());
    model.to(comm.device());
    const NoBackprop off;
    const Variable y = comm.rank() == 0 ? model(data().x.to(comm.device())) : model();
    EXPECT_EQ(y.defined(), comm.rank() == 0);
    EXPECT_FALSE(F::delegate_variable(comm).defined());
  });
}

TEST(MultiNodeChainList, WrongUsesAreNamed) {
  run_threads(1, [](Communicator& comm) {
    const auto text = [](auto f) { return error_of<ValueError>(f); };
    MultiNodeChainList model(comm);
    expect_contains(text([&] { model.add_link(linear(2, 2, 1), 1, none); }),
                    {"add_link: rank_in 1 is not a rank"});
    expect_contains(text([&] { model.add_link(linear(2, 2, 1), none, std::vector<int>()); }),
                    {"add_link: rank_out is an empty list"});
    model.add_link(linear(2, 2, 1), none, 0);
    const Array x = ones({3, 2}, dtype::float64);
    expect_contains(text([&] { model(x); }), {"no later link takes them"});
    expect_contains(text([&] { model(x, x); }), {"link 0 does not take the number", "2"});
    model.add_link([](const Variable& y) { return Variables{y, y}; }, 0, none);
    expect_contains(text([&] { model(x); }), {"made 2 variables, expected one"});
    EXPECT_EQ(model.run({x}).size(), 2u);
    expect_contains(text([&] { model.add_link(linear(2, 2, 1)); }),
                    {"a link without rank_out is there already"});
    MultiNodeChainList early(comm);
    early.add_link(linear(2, 2, 1), 0, none);
    expect_contains(text([&] { early(); }), {"no earlier link has sent to it"});
    MultiNodeChainList many(comm);
    many.add_link([](const Variable& y) { return Variables{y, y, y}; }, none, {0, 0});
    expect_contains(text([&] { many(x); }), {"link 0 returned 3 variables for the 2 ranks"});
  });
}

}  // namespace
}  // namespace catena::parallel
