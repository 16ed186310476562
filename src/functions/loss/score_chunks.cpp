#include "functions/loss/score_chunks.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "catena/array/creation.h"
#include "catena/array/reduction.h"
#include "catena/kernels/loss.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

using Options = LinearCrossEntropyOptions;

// Tokens in a chunk.
constexpr int64_t kScoreBytes = int64_t{176} << 20, kLeastTokens = 1024, kTokenStep = 64;

// A row of scores in units of 16 bytes. Ranks that share the classes have them without gaps.
int64_t columns_of(const Matrices& m, const ClassesOverRanks* ranks) {
  const int64_t pack = ranks == nullptr ? 16 / m.h.itemsize() : 1;
  return (m.classes() + pack - 1) / pack * pack;
}

int64_t tokens_in_chunk(int64_t tokens, int64_t bytes_of_one, const Options& options) {
  if (options.chunk) return std::min(tokens, *options.chunk);
  const int64_t fitting = kScoreBytes / bytes_of_one / kTokenStep * kTokenStep,
                most = std::max(fitting, kLeastTokens);
  if (tokens <= most) return tokens;
  const int64_t chunks = (tokens + most - 1) / most, even = (tokens + chunks - 1) / chunks;
  return (even + kTokenStep - 1) / kTokenStep * kTokenStep;
}

// Two chunks of scores are in memory where ranks share the classes. The same on all of them, of
// which some may have more classes than others.
int64_t bytes_of_token(const Matrices& m, const ClassesOverRanks* ranks) {
  if (ranks == nullptr) return m.classes() * m.h.itemsize();
  return 2 * (ranks->classes + ranks->ranks - 1) / ranks->ranks * m.h.itemsize();
}

// `a` with rows of zeros behind it, `rows` in all; undefined if it is.
Array filled_up(const Array& a, int64_t rows) {
  if (!a.defined() || a.shape()[0] == rows) return a;
  Shape shape = a.shape();
  shape[0] = rows;
  const Array result = Array::uninitialized(shape, a.dtype(), a.device());
  result(Slice(0, a.shape()[0])).assign(a);
  result(Slice(a.shape()[0], rows)).fill(0.0);
  return result;
}

}  // namespace

ScoreChunks::ScoreChunks(const char* who, const Matrices& m, const Options& options,
                         const ClassesOverRanks* ranks)
    : m_(m),
      options_(options),
      step_(tokens_in_chunk(m.tokens(), bytes_of_token(m, ranks), options)),
      ahead_(ranks != nullptr && step_ < m.tokens() ? 1 : 0),
      scores_(Array::uninitialized({1 + ahead_, step_, columns_of(m, ranks)}, m.h.dtype(),
                                   m.h.device())) {
  const int64_t columns = m.tokens() < kLeastTokens ? m.classes() : scores_.shape()[2];
  W_ = filled_up(m.W, columns);
  b_ = filled_up(m.b, columns);
  if (ranks != nullptr) {
    shared_.emplace(who, m, options, *ranks);
    return;
  }
  if (options.label_smoothing == 0) return;
  const double s = options.label_smoothing, each = s / static_cast<double>(m.classes());
  weights_ = full({step_, 1}, 1 - s, {m.wide(), m.h.device()});
  spread_ = zeros({scores_.shape()[2]}, {m.wide(), m.h.device()});
  spread_(Slice(0, m.classes())).fill(each);
  total_ = catena::sum(spread_);
}

Gradients ScoreChunks::run(const Array& losses, const Array& factors, const Wanted& wanted) {
  Gradients g = room_for(wanted);
  const Array ones = wanted.b ? full({step_, 1}, 1.0, {m_.h.dtype(), m_.h.device()}) : Array();
  std::deque<Chunk> begun;
  int64_t next = 0;
  const auto begin_one = [&] {
    if (next < m_.tokens()) begun.push_back(scores_from(next));
    next += step_;
  };
  for (int64_t i = 0; i < ahead_; ++i) begin_one();
  for (int64_t begin = 0; begin < m_.tokens(); begin += step_) {
    begin_one();
    const Chunk chunk = begun.front();
    begun.pop_front();
    const Array &z = chunk.z, h = m_.h(chunk.part);
    replace(chunk, losses, factors, !wanted.any());
    if (wanted.h) {
      const Array part = g.h(chunk.part);
      matmul_into(z, W_, part);
      if (shared_) shared_->sum(part);
    }
    if (wanted.W) matmul_into(z.T(), h, g.W, begin > 0);
    if (wanted.b) matmul_into(z.T(), ones(Slice(0, chunk.count)), g.b, begin > 0);
  }
  if (shared_) shared_->finish(losses);
  const Slice classes(0, m_.classes());
  if (wanted.W) g.W = g.W(classes);
  if (wanted.b) g.b = g.b(classes);
  return g;
}

Gradients ScoreChunks::room_for(const Wanted& wanted) const {
  Gradients g;
  const Device device = m_.h.device();
  const Dtype of_h = shared_ ? m_.wide() : m_.h.dtype();
  if (wanted.h) g.h = Array::uninitialized(m_.h.shape(), of_h, device);
  if (wanted.W) g.W = Array::uninitialized(W_.shape(), m_.wide(), device);
  if (wanted.b) g.b = Array::uninitialized({W_.shape()[0], 1}, m_.wide(), device);
  if (m_.tokens() > 0) return g;
  for (const Array& a : {g.W, g.b})
    if (a.defined()) a.fill(0.0);
  return g;
}

ScoreChunks::Chunk ScoreChunks::scores_from(int64_t begin) const {
  const int64_t count = std::min(step_, m_.tokens() - begin);
  const Slice part(begin, begin + count);
  const Array rows = scores_(begin / step_ % (1 + ahead_), Slice(0, count));
  const int64_t classes = m_.classes(), columns = rows.shape()[1];
  const Array z = rows(Slice(), Slice(0, W_.shape()[0]));
  matmul_into(m_.h(part), W_.T(), z, false, b_.defined() ? &b_ : nullptr);
  if (classes < columns)
    rows(Slice(), Slice(classes, columns)).fill(-std::numeric_limits<double>::infinity());
  return {part, count, rows, z, shared_ ? shared_->send(z, part) : Statistics()};
}

void ScoreChunks::replace(const Chunk& chunk, const Array& losses, const Array& factors,
                          bool losses_only) {
  const auto& [part, count, rows, z, statistics] = chunk;
  const Array each = factors.defined() ? factors(part) : Array();
  if (shared_) return shared_->receive(z, part, statistics, each, losses_only);
  const Array x = rows.reshape({count, rows.shape()[1], 1}), t = m_.t(part), to = losses(part);
  CrossEntropyInPlaceCall call{x, t, options_.ignore_label, to, nullptr, nullptr, false, false};
  const Array weights = weights_.defined() ? weights_(Slice(0, count)) : Array();
  if (weights.defined()) {
    call.weights = &weights;
    call.spread = &spread_;
    call.total = &total_;
  }
  if (each.defined()) call.factors = &each;
  call.z_loss = options_.z_loss;
  call.losses_only = losses_only;
  call.labels = m_.classes();
  kernels::softmax_cross_entropy_in_place(x.device(), call);
}

}  // namespace catena::functions
