#include "common/command_line.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

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

void parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) std::exit(0);
    catena::report_failure(error);
    std::exit(2);
  }
}

}  // namespace examples
