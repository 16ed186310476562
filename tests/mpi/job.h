// Jobs that the tests start, and what came of them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

namespace catena::mpi_test {

struct Outcome {
  int code = -1;
  std::string text;
  double seconds = 0;
};

// Runs the command with the given assignments of environment variables, for so many seconds at
// most.
inline Outcome shell(const std::string& variables, const std::string& command, int limit = 60) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  const std::string line =
      variables + " OMP_NUM_THREADS=1 timeout " + std::to_string(limit) + " " + command + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) outcome.text.append(buffer, n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

inline bool holds(const Outcome& outcome, const std::string& word) {
  return outcome.text.find(word) != std::string::npos;
}

// A job under catena-run, whose last words name the rank at fault and have its exit code.
struct Case {
  const char* fault;
  const char* error;  // the beginning of what follows "failed first: "
  int code;
  double seconds;         // at most
  int rank = 1;           // that is blamed; -1: any, or none when nobody knows
  int other_code = code;  // that is right as well
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.fault; }

// Where the report's error begins: after "failed first: ", or after the words that nobody is known
// to be guilty.
inline size_t end_of_headline(const std::string& text) {
  for (const char* words : {" failed first: ", "catena-run: no rank is known to be at fault: "}) {
    const size_t at = text.find(words);
    if (at != std::string::npos) return at + std::strlen(words);
  }
  return std::string::npos;
}

inline void expect_blamed(const Outcome& o, const Case& c) {
  EXPECT_TRUE(o.code == c.code || o.code == c.other_code) << o.code << ": " << o.text;
  EXPECT_LT(o.seconds, c.seconds) << o.text;
  const std::string who =
      c.rank < 0 ? "catena-run: " : "catena-run: rank " + std::to_string(c.rank) + " on ";
  const size_t report = o.text.rfind(who, end_of_headline(o.text));
  ASSERT_NE(report, std::string::npos) << o.text;
  const size_t error = end_of_headline(o.text);
  EXPECT_EQ(o.text.find(c.error, error), error) << o.text;
}

// Calls that differ: the report has all the words, and no rank read a result or waited long.
inline void expect_named(const Outcome& o, const std::vector<std::string>& words) {
  EXPECT_EQ(o.code, 7) << o.text;
  EXPECT_LT(o.seconds, 30) << o.text;
  for (const char* wrong : {"too late", "was told nothing", "was read"})
    EXPECT_FALSE(holds(o, wrong)) << o.text;
  EXPECT_TRUE(holds(o, "noticed after ")) << o.text;
  const size_t report = end_of_headline(o.text);
  ASSERT_NE(report, std::string::npos) << o.text;
  for (const std::string& word : words)
    EXPECT_NE(o.text.find(word, report), std::string::npos) << "no '" << word << "' in " << o.text;
}

}  // namespace catena::mpi_test
