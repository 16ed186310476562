// What CATENA_LOG lets through to standard error, in programs of their own: it is read once.
#include "catena/core/log.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace catena {
namespace {

const std::string kError = "catena error: disk 1 is full\n", kWarning = "catena warning: slow\n",
                  kInfo = "catena info: started\n", kDebug = "catena debug: x = 2.5\n";

// Standard error, and behind it what should not be on standard output.
std::string written(const std::string& setting) {
  const std::string program(CATENA_LOG_PROGRAM);
  FILE* pipe = popen(
      ("{ env " + setting + " " + program + " 2>&3 | sed 's/^/standard output: /'; } 3>&1").c_str(),
      "r");
  std::string text;
  char buffer[1024];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

TEST(Log, ShowsWarningsByDefault) {
  EXPECT_EQ(written("-u CATENA_LOG"), kError + kWarning);
  EXPECT_EQ(written("CATENA_LOG="), kError + kWarning);
}

TEST(Log, ShowsItsLevelAndWhatIsWorse) {
  EXPECT_EQ(written("CATENA_LOG=error"), kError);
  EXPECT_EQ(written("CATENA_LOG=warning"), kError + kWarning);
  EXPECT_EQ(written("CATENA_LOG=info"), kError + kWarning + kInfo);
  EXPECT_EQ(written("CATENA_LOG=debug"), kError + kWarning + kInfo + kDebug);
}

TEST(Log, NamesAValueThatIsNone) {
  for (const std::string value : {"loud", "Debug", "1"})
    EXPECT_EQ(written("CATENA_LOG=" + value),
              "catena: CATENA_LOG=" + value +
                  " is none of error, warning, info, debug; using warning\n" + kError + kWarning);
}

}  // namespace
}  // namespace catena
