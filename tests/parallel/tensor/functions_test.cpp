// The exchanges of tensor-parallel models against one process: values, gradients, and gradients of
// gradients.
#include "catena/parallel/tensor/functions.h"

#include "catena/functions/array/copy.h"
#include "catena/functions/math.h"
#include "catena/functions/recompute.h"
#include "error_text.h"
#include "parallel/tensor/ranks.h"

namespace catena::parallel::tensor_functions {
namespace {

using namespace testing;  // NOLINT: waves and ranks

constexpr int64_t kSize = 12;

Array matrix(double phase) { return wave({kSize, kSize}, phase, dtype::float64, 0.4); }

struct Operands {
  Variable x, v, u;
  Variables all() const { return {x, v, u}; }
};

// A program over ranks, and the axes along which its operands are cut. The loss is whole.
struct Program {
  std::string name;
  int x_axis, v_axis, u_axis;
  std::function<Variable(const Operands&, Communicator&)> loss;
  std::function<Variable(const Operands&)> alone;  // the same in one process

  std::vector<int> axes() const { return {x_axis, v_axis, u_axis}; }
};

Variable two_products(const Variable& x, const Variable& v, const Variable& u) {
  return F::matmul(F::tanh(F::matmul(x, v)), u);
}

Variable loss_of_products(const Operands& o) {
  const Variable y = two_products(o.x, o.v, o.u);
  return F::sum(y * y);
}

Program gathers_and_scatters(int axis) {
  return {"gather_scatter_" + std::to_string(axis),
          axis,
          1,
          0,
          [axis](const Operands& o, Communicator& comm) {
            const Variable part = two_products(F::gather_to_ranks(o.x, comm, axis), o.v, o.u);
            const Variable slice = F::scatter_sum_of_ranks(part, comm, axis);
            return F::sum_of_ranks(F::sum(slice * slice), comm);
          },
          loss_of_products};
}

std::vector<Program> programs() {
  return {{"copy_sum", kWhole, 1, 0,
           [](const Operands& o, Communicator& comm) {
             const Variable part = two_products(F::copy_to_ranks(o.x, comm), o.v, o.u);
             const Variable y = F::sum_of_ranks(part, comm);
             return F::sum(y * y);
           },
           loss_of_products},
          {"slice_concat", kWhole, 0, -2,
           [](const Operands& o, Communicator& comm) {
             const Variable rows = F::slice_to_rank(o.x, comm, 0) * F::tanh(o.v);
             const Variable y =
                 F::concat_of_ranks(rows, comm, 0) * F::concat_of_ranks(o.u, comm, -2);
             return F::sum(F::tanh(y) * y);
           },
           [](const Operands& o) {
             const Variable y = o.x * F::tanh(o.v) * o.u;
             return F::sum(F::tanh(y) * y);
           }},
          {"slice_concat_columns", kWhole, 1, -1,
           [](const Operands& o, Communicator& comm) {
             const Variable columns = F::slice_to_rank(o.x, comm, 1) * F::tanh(o.v * o.u);
             const Variable y = F::concat_of_ranks(columns, comm, -1);
             return F::sum(F::tanh(y) * y);
           },
           [](const Operands& o) {
             const Variable y = o.x * F::tanh(o.v * o.u);
             return F::sum(F::tanh(y) * y);
           }},
          gathers_and_scatters(0),
          gathers_and_scatters(1),
          {"recomputed", kWhole, 1, 0,
           [](const Operands& o, Communicator& comm) {
             const auto inner = [&comm](const Variables& xs) {
               const Variable part = two_products(F::copy_to_ranks(xs[0], comm), xs[1], xs[2]);
               return Variables{F::sum_of_ranks(part, comm)};
             };
             const Variable y = F::recompute(inner, o.all())[0];
             return F::sum(y * y);
           },
           loss_of_products}};
}

// Of matrices; negative numbers count from the end.
int axis_of(int number) { return number < 0 ? number + 2 : number; }

struct Gradients {
  Array loss;
  Arrays first, second;  // of x, v and u: of the loss, and of a penalty on the first ones
};

// `sum_up` adds what ranks have of a sum over slices.
Gradients go_back(const Operands& o, const std::function<Variable(const Operands&)>& f,
                  const std::function<Variable(size_t, const Variable&)>& sum_up, bool twice) {
  Gradients result;
  const Variable loss = f(o);
  result.loss = loss.data();
  loss.backward({.create_graph = twice});
  for (const Variable& v : o.all()) result.first.push_back(v.grad().copy());
  if (!twice) return result;
  Variable penalty;
  for (size_t i = 0; i < 3; ++i) {
    const Variable g = o.all()[i].grad_variable();
    const Variable of_this = sum_up(i, F::sum(g * g * g));
    penalty = penalty.defined() ? penalty + of_this : of_this;
  }
  penalty.backward();
  for (const Variable& v : o.all()) result.second.push_back(v.grad().copy());
  return result;
}

bool is_whole(const Program& program, size_t i) { return i == 0 && program.x_axis == kWhole; }

void check_program(const Program& program, Communicator& comm, bool twice) {
  const Arrays wholes = {matrix(1), matrix(2), matrix(3)};
  const Gradients expected = go_back(
      {Variable(wholes[0]), Variable(wholes[1]), Variable(wholes[2])}, program.alone,
      [](size_t, const Variable& v) { return v; }, twice);
  Variables own;
  for (size_t i = 0; i < 3; ++i)
    own.push_back(Variable(is_whole(program, i)
                               ? wholes[i].to(comm.device())
                               : slice_on(comm, wholes[i], axis_of(program.axes()[i]))));
  const Gradients got = go_back(
      {own[0], own[1], own[2]}, [&](const Operands& o) { return program.loss(o, comm); },
      [&](size_t i, const Variable& v) {
        return is_whole(program, i) ? v : F::sum_of_ranks(v, comm);
      },
      twice);
  expect_close(got.loss.to(cpu(0)), expected.loss, "loss");
  const auto compare = [&](const Arrays& slices, const Arrays& whole, const std::string& what) {
    for (size_t i = 0; i < whole.size(); ++i) {
      const std::string name = what + std::string(1, "xvu"[i]);
      if (is_whole(program, i)) {
        expect_whole(comm, slices[i], name);
        expect_close(slices[i].to(cpu(0)), whole[i], name);
      } else {
        expect_close(whole_of(comm, slices[i], axis_of(program.axes()[i])), whole[i], name);
      }
    }
  };
  compare(got.first, expected.first, "gradient of ");
  compare(got.second, expected.second, "second gradient of ");
}

TEST(TensorFunctions, HaveTheGradientsOfOneProcess) {
  for (const Program& program : programs()) {
    for (const int ranks : kRankCounts) {
      SCOPED_TRACE(program.name + " on " + std::to_string(ranks));
      const bool twice = program.name != "recomputed";
      run_alike(ranks, [&](Communicator& comm) { check_program(program, comm, twice); });
    }
  }
}

// As a pipeline does: two graphs, of which the first goes back while the second is there.
TEST(TensorFunctions, GraphsOfSeveralBatchesAreIndependent) {
  run_alike(2, [](Communicator& comm) {
    const Variable a(matrix(1).to(comm.device())), b(matrix(2).to(comm.device()));
    const auto loss_of = [&](const Variable& x) {
      const Variable own = F::copy_to_ranks(x, comm) * double(comm.rank() + 1);
      return F::sum(F::sum_of_ranks(own, comm));
    };
    const Variable first = loss_of(a), second = loss_of(b);
    first.backward();
    expect_close(a.grad(), full_like(a.data(), 3.0));
    EXPECT_FALSE(b.grad().defined());
    second.backward();
    expect_close(b.grad(), full_like(b.data(), 3.0));
    expect_close(a.grad(), full_like(a.data(), 3.0), "of the first batch");
  });
}

TEST(TensorFunctions, ConstantsNeedNoBackward) {
  run_alike(2, [](Communicator& comm) {
    const Variable x = Variable::constant(matrix(1).to(comm.device()));
    EXPECT_FALSE(F::copy_to_ranks(x, comm).requires_grad());
    EXPECT_FALSE(F::gather_to_ranks(x, comm, 0).requires_grad());
  });
}

TEST(TensorFunctions, SayWhatDoesNotFit) {
  run_alike(2, [](Communicator& comm) {
    const Variable x(zeros({3, 4}, {dtype::float32, comm.device()}));
    expect_contains(error_of<ShapeError>([&] { F::slice_to_rank(x, comm, 0); }),
                    {"slice_to_rank: axis 0 of shape (3, 4) cannot be divided among 2 ranks"});
    expect_contains(error_of<ShapeError>([&] { F::scatter_sum_of_ranks(x, comm, -2); }),
                    {"scatter_sum_of_ranks: axis 0 of shape (3, 4)"});
    expect_contains(error_of<IndexError>([&] { F::gather_to_ranks(x, comm, 2); }),
                    {"gather_to_ranks"});
    const Variable elsewhere = F::copy(x, cpu(7));
    expect_contains(error_of<DeviceError>([&] { F::copy_to_ranks(elsewhere, comm); }),
                    {"copy_to_ranks: x is on cpu:7", "move it with F::copy"});
    expect_contains(error_of<ValueError>([&] { F::sum_of_ranks(Variable(), comm); }),
                    {"sum_of_ranks"});
  });
}

TEST(TensorFunctions, NeedTheirCommunicatorInBackward) {
  run_alike(2, [](Communicator& comm) {
    CommunicatorPtr part = comm.split(0, comm.rank());
    const Variable x(zeros({2}, {dtype::float32, comm.device()}));
    const Variable loss = F::sum(F::copy_to_ranks(x, *part));
    part.reset();
    expect_contains(error_of<CommError>([&] { loss.backward(); }),
                    {"copy_to_ranks: backward after the communicator was destroyed"});
  });
}

// Other sizes on a rank are named, with what was called.
TEST(TensorFunctions, NameRanksThatDiffer) {
  const std::string error = error_of<CommError>([] {
    run_alike(2, [](Communicator& comm) {
      F::sum_of_ranks(Variable(zeros({2 + comm.rank()}, {dtype::float32, comm.device()})), comm);
    });
  });
  expect_contains(error, {"all_reduce", "float32[2]", "float32[3]", "sum_of_ranks"});
}

}  // namespace
}  // namespace catena::parallel::tensor_functions
