#include "timing.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace bench {

Times summarize(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t middle = seconds.size() / 2;
  const double median =
      seconds.size() % 2 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
  return {median, seconds.front()};
}

std::string format(double value) {
  char text[32];
  const int digits = value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

Better better_of(const std::string& unit) {
  const bool time = unit == "s" || unit == "ms" || unit == "us" || unit == "ns";
  return time ? Better::kLower : Better::kHigher;
}

Table::Table(const std::string& title, const std::string& machine) {
  std::printf("\n### %s\n%s\n\n", title.c_str(), machine.c_str());
  std::printf(
      "| case | precision | catena | limit in this run | ratio | goal | "
      "|\n|---|---|---|---|---|---|---|\n");
}

void Table::row(const Row& r) {
  const bool lower = better_of(r.unit) == Better::kLower;
  const auto fits = [&](double value, double goal) {
    return lower ? value <= goal : value >= goal;
  };
  std::string limit, ratio, goal, verdict;
  const double quotient = r.limit ? r.value / *r.limit : 0;
  if (r.limit) {
    limit = format(*r.limit) + " " + r.unit + " (" + r.limit_name + ")";
    ratio = lower ? format(quotient) + " x" : format(quotient * 100) + " %";
  }
  const std::string sign = lower ? "<= " : ">= ";
  if (r.goal) {
    goal = sign + format(*r.goal) + " " + r.unit;
    verdict = fits(r.value, *r.goal) ? "met" : "missed";
  } else if (r.goal_ratio && r.limit) {
    goal = sign + (lower ? format(*r.goal_ratio) + " x" : format(*r.goal_ratio * 100) + " %");
    verdict = fits(quotient, *r.goal_ratio) ? "met" : "missed";
  }
  std::printf("| %s | %s | %s %s | %s | %s | %s | %s |\n", r.name.c_str(), r.precision.c_str(),
              format(r.value).c_str(), r.unit.c_str(), limit.c_str(), ratio.c_str(), goal.c_str(),
              verdict.c_str());
  std::fflush(stdout);
}

Arguments::Arguments(int argc, char** argv, const std::string& description,
                     std::vector<std::pair<std::string, std::string>> flags) {
  flags.insert(flags.begin(), {"--quick", "small cases and few runs"});
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::printf("%s\n\nusage: %s [options]\n", description.c_str(), argv[0]);
      for (const auto& [flag, text] : flags)
        std::printf("  %-14s %s\n", flag.c_str(), text.c_str());
      std::exit(0);
    }
    const bool known = std::any_of(flags.begin(), flags.end(), [&](const auto& f) {
      return f.first == argument || (f.first.back() == '=' && argument.rfind(f.first, 0) == 0);
    });
    if (!known) {
      std::fprintf(stderr, "%s: unknown option %s; see --help\n", argv[0], argument.c_str());
      std::exit(2);
    }
    given_.push_back(argument);
  }
}

int run(int (*body)(int, char**), int argc, char** argv) {
  try {
    return body(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: error: %s\n", argv[0], e.what());
    return 1;
  }
}

bool have_gpu(const char* program) {
  const std::string reason = catena::unavailable_reason(catena::DeviceType::kCuda);
  if (reason.empty()) return true;
  std::printf("%s: SKIPPED, no GPU: %s\n", program, reason.c_str());
  return false;
}

}  // namespace bench
