#include "comm/suite.h"

#include <gtest/gtest.h>

#include "catena/array/indexing.h"
#include "catena/comm/factory.h"
#include "catena/comm/mesh.h"
#include "catena/comm/transport.h"

namespace catena::comm_suite {

using comm::Reduce;
using comm::Reduction;
using comm::weighted;
using Doubles = std::vector<double>;

namespace {

constexpr Dtype kDtypes[] = {Dtype::kBool,   Dtype::kInt8,    Dtype::kInt16,    Dtype::kInt32,
                             Dtype::kInt64,  Dtype::kUInt8,   Dtype::kUInt16,   Dtype::kUInt32,
                             Dtype::kUInt64, Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32,
                             Dtype::kFloat64};
// Around the borders of the implementations' small and chunked paths.
const int64_t kSizes[] = {0, 1, 7, 1000, 40000};

// The n numbers f(from), f(from + 1) and so on, of inputs that repeat themselves after five numbers
// a rank.
template <class F>
Doubles numbers(int size, int64_t from, int64_t n, const F& f) {
  const int64_t period = 5 * size;
  Doubles once, result;
  for (int64_t i = 0; i < period; ++i) once.push_back(f(from + i));
  result.reserve(size_t(n + period));
  while (std::ssize(result) < n) result.insert(result.end(), once.begin(), once.end());
  result.resize(size_t(n));
  return result;
}

template <class F>
Array fill(Communicator& comm, const Shape& shape, Dtype dtype, const F& f) {
  const Doubles host = numbers(comm.size(), 0, element_count(shape), f);
  return array(host, shape, cpu(0)).astype(dtype).to(comm.device());
}

// What reading back gives: bool is 0 or 1.
double seen(Dtype dtype, double v) { return dtype == Dtype::kBool ? double(v != 0) : v; }

double combine(Reduction kind, double a, double b) {
  switch (kind) {
    case Reduction::kMin: return std::min(a, b);
    case Reduction::kMax: return std::max(a, b);
    case Reduction::kProduct: return a * b;
    default: return a + b;
  }
}

// Inputs of which every reduction is exact in every dtype.
double input_of(Reduction kind, int size, int rank, int64_t i) {
  if (kind == Reduction::kProduct) return i % size == rank ? 2 : 1;
  if (kind == Reduction::kMean) return value(rank, i) * size;
  return value(rank, i);
}

double weight_of(int rank) { return rank % 3 == 0 ? 0.5 : rank % 3 == 1 ? 0.25 : 0; }

Doubles expected(Reduction kind, Dtype dtype, int size, int64_t from, int64_t n) {
  return numbers(size, from, n, [&](int64_t i) {
    double sum = 0;
    for (int r = 0; r < size; ++r) {
      double x = seen(dtype, input_of(kind, size, r, i));
      if (kind == Reduction::kWeighted) x *= weight_of(r);
      sum = r == 0 ? x : combine(kind, sum, x);
    }
    return seen(dtype, kind == Reduction::kMean ? sum / size : sum);
  });
}

std::vector<Reduction> reductions_of(Dtype dtype) {
  if (!is_float(dtype))
    return {Reduction::kSum, Reduction::kMin, Reduction::kMax, Reduction::kProduct};
  return {Reduction::kSum,     Reduction::kMin,  Reduction::kMax,
          Reduction::kProduct, Reduction::kMean, Reduction::kWeighted};
}

Reduce reduce_of(Reduction kind, int rank) {
  return kind == Reduction::kWeighted ? weighted(weight_of(rank)) : Reduce(kind);
}

template <class F>
void for_all(F&& f) {
  for (Dtype dtype : kDtypes)
    for (Reduction kind : reductions_of(dtype))
      for (int64_t n : kSizes) {
        if (n > 1000 && dtype != Dtype::kFloat32 && dtype != Dtype::kFloat16) continue;
        SCOPED_TRACE(message(kind, " ", dtype, " of ", n));
        f(dtype, kind, n);
      }
}

void all_reduce(Communicator& comm) {
  for_all([&](Dtype dtype, Reduction kind, int64_t n) {
    const auto f = [&](int64_t i) { return input_of(kind, comm.size(), comm.rank(), i); };
    const Array x = fill(comm, {n}, dtype, f);
    const Reduce op = reduce_of(kind, comm.rank());
    const Doubles want = expected(kind, dtype, comm.size(), 0, n);
    const Doubles before = to_doubles(x);
    EXPECT_EQ(to_doubles(comm.all_reduce(x, op)), want);
    EXPECT_EQ(to_doubles(x), before);
    const Array in_place = comm.all_reduce(x, op, x);
    EXPECT_TRUE(in_place.same_body(x));
    EXPECT_EQ(to_doubles(x), want);
  });
}

void reduce(Communicator& comm) {
  for_all([&](Dtype dtype, Reduction kind, int64_t n) {
    const auto f = [&](int64_t i) { return input_of(kind, comm.size(), comm.rank(), i); };
    const Array x = fill(comm, {n}, dtype, f);
    const int root = comm.size() - 1;
    const Array got = comm.reduce(x, reduce_of(kind, comm.rank()), root);
    EXPECT_EQ(got.defined(), comm.rank() == root);
    if (got.defined()) {
      EXPECT_EQ(to_doubles(got), expected(kind, dtype, comm.size(), 0, n));
    }
  });
}

void reduce_scatter(Communicator& comm) {
  for_all([&](Dtype dtype, Reduction kind, int64_t n) {
    const auto f = [&](int64_t i) { return input_of(kind, comm.size(), comm.rank(), i); };
    const Array x = fill(comm, {n * comm.size()}, dtype, f);
    const Reduce op = reduce_of(kind, comm.rank());
    const Doubles want = expected(kind, dtype, comm.size(), comm.rank() * n, n);
    EXPECT_EQ(to_doubles(comm.reduce_scatter(x, op)), want);
    const Array own = x(Slice(comm.rank() * n, (comm.rank() + 1) * n));
    comm.reduce_scatter(x, op, own);
    EXPECT_EQ(to_doubles(own), want);
  });
}

Doubles gathered(Dtype dtype, int size, int64_t n) {
  Doubles want;
  for (int r = 0; r < size; ++r)
    for (int64_t i = 0; i < n; ++i) want.push_back(seen(dtype, value(r, i)));
  return want;
}

void gathers(Communicator& comm) {
  for (Dtype dtype : kDtypes)
    for (int64_t n : {int64_t(0), int64_t(1), int64_t(6), int64_t(5000)}) {
      SCOPED_TRACE(message(dtype, " of ", n));
      const Array x = make(comm, {n}, dtype, comm.rank());
      const Doubles want = gathered(dtype, comm.size(), n);
      EXPECT_EQ(to_doubles(comm.all_gather(x)), want);
      const Array all = make(comm, {n * comm.size()}, dtype, 0);
      const Array own = all(Slice(comm.rank() * n, (comm.rank() + 1) * n));
      own.assign(x);
      comm.all_gather(own, all);
      EXPECT_EQ(to_doubles(all), want);
      for (int root : {0, comm.size() - 1}) {
        const Array got = comm.gather(x, root);
        EXPECT_EQ(got.defined(), comm.rank() == root);
        if (got.defined()) {
          EXPECT_EQ(to_doubles(got), want);
        }
      }
    }
}

// Of elements smaller than a word, that begin at another place of it on each rank.
void gathers_of_views(Communicator& comm) {
  for (Dtype dtype : {Dtype::kUInt8, Dtype::kFloat16}) {
    constexpr int64_t kCount = 8;
    const int64_t size = comm.size(), offset = comm.rank() % 4;
    const Array x = make(comm, {kCount}, dtype, comm.rank());
    const Array own = make(comm, {kCount + offset}, dtype, 0)(Slice(offset, kCount + offset));
    own.assign(x);
    const Array room = make(comm, {kCount * size + offset}, dtype, 0);
    const Array all = room(Slice(offset, kCount * size + offset));
    const Doubles want = gathered(dtype, comm.size(), kCount);
    EXPECT_EQ(to_doubles(comm.all_gather(own)), want) << dtype;
    comm.all_gather(x, all);
    EXPECT_EQ(to_doubles(all), want) << dtype;
  }
}

void broadcast_and_scatter(Communicator& comm) {
  for (Dtype dtype : kDtypes)
    for (int64_t n : {int64_t(0), int64_t(1), int64_t(6), int64_t(5000)})
      for (int root : {0, comm.size() - 1}) {
        SCOPED_TRACE(message(dtype, " of ", n, " root ", root));
        const Array x = make(comm, {n}, dtype, comm.rank());
        const Doubles want = to_doubles(make(comm, {n}, dtype, root));
        const Array out = make(comm, {n}, dtype, 99);
        comm.broadcast(x, root, out);
        EXPECT_EQ(to_doubles(out), want);
        EXPECT_EQ(to_doubles(x), to_doubles(make(comm, {n}, dtype, comm.rank())));
        comm.broadcast(x, root);
        EXPECT_EQ(to_doubles(x), want);

        const Array whole = comm.rank() == root ? make(comm, {n * comm.size()}, dtype, 5) : Array();
        comm.scatter(whole, out, root);
        const Array reference = make(comm, {n * comm.size()}, dtype, 5);
        EXPECT_EQ(to_doubles(out),
                  to_doubles(reference(Slice(comm.rank() * n, (comm.rank() + 1) * n))));
      }
}

void all_to_all(Communicator& comm) {
  for (Dtype dtype : kDtypes)
    for (int64_t n : {int64_t(0), int64_t(1), int64_t(3), int64_t(4000)}) {
      const int64_t total = n * comm.size();
      const Array x = make(comm, {total}, dtype, comm.rank());
      Doubles want;
      for (int r = 0; r < comm.size(); ++r)
        for (int64_t i = 0; i < n; ++i) want.push_back(seen(dtype, value(r, comm.rank() * n + i)));
      EXPECT_EQ(to_doubles(comm.all_to_all(x)), want) << name(dtype) << " of " << n;
    }
}

void strided(Communicator& comm) {
  const int64_t rows = 6, columns = 4 * comm.size();
  const Array base = make(comm, {columns, rows}, Dtype::kFloat32, comm.rank());
  const Array x = base.T();
  ASSERT_FALSE(x.is_contiguous());
  Array want = make(comm, {columns, rows}, Dtype::kFloat32, 0).T().copy();
  Doubles sum(size_t(want.size()));
  for (int r = 0; r < comm.size(); ++r) {
    const Doubles one = to_doubles(make(comm, {columns, rows}, Dtype::kFloat32, r).T().copy());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  EXPECT_EQ(to_doubles(comm.all_reduce(x)), sum);
  // In place through a transposed view.
  const Array target = base.copy().T();
  comm.all_reduce(target, Reduction::kSum, target);
  EXPECT_EQ(to_doubles(target.copy()), sum);
  const Array sent = base.copy().T();
  comm.broadcast(sent, comm.size() - 1);
  EXPECT_EQ(to_doubles(sent.copy()),
            to_doubles(make(comm, {columns, rows}, Dtype::kFloat32, comm.size() - 1).T().copy()));
  const Array gathered = comm.all_gather(x);
  EXPECT_EQ(gathered.shape(), (Shape{rows * comm.size(), columns}));
  const Array own = gathered(Slice(comm.rank() * rows, (comm.rank() + 1) * rows));
  EXPECT_EQ(to_doubles(own.copy()), to_doubles(x.copy()));
}

void shapes(Communicator& comm) {
  const Array scalar = make(comm, {}, Dtype::kFloat64, comm.rank());
  EXPECT_EQ(comm.all_reduce(scalar).ndim(), 0);
  EXPECT_EQ(comm.all_gather(scalar).shape(), (Shape{comm.size()}));
  const Array x = make(comm, {2 * comm.size(), 3}, Dtype::kFloat32, comm.rank());
  EXPECT_EQ(comm.reduce_scatter(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(comm.all_gather(x).shape(), (Shape{2 * comm.size() * comm.size(), 3}));
  EXPECT_EQ(comm.all_to_all(x).shape(), x.shape());
  // Arrays of one count and other shapes are reduced.
  const Shape own = comm.rank() == 1 ? Shape{3, 2} : Shape{2, 3};
  const Array y = comm.all_reduce(ones(own, {Dtype::kFloat32, comm.device()}));
  EXPECT_EQ(y.shape(), own);
  EXPECT_EQ(to_doubles(y.reshape({6})), Doubles(6, comm.size()));
}

void ring(Communicator& comm) {
  const int next = (comm.rank() + 1) % comm.size(),
            previous = (comm.rank() + comm.size() - 1) % comm.size();
  for (Dtype dtype : kDtypes)
    for (int64_t n : {int64_t(0), int64_t(3), int64_t(30000)}) {
      const Array x = make(comm, {n}, dtype, comm.rank());
      const Array y = make(comm, {n}, dtype, 77);
      comm.group([&] {
        comm.send(x, next);
        comm.recv(y, previous);
      });
      EXPECT_EQ(to_doubles(y), to_doubles(make(comm, {n}, dtype, previous)))
          << name(dtype) << " of " << n;
    }
}

void chain(Communicator& comm) {
  // Without groups: rank r receives, adds one, sends on.
  const Array x = make(comm, {4}, Dtype::kFloat32, 0);
  for (int round = 0; round < 3; ++round) {
    if (comm.rank() > 0) comm.recv(x, comm.rank() - 1);
    if (comm.rank() + 1 < comm.size()) comm.send(x, comm.rank() + 1);
  }
  EXPECT_EQ(to_doubles(x), to_doubles(make(comm, {4}, Dtype::kFloat32, 0)));
}

void group_of_collectives(Communicator& comm) {
  const Array a = make(comm, {10}, Dtype::kFloat32, comm.rank());
  const Array b =
      make(comm, {3, 2}, Dtype::kInt32, comm.rank()).T();  // strided: finished at the end
  const Array c = make(comm, {5}, Dtype::kFloat64, comm.rank());
  Array sum, all;
  comm.group([&] {
    sum = comm.all_reduce(a);
    comm.broadcast(b, 0);
    all = comm.all_gather(c);
  });
  EXPECT_EQ(to_doubles(sum), expected(Reduction::kSum, Dtype::kFloat32, comm.size(), 0, 10));
  EXPECT_EQ(to_doubles(b.copy()), to_doubles(make(comm, {3, 2}, Dtype::kInt32, 0).T().copy()));
  EXPECT_EQ(to_doubles(all), gathered(Dtype::kFloat64, comm.size(), 5));
  // An empty group, and one that throws, leave no trace.
  comm.group([] {});
  EXPECT_THROW(comm.group([&] {
    comm.all_reduce(a);
    throw std::runtime_error("stop");
  }),
               std::runtime_error);
}

void asynchronous(Communicator& comm) {
  const Array x = make(comm, {4 * comm.size()}, Dtype::kFloat32, comm.rank());
  const Array y = x.copy();
  const Event done = comm.all_reduce_async(x, Reduction::kSum, comm.side_stream());
  current_stream(comm.device()).wait(done);
  EXPECT_EQ(to_doubles(x),
            expected(Reduction::kSum, Dtype::kFloat32, comm.size(), 0, 4 * comm.size()));
  const Array piece = y(Slice(4 * comm.rank(), 4 * comm.rank() + 4));
  current_stream(comm.device())
      .wait(comm.reduce_scatter_async(y, Reduction::kSum, piece, comm.side_stream()));
  current_stream(comm.device()).wait(comm.all_gather_async(piece, y, comm.side_stream()));
  EXPECT_EQ(to_doubles(y), to_doubles(x));
}

// Two axes, of which one has what the ranks leave.
void mesh(Communicator& comm) {
  const int rows = comm.size() % 2 == 0 ? 2 : 1, columns = comm.size() / rows;
  Mesh mesh(comm, {{"row", rows}, {"column", -1}});
  const int row = comm.rank() / columns, column = comm.rank() % columns;
  EXPECT_EQ(mesh.coordinate("row"), row);
  EXPECT_EQ(mesh.size("column"), columns);
  const auto sum_of = [&](Communicator& part) {
    const Array x = full({3}, comm.rank(), {Dtype::kInt64, comm.device()});
    return part.all_reduce(x).to_cpu().to_vector<int64_t>()[2];
  };
  EXPECT_EQ(sum_of(mesh["row"]), rows * column + columns * rows * (rows - 1) / 2);
  EXPECT_EQ(sum_of(mesh["column"]), columns * columns * row + columns * (columns - 1) / 2);
  EXPECT_EQ(sum_of(mesh.over({"column", "row"})), comm.size() * (comm.size() - 1) / 2);
  EXPECT_EQ(sum_of(mesh.over({})), comm.rank());
  EXPECT_EQ(mesh["row"].name(), rows == 1 ? "threads" : comm.name());
  EXPECT_EQ(mesh["column"].axis().text(), "column");
}

void split(Communicator& comm) {
  // Odd and even ranks, each in reverse order.
  const int color = comm.rank() % 2;
  const CommunicatorPtr half = comm.split(color, -comm.rank());
  ASSERT_TRUE(half);
  const int members = (comm.size() + 1 - color) / 2;
  EXPECT_EQ(half->size(), members);
  EXPECT_EQ(half->rank(), members - 1 - comm.rank() / 2);
  double want = 0;
  for (int r = color; r < comm.size(); r += 2) want += value(r, 0);
  EXPECT_EQ(to_doubles(half->all_reduce(make(comm, {1}, Dtype::kFloat32, comm.rank()))),
            Doubles{want});
  EXPECT_EQ(half->all_gather_object(comm.rank()).front(), comm.rank() + 2 * half->rank());
  // Only the first rank takes part.
  const CommunicatorPtr alone = comm.split(comm.rank() == 0 ? 5 : -1);
  EXPECT_EQ(bool(alone), comm.rank() == 0);
  if (alone) {
    EXPECT_EQ(alone->size(), 1);
  }
  // Parent and child may be used in turns.
  EXPECT_EQ(to_doubles(comm.all_reduce(make(comm, {1}, Dtype::kInt64, comm.rank()))),
            expected(Reduction::kSum, Dtype::kInt64, comm.size(), 0, 1));
}

void topology(Communicator& comm) {
  EXPECT_GE(comm.rank(), 0);
  EXPECT_LT(comm.rank(), comm.size());
  const auto places =
      comm.all_gather_object(std::vector<int>{comm.rank(), comm.inter_rank(), comm.intra_rank()});
  for (int r = 0; r < comm.size(); ++r) EXPECT_EQ(places[size_t(r)][0], r);
  EXPECT_EQ(comm.topology().hosts.size(), size_t(comm.size()));
}

void argument_errors(Communicator& comm) {
  const Array x = make(comm, {3}, Dtype::kFloat32, comm.rank());
  EXPECT_THROW(comm.all_reduce(x, Reduction::kSum, make(comm, {4}, Dtype::kFloat32, 0)),
               ShapeError);
  EXPECT_THROW(comm.all_reduce(x, Reduction::kSum, make(comm, {3}, Dtype::kFloat64, 0)),
               DtypeError);
  EXPECT_THROW(comm.all_reduce(make(comm, {3}, Dtype::kInt32, 0), Reduction::kMean), DtypeError);
  EXPECT_THROW(comm.all_reduce(make(comm, {3}, Dtype::kInt32, 0), comm::weighted(1)), DtypeError);
  EXPECT_THROW(comm.all_reduce(Array()), ValueError);
  const Array no_value;
  EXPECT_THROW(comm.all_reduce(x, {}, no_value), ValueError);
  EXPECT_THROW(comm.all_gather(x, no_value), ValueError);
  EXPECT_THROW(comm.broadcast(x, 0, no_value), ValueError);
  EXPECT_THROW(comm.broadcast(x, comm.size()), ValueError);
  EXPECT_THROW(comm.broadcast(x, -1), ValueError);
  EXPECT_THROW(comm.send(x, comm.size()), ValueError);
  EXPECT_THROW(Reduce(Reduction::kWeighted), ValueError);
  const Array pair = make(comm, {6}, Dtype::kFloat32, 0);
  EXPECT_THROW(comm.all_reduce(pair(Slice(0, 3)), Reduction::kSum, pair(Slice(1, 4))), ValueError);
  if (comm.size() > 1) {
    EXPECT_THROW(comm.reduce_scatter(make(comm, {2 * comm.size() + 1}, Dtype::kFloat32, 0)),
                 ShapeError);
  }
  EXPECT_THROW(comm.reduce_scatter(make(comm, {}, Dtype::kFloat32, 0)), ShapeError);
  const Device elsewhere = comm.device() == cpu(63) ? cpu(62) : cpu(63);
  if (comm.device().is_cpu()) {
    EXPECT_THROW(comm.all_reduce(x.to(elsewhere)), DeviceError);
  }
  comm.barrier();  // none of them moved anything or broke the communicator
}

void objects(Communicator& comm) {
  for (int root : {0, comm.size() - 1}) {
    const std::string text = comm.rank() == root ? "hello" : "ignored";
    EXPECT_EQ(comm.broadcast_object(text, root), "hello");
    EXPECT_EQ(comm.broadcast_object(std::string(), root), "");
    const std::string large(300000, 'x');
    EXPECT_EQ(comm.broadcast_object(comm.rank() == root ? large : std::string(), root), large);
    const auto got = comm.gather_object(std::string(size_t(comm.rank()), 'a'), root);
    EXPECT_EQ(got.size(), comm.rank() == root ? size_t(comm.size()) : 0u);
    for (size_t r = 0; r < got.size(); ++r) EXPECT_EQ(got[r], std::string(r, 'a'));
    std::vector<std::vector<float>> pieces;
    for (int r = 0; r < comm.size(); ++r) pieces.push_back(std::vector<float>(size_t(r), float(r)));
    if (comm.rank() != root) pieces.clear();
    EXPECT_EQ(comm.scatter_object(pieces, root),
              std::vector<float>(size_t(comm.rank()), float(comm.rank())));
  }
  const auto ranks = comm.all_gather_object(comm.rank() * 10);
  for (int r = 0; r < comm.size(); ++r) EXPECT_EQ(ranks[size_t(r)], r * 10);
  const auto padded = comm.all_gather_object(std::string(size_t(comm.rank()), 'p'));
  for (int r = 0; r < comm.size(); ++r) EXPECT_EQ(padded[size_t(r)], std::string(size_t(r), 'p'));
  // Uneven sizes beyond the padded form.
  const auto uneven =
      comm.all_gather_object(std::string(comm.rank() == 0 ? 200000 : size_t(comm.rank()), 'u'));
  for (int r = 1; r < comm.size(); ++r) EXPECT_EQ(uneven[size_t(r)].size(), size_t(r));
  EXPECT_EQ(uneven[0].size(), 200000u);
  EXPECT_EQ(comm.all_reduce_value(comm.rank() + 1), comm.size() * (comm.size() + 1) / 2);
  EXPECT_EQ(comm.all_reduce_value(1.5, Reduction::kMean), 1.5);
  EXPECT_EQ(comm.all_reduce_value(comm.rank() == 0, Reduction::kMax), true);
}

void named_arrays(Communicator& comm) {
  NamedArrays sent;
  if (comm.rank() == 0) {
    sent.emplace_back("w", make(comm, {2, 3}, Dtype::kFloat32, 1));
    sent.emplace_back("empty", make(comm, {0, 4}, Dtype::kBFloat16, 1));
    sent.emplace_back("t", make(comm, {2, 3}, Dtype::kInt64, 2).T());
  }
  const NamedArrays got = comm.broadcast_object(sent, 0);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].first, "w");
  EXPECT_EQ(to_doubles(got[0].second), to_doubles(make(comm, {2, 3}, Dtype::kFloat32, 1)));
  EXPECT_EQ(got[1].second.shape(), (Shape{0, 4}));
  EXPECT_EQ(got[1].second.dtype(), Dtype::kBFloat16);
  EXPECT_EQ(got[2].second.shape(), (Shape{3, 2}));
  EXPECT_EQ(to_doubles(got[2].second), to_doubles(make(comm, {2, 3}, Dtype::kInt64, 2).T().copy()));
  EXPECT_THROW(comm::unpack_named_arrays("short"), CommError);
  std::string bytes = comm::pack_named_arrays({{"w", zeros({2}, dtype::float32)}});
  bytes[bytes.find("float32") + 7 + 8] = 3;  // the extent, behind the number of axes
  EXPECT_THROW(comm::unpack_named_arrays(bytes), CommError);
}

void object_messages(Communicator& comm) {
  if (comm.rank() > 0) {
    EXPECT_EQ(comm.recv_object<std::string>(comm.rank() - 1),
              "from " + std::to_string(comm.rank() - 1));
  }
  if (comm.rank() + 1 < comm.size())
    comm.send_object("from " + std::to_string(comm.rank()), comm.rank() + 1);
  if (comm.size() > 1 && comm.rank() == 0) comm.send_object(1, 1);
  if (comm.rank() == 1) {
    EXPECT_THROW(comm.recv_object<float>(0), CommError) << "an int";
  }
  comm.barrier();
}

}  // namespace

Array make(Communicator& comm, const Shape& shape, Dtype dtype, int rank) {
  return fill(comm, shape, dtype, [rank](int64_t i) { return value(rank, i); });
}

std::vector<double> to_doubles(const Array& a) { return a.to_vector<double>(); }

std::vector<Case> collective_cases() {
  std::vector<Case> cases{{"all_reduce", all_reduce},
                          {"reduce", reduce},
                          {"reduce_scatter", reduce_scatter},
                          {"gathers", gathers},
                          {"gathers_of_views", gathers_of_views},
                          {"broadcast_and_scatter", broadcast_and_scatter},
                          {"all_to_all", all_to_all},
                          {"strided", strided},
                          {"shapes", shapes},
                          {"ring", ring},
                          {"chain", chain},
                          {"group_of_collectives", group_of_collectives},
                          {"asynchronous", asynchronous},
                          {"split", split},
                          {"mesh", mesh},
                          {"topology", topology},
                          {"argument_errors", argument_errors}};
  for (const Case& one : message_cases()) cases.push_back(one);
  return cases;
}

std::vector<Case> object_cases() {
  return {
      {"objects", objects}, {"named_arrays", named_arrays}, {"object_messages", object_messages}};
}

std::vector<std::string> texts_of(int ranks, const std::function<void(Communicator&)>& body,
                                  double timeout) {
  std::vector<std::string> texts(static_cast<size_t>(ranks));
  const auto noting = [&](Communicator& comm) {
    try {
      body(comm);
    } catch (const CommError& error) {
      texts[size_t(comm.rank())] = error.what();
      throw;
    }
  };
  try {
    comm::run_threads(ranks, noting, {.timeout = timeout});
  } catch (const std::exception&) {
  }
  return texts;
}

}  // namespace catena::comm_suite
