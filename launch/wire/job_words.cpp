#include "wire/job_words.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "wire/fields.h"
#include "wire/program_file.h"

namespace catena::launch {
namespace {

// What is true of the words that follow, and of no job.
struct Encoding {
  bool escaped = false;  // the words of the program are percent-encoded
};

template <typename Visit>
void each_field(const Encoding*, Visit&& visit) {
  visit("escaped", &Encoding::escaped);
}

// The first character as well, for that is what the starter recognises the word by.
std::string hide(const std::string& word) {
  char first[4];
  std::snprintf(first, sizeof(first), "%%%02X", static_cast<unsigned char>(word[0]));
  return first + percent_encode(word.substr(1));
}

}  // namespace

std::string value_text(const Devices& devices) { return to_text(devices); }
void read_value(const std::string& text, Devices& devices) { devices = parse_devices(text); }

template <typename Visit>
void each_field(const JobSpec*, Visit&& visit) {
  visit("job", &JobSpec::id, Field::always);
  visit("size", &JobSpec::ranks, Field::always);
  visit("devices", &JobSpec::devices, Field::always);
  visit("timeout", &JobSpec::timeout, Field::always);
  visit("start-timeout", &JobSpec::start_timeout, Field::always);
  visit("log-dir", &JobSpec::log_dir);
  visit("terminal", &JobSpec::terminal);
  visit("no-bind", &JobSpec::no_bind);
  visit("grace", &JobSpec::grace);
  visit("folder", &JobSpec::folder);
  visit("program-file", &JobSpec::program_file);
  visit("several-hosts", &JobSpec::remote);
  visit("pipe", &JobSpec::rank_pipe);
  visit("srun", &JobSpec::by_srun);
  visit("restart", &JobSpec::restart);
}

std::vector<std::string> rank_process_command(const JobSpec& spec, const MustHide& must_hide) {
  const Encoding encoding{std::any_of(spec.program.begin(), spec.program.end(), must_hide)};
  std::vector<std::string> words = {spec.launcher, kRankProcess};
  for (const auto& more : {to_words(spec), to_words(encoding), {"--"}})
    words.insert(words.end(), more.begin(), more.end());
  if (!spec.program_file.empty()) return words;
  for (const std::string& word : spec.program)
    words.push_back(!encoding.escaped ? word : must_hide(word) ? hide(word) : percent_encode(word));
  return words;
}

JobSpec parse_rank_process_words(const std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end())
    throw UserError(std::string(kRankProcess) + " is for catena-run's own use");
  JobSpec spec;
  Encoding encoding;
  for (auto word = words.begin(); word != dashes; ++word)
    if (!read_word(*word, spec) && !read_word(*word, encoding))
      throw UserError(std::string(kRankProcess) + ": unknown setting '" + *word +
                      "'; all hosts need the same catena-run");
  if (!spec.program_file.empty()) spec.program = read_program(spec.program_file);
  for (auto word = dashes + 1; word != words.end(); ++word)
    spec.program.push_back(encoding.escaped ? percent_decode(*word) : *word);
  if (spec.program.empty())
    throw UserError(std::string(kRankProcess) + " is for catena-run's own use");
  return spec;
}

JobSpec look_at_rank_process_words(const std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  JobSpec spec;
  Encoding encoding;
  for (auto word = words.begin(); word != dashes; ++word)
    if (!read_word(*word, spec)) read_word(*word, encoding);
  for (auto word = dashes; word != words.end(); ++word)
    if (word != dashes) spec.program.push_back(encoding.escaped ? percent_decode(*word) : *word);
  return spec;
}

}  // namespace catena::launch
