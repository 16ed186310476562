#include "search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/sorting.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/datasets/collate.h"
#include "catena/functions/activation/softmax.h"
#include "sentences.h"

namespace translation {
namespace {

namespace dtype = catena::dtype;
constexpr double kLengthPower = 0.6, kNever = -std::numeric_limits<double>::infinity();

int64_t limit_of(const Tokens& sentence) { return 2 * std::ssize(sentence) + 20; }

// A beginning that may go on, and the one that it continues.
struct Beginning {
  Tokens tokens;
  double score = kNever;  // logarithm of its probability
  int64_t from = 0;
};

// What is known of the translations of one sentence.
class Hypotheses {
 public:
  Hypotheses(int64_t beams, int64_t limit) : open_(static_cast<size_t>(beams)), limit_(limit) {
    open_[0].score = 0;  // all begin alike: one is enough
  }

  const std::vector<Beginning>& open() const { return open_; }
  bool is_done() const { return done_; }
  const Tokens& best() const { return best_.tokens; }

  struct Candidate {
    int64_t from;
    int32_t token;
    double score;
  };
  // Of the candidates, the likeliest first, there are enough that some are left when each beginning
  // has ended.
  void go_on(const std::vector<Candidate>& candidates) {
    std::vector<Beginning> next;
    for (size_t rank = 0; rank < candidates.size() && next.size() < open_.size(); ++rank) {
      const Candidate& one = candidates[rank];
      Beginning longer{open_[size_t(one.from)].tokens, one.score, one.from};
      if (one.token == Vocabulary::kEnd) {
        if (rank < open_.size()) end(longer);
        continue;
      }
      longer.tokens.push_back(one.token);
      next.push_back(std::move(longer));
    }
    next.resize(open_.size(), Beginning{});
    open_ = std::move(next);
    done_ = ended_ >= open_.size();
    if (!done_ && std::ssize(open_[0].tokens) >= limit_) {
      if (ended_ == 0) end(open_[0]);
      done_ = true;
    }
  }

 private:
  void end(Beginning translation) {
    const auto length = static_cast<double>(translation.tokens.size() + 1);
    translation.score /= std::pow(length, kLengthPower);
    if (ended_++ == 0 || translation.score > best_.score) best_ = std::move(translation);
  }

  std::vector<Beginning> open_;
  Beginning best_;
  size_t ended_ = 0;
  int64_t limit_;
  bool done_ = false;
};

// The states of all beginnings of several sentences, side by side: `beams` rows for each.
class Decoding {
 public:
  Decoding(const Translator& model, const std::vector<Tokens>& sentences, int64_t beams)
      : model_(model),
        beams_(beams),
        cache_(model.make_cache(std::ssize(sentences) * beams, capacity_for(sentences))) {
    std::vector<catena::datasets::Arrays> samples;
    for (const Tokens& sentence : sentences)
      samples.push_back({catena::array(sentence, catena::cpu())});
    const catena::datasets::Arrays padded = pad_with_nothing()(samples);
    const catena::Device device = model.tokens.W.device();
    const Array lengths = padded[1].to(device);
    for (const F::MemoryKeys& keys : model.keys_of(model.encode(padded[0].to(device), lengths)))
      keys_.emplace_back(repeated(keys.k.data()), repeated(keys.v.data()));
    lengths_ = repeated(lengths);
  }

  // The last token of each row and its score. The likeliest continuations of each sentence.
  std::vector<std::vector<Hypotheses::Candidate>> continuations(const Tokens& last,
                                                                const std::vector<double>& scores) {
    const catena::Device device = lengths_.device();
    const Array ids = catena::array(last, device).reshape({-1, 1});
    const Variable states = model_.states(ids, keys_, lengths_, cache_);
    const Array own = F::log_softmax(model_.scores(states(catena::Slice(), -1))).data();
    const Array all = own.astype(dtype::float32) +
                      catena::array(scores, device).astype(dtype::float32).reshape({-1, 1});
    const int64_t tokens = all.shape()[1], wanted = std::min(2 * beams_, beams_ * tokens);
    const auto [values, places] = catena::topk(all.reshape({-1, beams_ * tokens}), wanted);
    const auto best = values.to_cpu().to_vector<float>();
    const auto at = places.to_cpu().to_vector<int64_t>();
    std::vector<std::vector<Hypotheses::Candidate>> result(best.size() / size_t(wanted));
    for (size_t i = 0; i < best.size(); ++i)
      result[i / size_t(wanted)].push_back(
          {at[i] / tokens, static_cast<int32_t>(at[i] % tokens), best[i]});
    return result;
  }
  void reorder(const std::vector<int64_t>& rows) { cache_.reorder(rows); }

 private:
  static int64_t capacity_for(const std::vector<Tokens>& sentences) {
    int64_t capacity = 0;
    for (const Tokens& sentence : sentences) capacity = std::max(capacity, limit_of(sentence));
    return capacity;
  }
  Array repeated(const Array& a) const { return beams_ == 1 ? a : catena::repeat(a, beams_, 0); }

  const Translator& model_;
  int64_t beams_;
  F::KeyValueCache cache_;
  std::vector<F::MemoryKeys> keys_;
  Array lengths_;
};

std::vector<Tokens> translate_batch(const Translator& model, const std::vector<Tokens>& sentences,
                                    int64_t beams) {
  Decoding decoding(model, sentences, beams);
  std::vector<Hypotheses> all;
  for (const Tokens& sentence : sentences) all.emplace_back(beams, limit_of(sentence));
  Tokens last(all.size() * size_t(beams), Vocabulary::kBegin);
  while (!std::all_of(all.begin(), all.end(), [](const auto& one) { return one.is_done(); })) {
    std::vector<double> scores;
    for (const Hypotheses& one : all)
      for (const Beginning& beginning : one.open()) scores.push_back(beginning.score);
    const auto candidates = decoding.continuations(last, scores);
    std::vector<int64_t> rows;
    last.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].is_done()) all[i].go_on(candidates[i]);
      for (const Beginning& beginning : all[i].open()) {
        rows.push_back(static_cast<int64_t>(i) * beams + beginning.from);
        last.push_back(beginning.tokens.empty() ? Vocabulary::kEnd : beginning.tokens.back());
      }
    }
    if (beams > 1) decoding.reorder(rows);
  }
  std::vector<Tokens> found;
  for (const Hypotheses& one : all) found.push_back(one.best());
  return found;
}

}  // namespace

std::vector<Tokens> translate(Translator& model, const std::vector<Tokens>& sentences,
                              int64_t beams, int64_t batch) {
  const catena::TestScope test(model);
  const catena::NoBackprop no_graph;
  const catena::DeviceScope device(model.tokens.W.device());
  std::vector<size_t> order;
  for (size_t i = 0; i < sentences.size(); ++i)
    if (!sentences[i].empty()) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sentences[a].size() < sentences[b].size(); });
  std::vector<Tokens> result(sentences.size());
  for (size_t first = 0; first < order.size(); first += size_t(batch)) {
    const size_t end = std::min(order.size(), first + size_t(batch));
    std::vector<Tokens> part;
    for (size_t i = first; i < end; ++i) part.push_back(sentences[order[i]]);
    const std::vector<Tokens> found = translate_batch(model, part, beams);
    for (size_t i = first; i < end; ++i) result[order[i]] = found[i - first];
  }
  return result;
}

}  // namespace translation
