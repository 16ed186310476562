// See plan_entry.h. An entry is a line that names the form, the line of the problem, a line of
// words and numbers, and the compiled plan:
//   plan 1
//   cudnn 91900 ... convolution forward ...
//   engine 38 knobs 2 13 0 24 1 compiled 1234
//   {...
// The third line is "none" where cuDNN has no engine.
#include "backends/cudnn/plan_entry.h"

#include <charconv>

namespace catena::cudnn {
namespace {

constexpr std::string_view kForm = "plan 1\n", kNone = "none\n";
constexpr int64_t kMostKnobs = 256;

// Reads an entry from its beginning. After the first thing that is not there, nothing is.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  bool good() const { return good_; }
  void refuse() { good_ = false; }
  std::string_view rest() const { return rest_; }
  void expect(std::string_view text) {
    if (good_ && rest_.starts_with(text))
      rest_.remove_prefix(text.size());
    else
      good_ = false;
  }
  int64_t number() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) good_ = false;
    if (!good_) return 0;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

EngineChoice read_choice(Reader& reader) {
  EngineChoice choice;
  reader.expect("engine ");
  choice.engine = reader.number();
  reader.expect(" knobs ");
  const int64_t count = reader.number();
  if (count < 0 || count > kMostKnobs) reader.refuse();
  for (int64_t i = 0; reader.good() && i < count; ++i) {
    reader.expect(" ");
    const int64_t type = reader.number();
    reader.expect(" ");
    choice.knobs.push_back({type, reader.number()});
  }
  return choice;
}

}  // namespace

std::string to_bytes(const PlanEntry& entry, std::string_view problem) {
  std::string text(kForm);
  text.append(problem).push_back('\n');
  if (!entry.choice) return text.append(kNone);
  const auto& [engine, knobs] = *entry.choice;
  text += "engine " + std::to_string(engine) + " knobs " + std::to_string(knobs.size());
  for (const auto& [type, value] : knobs)
    text += " " + std::to_string(type) + " " + std::to_string(value);
  return text + " compiled " + std::to_string(entry.compiled.size()) + "\n" + entry.compiled;
}

std::optional<PlanEntry> plan_entry_from(std::string_view bytes, std::string_view problem) {
  Reader reader(bytes);
  reader.expect(kForm);
  reader.expect(problem);
  reader.expect("\n");
  if (!reader.good()) return {};
  if (reader.rest() == kNone) return PlanEntry{};
  PlanEntry entry;
  entry.choice = read_choice(reader);
  reader.expect(" compiled ");
  const int64_t size = reader.number();
  reader.expect("\n");
  if (!reader.good() || size < 0 || static_cast<size_t>(size) != reader.rest().size()) return {};
  entry.compiled = reader.rest();
  return entry;
}

}  // namespace catena::cudnn
