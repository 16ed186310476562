#include "bleu.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "catena/core/error.h"

namespace translation {
namespace {

constexpr int64_t kLongest = 4;

std::map<Tokens, int64_t> runs_of(const Tokens& tokens, int64_t length) {
  std::map<Tokens, int64_t> runs;
  for (auto first = tokens.begin(); tokens.end() - first >= length; ++first)
    ++runs[Tokens(first, first + length)];
  return runs;
}

int64_t common_runs(const Tokens& translation, const Tokens& reference, int64_t length) {
  const auto theirs = runs_of(reference, length);
  int64_t common = 0;
  for (const auto& [run, count] : runs_of(translation, length)) {
    const auto found = theirs.find(run);
    const bool is_known = std::find(run.begin(), run.end(), Vocabulary::kUnknown) == run.end();
    if (is_known && found != theirs.end()) common += std::min(count, found->second);
  }
  return common;
}

}  // namespace

double bleu(const std::vector<Tokens>& translations, const std::vector<Tokens>& references) {
  CATENA_CHECK(ValueError, translations.size() == references.size(), "bleu: ", translations.size(),
               " translations, but ", references.size(), " references");
  int64_t ours = 0, theirs = 0;
  for (const Tokens& one : translations) ours += std::ssize(one);
  for (const Tokens& one : references) theirs += std::ssize(one);
  double logarithms = 0;
  for (int64_t length = 1; length <= kLongest; ++length) {
    int64_t common = 0, all = 0;
    for (size_t i = 0; i < translations.size(); ++i) {
      common += common_runs(translations[i], references[i], length);
      all += std::max<int64_t>(0, std::ssize(translations[i]) - length + 1);
    }
    if (common == 0) return 0;
    logarithms += std::log(static_cast<double>(common) / static_cast<double>(all)) / kLongest;
  }
  const double brevity = 1 - static_cast<double>(theirs) / static_cast<double>(ours);
  return 100 * std::exp(logarithms + std::min(0., brevity));
}

}  // namespace translation
