#include "parallel/suite_functions.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/gradient_check.h"
#include "catena/functions/array.h"
#include "catena/functions/math.h"
#include "catena/parallel/functions.h"

namespace catena::parallel_suite {

namespace F = catena::functions;

using parallel::ArrayType;

namespace {

Variable total(const Variables& xs) {
  Variable sum = xs[0];
  for (size_t i = 1; i < xs.size(); ++i) sum = sum + xs[i];
  return sum;
}

Variable at_least_1d(const Variable& x) { return x.ndim() == 0 ? x.reshape({1}) : x; }

Variable joined(const Variables& xs) {
  Variables parts;
  for (const Variable& x : xs) parts.push_back(at_least_1d(x));
  return F::concat(parts, 0);
}

Variables everywhere(const Variable& y, size_t ranks) { return Variables(ranks, y); }

Variables only(size_t root, const Variable& y, size_t ranks) {
  Variables ys(ranks);
  ys[root] = y;
  return ys;
}

Variables pieces(const Variable& x, size_t ranks) { return F::split_axis(x, int64_t(ranks), 0); }

int last(const Communicator& comm) { return comm.size() - 1; }
ArrayType type_of(const Array& x) { return {x.shape(), x.dtype()}; }

// Each rank multiplies what comes by its x and sends it on; the last keeps it.
Variable chain(const Variable& x, Communicator& comm, bool header) {
  using parallel::Header;
  Variable h = x;
  if (comm.rank() > 0)
    h = x * (header ? F::recv(comm, comm.rank() - 1)
                    : F::recv(comm, comm.rank() - 1, type_of(x.data())));
  if (comm.rank() == last(comm)) return h;
  F::send(h, comm, comm.rank() + 1, header ? Header::kSent : Header::kNone);
  return {};
}

Variables chained(const Variables& xs) {
  Variable h = xs[0];
  for (size_t r = 1; r < xs.size(); ++r) h = xs[r] * h;
  return only(xs.size() - 1, h, xs.size());
}

// Rank 0 sends x to the others and adds up what they make of it.
Variable star(const Variable& x, Communicator& comm) {
  if (comm.rank() > 0) {
    F::send(x * F::recv(comm, 0), comm, 0);
    return {};
  }
  for (int r = 1; r < comm.size(); ++r) F::send(x, comm, r);
  Variable sum = x;
  for (int r = 1; r < comm.size(); ++r) sum = sum + F::recv(comm, r);
  return sum;
}

Variables starred(const Variables& xs) {
  Variable sum = xs[0];
  for (size_t r = 1; r < xs.size(); ++r) sum = sum + xs[r] * xs[0];
  return only(0, sum, xs.size());
}

// Several calls in a row, with functions between them.
Variable mixed(const Variable& x, Communicator& comm) {
  const Variable all = F::all_reduce(x * x, comm);
  const Variable mine = F::reduce_scatter(all * x, comm);
  return F::all_gather(mine * mine, comm);
}

Variables mixed_in_one(const Variables& xs) {
  Variables squares, products;
  for (const Variable& x : xs) squares.push_back(x * x);
  const Variable all = total(squares);
  for (const Variable& x : xs) products.push_back(all * x);
  const Variable sum = total(products);
  return everywhere(sum * sum, xs.size());
}

Variable given_on_root(const Variable& x, const Communicator& comm, int root) {
  return comm.rank() == root ? x : Variable();
}

}  // namespace

std::vector<Communication> communications() {
  return {
      {"chain", {2, 3}, [](auto& x, auto& comm) { return chain(x, comm, true); }, chained},
      {"chain_without_header",
       {2, 3},
       [](auto& x, auto& comm) { return chain(x, comm, false); },
       chained},
      {"star", {3}, star, starred},
      {"broadcast",
       {2, 3},
       [](auto& x, auto& comm) { return F::broadcast(given_on_root(x, comm, 0), comm); },
       [](auto& xs) { return everywhere(xs[0], xs.size()); }},
      {"broadcast_of_last_with_type",
       {},
       [](auto& x, auto& comm) { return F::broadcast(x, comm, type_of(x.data()), last(comm)); },
       [](auto& xs) { return everywhere(xs.back(), xs.size()); }},
      {"scatter",
       {-1, 3},
       [](auto& x, auto& comm) { return F::scatter(given_on_root(x, comm, 0), comm); },
       [](auto& xs) { return pieces(xs[0], xs.size()); }},
      {"scatter_of_last_with_type",
       {-1},
       [](auto& x, auto& comm) {
         ArrayType piece = type_of(x.data());
         piece.shape[0] /= comm.size();
         return F::scatter(x, comm, piece, last(comm));
       },
       [](auto& xs) { return pieces(xs.back(), xs.size()); }},
      {"gather",
       {2, 3},
       [](auto& x, auto& comm) {
         const Variable y = F::gather(x, comm, last(comm));
         return comm.rank() == last(comm) ? y : Variable();
       },
       [](auto& xs) { return only(xs.size() - 1, joined(xs), xs.size()); }},
      {"gather_of_0d",
       {},
       [](auto& x, auto& comm) {
         const Variable y = F::gather(x, comm);
         return comm.rank() == 0 ? y : Variable();
       },
       [](auto& xs) { return only(0, joined(xs), xs.size()); }},
      {"reduce",
       {2, 3},
       [](auto& x, auto& comm) {
         const Variable y = F::reduce(x, comm, last(comm));
         return comm.rank() == last(comm) ? y : Variable();
       },
       [](auto& xs) { return only(xs.size() - 1, total(xs), xs.size()); }},
      {"all_gather",
       {2, 3},
       [](auto& x, auto& comm) { return F::all_gather(x, comm); },
       [](auto& xs) { return everywhere(joined(xs), xs.size()); }},
      {"all_gather_of_0d",
       {},
       [](auto& x, auto& comm) { return F::all_gather(x, comm); },
       [](auto& xs) { return everywhere(joined(xs), xs.size()); }},
      {"reduce_scatter",
       {-1, 2},
       [](auto& x, auto& comm) { return F::reduce_scatter(x, comm); },
       [](auto& xs) { return pieces(total(xs), xs.size()); }},
      {"all_to_all",
       {-1, 2},
       [](auto& x, auto& comm) { return F::all_to_all(x, comm); },
       [](auto& xs) {
         Variables ys;
         for (size_t r = 0; r < xs.size(); ++r) {
           Variables parts;
           for (const Variable& x : xs) parts.push_back(pieces(x, xs.size())[r]);
           ys.push_back(F::concat(parts, 0));
         }
         return ys;
       }},
      {"all_reduce",
       {2, 3},
       [](auto& x, auto& comm) { return F::all_reduce(x, comm); },
       [](auto& xs) { return everywhere(total(xs), xs.size()); }},
      {"mixed", {-1}, mixed, mixed_in_one},
  };
}

namespace {

Array data_of(const Communication& one, const Communicator& comm, int rank, Dtype dtype,
              bool empty = false) {
  Shape shape = one.shape;
  if (!shape.empty() && shape[0] < 0) shape[0] = empty ? 0 : 2 * comm.size();
  if (empty && !shape.empty()) shape.back() = 0;
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(double((rank * 3 + i * 2) % 5) - 1);
  return array(values, shape, cpu(0)).astype(dtype).to(comm.device());
}

// The same values, not contiguous.
Array strided(const Array& x) {
  if (x.ndim() < 2) return x;
  return x.T().copy().T();
}

Variables data_of_all(const Communication& one, const Communicator& comm, Dtype dtype, bool empty) {
  Variables xs;
  for (int r = 0; r < comm.size(); ++r) xs.emplace_back(data_of(one, comm, r, dtype, empty));
  return xs;
}

void expect_equal(const Array& got, const Array& want, const char* what) {
  ASSERT_TRUE(got.defined()) << what;
  EXPECT_EQ(got.shape(), want.shape()) << what;
  EXPECT_EQ(got.dtype(), want.dtype()) << what;
  EXPECT_EQ(got.copy().to_vector<double>(), want.copy().to_vector<double>()) << what;
}

// Undefined: no use of x has a gradient, which is one of zeros where others have one.
void expect_gradient(const Variable& x, const Variable& want, const char* what) {
  const Array zero = zeros_like(x.data());
  expect_equal(x.grad().defined() ? x.grad() : zero, want.grad().defined() ? want.grad() : zero,
               what);
}

// Of numbers that are no longer exact.
void expect_near_gradient(const Variable& x, const Variable& want) {
  const Array zero = zeros_like(x.data());
  const Array a = x.grad().defined() ? x.grad() : zero;
  const Array b = want.grad().defined() ? want.grad() : zero;
  ASSERT_EQ(a.shape(), b.shape());
  const double relative = x.dtype() == Dtype::kFloat64 ? 1e-13 : 1e-5;
  EXPECT_NO_THROW(assert_allclose(a, b, 0, relative)) << "gradient of gradients";
}

Variable loss_of(const Variable& y, int rank) { return F::sum(y * y * (rank + 1)); }

void go_back(Communicator& comm, const Variable& loss, bool create_graph) {
  Variables results;
  if (loss.defined()) results.push_back(loss);
  if (const Variable phi = F::delegate_variable(comm); phi.defined()) results.push_back(phi);
  if (!results.empty()) backward(results, {}, {.create_graph = create_graph});
}

Variable penalty_of(const Variable& x, int rank) {
  const Variable g = x.grad_variable();
  return g.defined() ? F::sum(g * g * (rank + 2)) : Variable();
}

void check_all(Communicator& comm, const Communication& one, const Variable& x,
               const Variables& xs) {
  const int me = comm.rank();
  const Variable y = one.apply(x, comm);
  const Variables ys = one.reference(xs);
  ASSERT_EQ(y.defined(), ys[size_t(me)].defined());
  if (y.defined()) expect_equal(y.data(), ys[size_t(me)].data(), "value");

  go_back(comm, y.defined() ? loss_of(y, me) : Variable(), true);
  Variables losses;
  for (int r = 0; r < comm.size(); ++r)
    if (ys[size_t(r)].defined()) losses.push_back(loss_of(ys[size_t(r)], r));
  backward(losses, {}, {.create_graph = true});
  expect_gradient(x, xs[size_t(me)], "gradient");

  go_back(comm, penalty_of(x, me), false);
  Variables penalties;
  for (int r = 0; r < comm.size(); ++r)
    if (const Variable penalty = penalty_of(xs[size_t(r)], r); penalty.defined())
      penalties.push_back(penalty);
  if (!penalties.empty()) backward(penalties);
  expect_near_gradient(x, xs[size_t(me)]);
  EXPECT_FALSE(F::delegate_variable(comm).defined()) << "a pass has gone through all calls";
}

}  // namespace

void check_gradients(Communicator& comm, const Communication& one) {
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
    for (const bool empty : {false, true}) {
      if (empty && one.shape.empty()) continue;
      SCOPED_TRACE(message(one.name, " ", dtype, empty ? " empty" : ""));
      const Array x = data_of(one, comm, comm.rank(), dtype, empty);
      check_all(comm, one, Variable(x), data_of_all(one, comm, dtype, empty));
      check_all(comm, one, Variable(strided(x)), data_of_all(one, comm, dtype, empty));
    }
  }
}

