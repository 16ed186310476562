#include "sampling.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <sstream>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"

namespace gpt2 {
namespace {

namespace dtype = catena::dtype;
using Tokens = std::vector<int64_t>;
constexpr int64_t kBytes = 256;

// Scores of what follows a text that grows.
class Scores {
 public:
  Scores(const Gpt2& model, bool with_cache) : model_(model) {
    if (with_cache) cache_ = model.make_cache(1);
  }

  std::vector<double> behind(const Tokens& tokens) {
    const auto length = static_cast<int64_t>(tokens.size());
    const bool fits = length <= model_.positions();
    const Variable last = cache_ && fits ? model_.states(ids(tokens, cache_->lengths()[0]), *cache_)
                                         : model_.states(ids(tokens, length - model_.positions()));
    const Array scores = model_.scores(last(catena::Slice(), -1)).data();
    return scores.to_cpu().astype(dtype::float64).to_vector<double>();
  }

 private:
  // From one on, as a batch of one text.
  static Array ids(const Tokens& tokens, int64_t from) {
    const Tokens rest(tokens.begin() + std::max<int64_t>(0, from), tokens.end());
    return catena::array(rest).reshape({1, -1});
  }

  const Gpt2& model_;
  std::optional<F::KeyValueCache> cache_;
};

int64_t choose(const std::vector<double>& scores, const Choice& choice) {
  Tokens order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const int64_t all = static_cast<int64_t>(order.size());
  const int64_t wanted = choice.temperature == 0 ? 1 : choice.top_k == 0 ? all : choice.top_k;
  const int64_t count = std::min(wanted, all);
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    return scores[size_t(a)] > scores[size_t(b)] ||
           (scores[size_t(a)] == scores[size_t(b)] && a < b);
  });
  if (count == 1) return order[0];
  std::vector<double> sums;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double behind = scores[size_t(order[size_t(i)])] - scores[size_t(order[0])];
    sums.push_back(sum += std::exp(behind / choice.temperature));
  }
  const double drawn =
      sum * catena::random::uniform({}, 0, 1, {dtype::float64, catena::cpu()}).item<double>();
  const auto found = std::upper_bound(sums.begin(), sums.end() - 1, drawn);
  return order[size_t(found - sums.begin())];
}

}  // namespace

Tokens sample(Gpt2& model, Tokens prompt, int64_t count, const Choice& choice) {
  const catena::TestScope test(model);
  const catena::NoBackprop no_graph;
  const catena::DeviceScope device(model.tokens.W.device());
  const size_t given = prompt.size();
  Scores scores(model, choice.cache);
  for (int64_t i = 0; i < count; ++i) prompt.push_back(choose(scores.behind(prompt), choice));
  return Tokens(prompt.begin() + static_cast<std::ptrdiff_t>(given), prompt.end());
}

Tokens tokens_of(const std::string& prompt, int64_t vocabulary) {
  Tokens tokens;
  if (vocabulary == kBytes) {
    for (const char byte : prompt) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens.empty() ? Tokens{'\n'} : tokens;
  }
  std::istringstream words(prompt);
  for (std::string word; words >> word;) {
    int64_t token = -1;
    const char* const end = word.data() + word.size();
    const bool whole = std::from_chars(word.data(), end, token).ptr == end;
    CATENA_CHECK(ValueError, whole && token >= 0 && token < vocabulary, "--prompt: '", word,
                 "' is not one of the ", vocabulary, " tokens; give numbers below that");
    tokens.push_back(token);
  }
  return tokens.empty() ? Tokens{0} : tokens;
}

std::string text_of(const Tokens& tokens, int64_t vocabulary) {
  std::string text;
  for (const int64_t token : tokens)
    text += vocabulary == kBytes ? std::string(1, static_cast<char>(token))
                                 : (text.empty() ? "" : " ") + std::to_string(token);
  return text;
}

}  // namespace gpt2
