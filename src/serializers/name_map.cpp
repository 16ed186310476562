#include "catena/serializers/name_map.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include "array/io/file_io.h"

namespace catena::serializers {
namespace {

constexpr size_t kLongestMatched = 2000;  // std::regex takes stack for each character

// Last parts of names, PyTorch's and catena's; of two in a row with one name of PyTorch the model
// says which.
struct PartPair {
  const char *torch, *catena;
};
constexpr PartPair kParts[] = {{"weight", "W"},
                               {"weight", "gamma"},
                               {"bias", "b"},
                               {"bias", "beta"},
                               {"in_proj_weight", "in_proj_W"},
                               {"in_proj_bias", "in_proj_b"},
                               {"running_mean", "avg_mean"},
                               {"running_var", "avg_var"},
                               {"num_batches_tracked", "N"}};

std::string with(const std::string& name, char from, char to) {
  std::string changed = name;
  std::replace(changed.begin(), changed.end(), from, to);
  return changed;
}

std::string from_pytorch_name(const std::string& name, const std::set<std::string>& targets) {
  const std::string path = with(name, '.', '/');
  if (targets.count(path)) return path;
  const size_t last = path.rfind('/') + 1;  // 0 without '/'
  std::string first_choice;
  for (const PartPair& part : kParts) {
    if (path.compare(last, std::string::npos, part.torch) != 0) continue;
    const std::string changed = path.substr(0, last) + part.catena;
    if (targets.count(changed)) return changed;
    if (first_choice.empty()) first_choice = changed;
  }
  return first_choice.empty() ? path : first_choice;
}

std::string to_pytorch_name(const std::string& name) {
  const std::string path = with(name, '/', '.');
  const size_t last = path.rfind('.') + 1;
  for (const PartPair& part : kParts)
    if (path.compare(last, std::string::npos, part.catena) == 0)
      return path.substr(0, last) + part.torch;
  return path;
}

std::regex compiled(const std::string& pattern) {
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    fail<ValueError>("NameMap: '", pattern, "' is not a regular expression: ", error.what());
  }
}

}  // namespace

struct NameMap::Rule {
  enum Kind { kExact, kPrefix, kRegex, kSkip, kKeep, kFromPytorch, kToPytorch };
  Kind kind;
  std::string from, to;
  std::regex expression = {};
};

NameMap::NameMap() = default;
NameMap::~NameMap() = default;
NameMap::NameMap(const NameMap&) = default;
NameMap& NameMap::operator=(const NameMap&) = default;
NameMap::NameMap(NameMap&&) noexcept = default;
NameMap& NameMap::operator=(NameMap&&) noexcept = default;

NameMap& NameMap::add(Rule rule) {
  rules_.push_back(std::move(rule));
  return *this;
}

NameMap& NameMap::exact(const std::string& from, const std::string& to) {
  return add({Rule::kExact, from, to});
}
NameMap& NameMap::prefix(const std::string& from, const std::string& to) {
  return add({Rule::kPrefix, from, to});
}
NameMap& NameMap::regex(const std::string& pattern, const std::string& to) {
  return add({Rule::kRegex, pattern, to, compiled(pattern)});
}
NameMap& NameMap::skip(const std::string& pattern) {
  return add({Rule::kSkip, pattern, "", compiled(pattern)});
}
NameMap& NameMap::keep(const std::string& pattern) {
  return add({Rule::kKeep, pattern, "", compiled(pattern)});
}
NameMap& NameMap::pytorch() { return add({Rule::kFromPytorch, "", ""}); }
NameMap& NameMap::pytorch_reversed() { return add({Rule::kToPytorch, "", ""}); }

NameMap NameMap::from_pytorch() { return NameMap().pytorch(); }
NameMap NameMap::to_pytorch() { return NameMap().pytorch_reversed(); }

NameMap NameMap::parse(const std::string& text, const std::string& source) {
  NameMap names;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty() || words[0][0] == '#') continue;
    const std::string& rule = words[0];
    const size_t count = words.size() - 1;
    const std::string to = count > 1 ? words[2] : "";
    if (rule == "exact" && count == 2) {
      names.exact(words[1], to);
    } else if (rule == "prefix" && (count == 1 || count == 2)) {
      names.prefix(words[1], to);
    } else if (rule == "regex" && (count == 1 || count == 2)) {
      names.regex(words[1], to);
    } else if (rule == "skip" && count == 1) {
      names.skip(words[1]);
    } else if (rule == "keep" && count == 1) {
      names.keep(words[1]);
    } else if (rule == "pytorch" && count == 0) {
      names.pytorch();
    } else if (rule == "to-pytorch" && count == 0) {
      names.pytorch_reversed();
    } else {
      fail<ValueError>("NameMap: ", source, ", line ", number, ": '", line,
                       "' is not a rule; expected 'exact FROM TO', 'prefix FROM [TO]', 'regex "
                       "PATTERN [TO]', 'skip PATTERN', 'keep PATTERN', 'pytorch' or 'to-pytorch'");
    }
  }
  return names;
}

NameMap NameMap::read(const std::string& path) { return parse(io::read_whole_file(path), path); }

namespace {

void check_length(const std::string& name) {
  CATENA_CHECK(ValueError, name.size() <= kLongestMatched, "NameMap: a name of ", name.size(),
               " bytes, at most ", kLongestMatched, " are compared with regular expressions: '",
               name.substr(0, 60), "...'");
}

}  // namespace

std::optional<std::string> NameMap::operator()(const std::string& name,
                                               const std::set<std::string>& targets) const {
  std::string now = name;
  for (const Rule& rule : rules_) {
    if (rule.kind == Rule::kRegex || rule.kind == Rule::kSkip) check_length(now);
    switch (rule.kind) {
      case Rule::kExact:
        if (now == rule.from) return rule.to;
        break;
      case Rule::kPrefix:
        if (now.starts_with(rule.from)) now = rule.to + now.substr(rule.from.size());
        break;
      case Rule::kRegex: now = std::regex_replace(now, rule.expression, rule.to); break;
      case Rule::kSkip:
        if (std::regex_match(now, rule.expression)) return {};
        break;
      case Rule::kKeep:  // of names of the model
        break;
      case Rule::kFromPytorch: now = from_pytorch_name(now, targets); break;
      case Rule::kToPytorch: now = to_pytorch_name(now); break;
    }
  }
  return now;
}

bool NameMap::keeps(const std::string& target) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    if (rule.kind != Rule::kKeep) return false;
    check_length(target);
    return std::regex_match(target, rule.expression);
  });
}

NamedArrays NameMap::operator()(const NamedArrays& arrays,
                                const std::set<std::string>& targets) const {
  NamedArrays renamed;
  std::unordered_map<std::string, std::string> origins;
  for (const auto& [name, array] : arrays) {
    const std::optional<std::string> now = (*this)(name, targets);
    if (!now) continue;
    const auto [origin, is_new] = origins.emplace(*now, name);
    CATENA_CHECK(ValueError, is_new, "NameMap: '", origin->second, "' and '", name,
                 "' both become '", *now, "'; leave one out, or give it another name");
    renamed.emplace_back(*now, array);
  }
  return renamed;
}

}  // namespace catena::serializers