void check_dtypes(Communicator& comm, const Communication& one) {
  const int me = comm.rank();
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kInt32, Dtype::kUInt8}) {
    SCOPED_TRACE(message(one.name, " ", dtype));
    // Zeros and ones: sums and products of them are exact.
    const auto small = [&](int rank) {
      return (data_of(one, comm, rank, Dtype::kFloat32) > 0.f).astype(dtype);
    };
    const Variable x(small(me));
    Variables xs;
    for (int r = 0; r < comm.size(); ++r) xs.emplace_back(small(r));
    const Variable y = one.apply(x, comm);
    const Variables ys = one.reference(xs);
    if (y.defined()) expect_equal(y.data(), ys[size_t(me)].data(), "value");
    if (!is_float(dtype)) {
      EXPECT_FALSE(F::delegate_variable(comm).defined());
      EXPECT_FALSE(y.defined() && y.creator());
      continue;
    }
    go_back(comm, y.defined() ? F::sum(y) : Variable(), false);
    Variables sums;
    for (const Variable& result : ys)
      if (result.defined()) sums.push_back(F::sum(result));
    backward(sums);
    expect_gradient(x, xs[size_t(me)], "gradient");
  }
}

void check_unrecorded(Communicator& comm, const Communication& one) {
  const Array data = data_of(one, comm, comm.rank(), Dtype::kFloat32);
  const auto check = [&](const Variable& y) {
    EXPECT_FALSE(F::delegate_variable(comm).defined());
    EXPECT_FALSE(y.defined() && y.creator());
  };
  {
    const NoBackprop off;
    check(one.apply(Variable(data), comm));
  }
  // Types say nothing of the other rank's x, so both ends must know.
  if (one.name.find("with") != std::string::npos) return;
  const Variable y = one.apply(Variable(data, Volatile::on), comm);
  check(y);
}

}  // namespace catena::parallel_suite
