#include "common/command_line.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>

#include "catena/comm/run_main.h"
#include "catena/core/device.h"

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

// Checks of values. CLI11's own range checks print ranges of 300 digits and let nan pass.
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
CLI::Validator amount() {
  return number_that([](double x) { return x >= 0; }, "a number of at least 0");
}
CLI::Validator share() {
  return number_that([](double x) { return x >= 0 && x < 1; }, "a number from 0 to below 1");
}

// So that "--device --out x" does not take "--out" for a device.
CLI::Validator device_name() {
  return {[](std::string& text) {
            return text.starts_with("-") ? "'" + text + "' is not a device" : std::string();
          },
          ""};
}

std::vector<std::string> names_of_gpus(const std::vector<int>& numbers) {
  std::vector<std::string> names;
  for (const int number : numbers)
    names.push_back(number < 0 ? "cpu:0" : "cuda:" + std::to_string(number));
  return names;
}

CommandLine::Option with_default(CLI::Option* option, bool shown = true) {
  return CommandLine::Option(shown ? option->capture_default_str() : option);
}

}  // namespace

using Option = CommandLine::Option;

Option Option::required() const { return Option(option_->required()); }
Option Option::one_of(const std::vector<std::string>& texts) const {
  return Option(option_->check(CLI::IsMember(texts)));
}
Option Option::excludes(const Option& other) const {
  return Option(option_->excludes(other.option_));
}
Option Option::needs(const Option& other) const { return Option(option_->needs(other.option_)); }

CommandLine::CommandLine(const std::string& description)
    : app_(std::make_unique<CLI::App>(description)) {}
CommandLine::~CommandLine() = default;

Option CommandLine::add_text(const std::string& names, std::string& value,
                             const std::string& meaning) {
  return with_default(app_->add_option(names, value, meaning));
}
Option CommandLine::add_texts(const std::string& names, std::vector<std::string>& values,
                              const std::string& meaning) {
  return Option(app_->add_option(names, values, meaning));
}
Option CommandLine::add_flag(const std::string& names, bool& value, const std::string& meaning) {
  return Option(app_->add_flag(names, value, meaning));
}
Option CommandLine::add_count(const std::string& names, int64_t& value,
                              const std::string& meaning) {
  return with_default(app_->add_option(names, value, meaning)->check(whole_number_above_0()),
                      value > 0);
}
Option CommandLine::add_whole(const std::string& names, int64_t& value,
                              const std::string& meaning) {
  return with_default(app_->add_option(names, value, meaning)->check(whole_number()));
}
Option CommandLine::add_whole(const std::string& names, uint64_t& value,
                              const std::string& meaning) {
  return with_default(app_->add_option(names, value, meaning)->check(whole_number()));
}
Option CommandLine::add_number(const std::string& names, double& value,
                               const std::string& meaning) {
  return with_default(app_->add_option(names, value, meaning)->check(number_above_0()), value > 0);
}
Option CommandLine::add_amount(const std::string& names, double& value,
                               const std::string& meaning) {
  return with_default(app_->add_option(names, value, meaning)->check(amount()));
}
Option CommandLine::add_share(const std::string& names, double& value, const std::string& meaning) {
  return with_default(app_->add_option(names, value, meaning)->check(share()));
}

void CommandLine::add_devices(std::vector<std::string>& devices, DeviceCount count,
                              const std::string& otherwise) {
  const bool one = count == DeviceCount::kOne;
  CLI::Option* const device = app_->add_option(
      "-d,--device", devices,
      (one ? "cpu, cpu:N or cuda:N [" : "devices, separated by commas [") + otherwise + "]");
  device->check(device_name());
  CLI::Option* const gpu = app_->add_option_function<std::vector<int>>(
      "-g,--gpu", [&devices](const std::vector<int>& numbers) { devices = names_of_gpus(numbers); },
      one ? "the same by the number of a GPU, -1: cpu:0"
          : "the same by numbers of GPUs, -1: cpu:0");
  gpu->check(CLI::Range(-1, catena::kMaxDevices - 1))->excludes(device);
  for (CLI::Option* const option : {device, gpu}) {
    option->allow_extra_args(false);  // one word: arguments in their place may follow
    if (one)
      option->expected(1);
    else
      option->delimiter(',');
  }
}
void CommandLine::add_images(std::string& data) {
  add_text("--data", data,
           "folder of MNIST-format idx files, gzipped or not [CATENA_MNIST if set, else the "
           "packaged Fashion-MNIST]");
}
void CommandLine::add_corpus(std::string& data, int64_t& vocabulary) {
  add_text("--data", data,
           "folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt, or a text file [the "
           "King James Bible of the package bible-kjv]");
  add_count("--vocabulary", vocabulary, "words that are told apart, the most frequent ones");
}

void CommandLine::add_precision(std::string& dtype, bool& autocast) {
  add_text("--dtype", dtype, "of the parameters").one_of({"float32", "bfloat16"});
  add_flag("--autocast", autocast, "float32 parameters, but products in bfloat16");
}
void CommandLine::check_precision(const std::string& dtype, bool autocast) {
  if (autocast && dtype != "float32") refuse("--autocast", "is for parameters of float32");
}

void CommandLine::check(std::function<void()> values) { app_->callback(std::move(values)); }
void CommandLine::refuse(const std::string& name, const std::string& reason) {
  throw CLI::ValidationError(name, reason);
}
bool CommandLine::given(const std::string& name) const { return app_->count(name) > 0; }

void CommandLine::parse(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  std::vector<const char*> given;
  for (std::string& word : words) {
    word = with_new_name(*app_, word);
    given.push_back(word.c_str());
  }
  try {
    app_->parse(argc, given.data());
  } catch (const CLI::ParseError& error) {
    if (app_->exit(error) == 0) std::exit(0);
    catena::report_failure(error);
    std::exit(2);
  }
}

}  // namespace examples
