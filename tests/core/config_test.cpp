// Settings from the environment, in programs of their own: they are read once.
#include "catena/core/config.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace catena {
namespace {

// What the program prints on both streams when only these variables of ours are set.
std::string settings_with(const std::string& variables, const std::string& argument = "") {
  FILE* pipe = popen(("env -u CATENA_CUDNN -u CHAINER_CUDNN -u CATENA_TYPE_CHECK -u "
                      "CHAINER_TYPE_CHECK -u CATENA_LOG " +
                      variables + " " + CATENA_CONFIG_PROGRAM + argument + " 2>&1")
                         .c_str(),
                     "r");
  std::string text;
  char buffer[1024];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

std::string settings(const std::string& cudnn, const std::string& type_check) {
  return "cudnn " + cudnn + "\ntype check " + type_check + "\n";
}

TEST(Config, CudnnOfTheEnvironment) {
  EXPECT_EQ(settings_with(""), settings("auto", "on"));
  EXPECT_EQ(settings_with("CATENA_CUDNN=always"), settings("always", "on"));
  EXPECT_EQ(settings_with("CATENA_CUDNN=0"), settings("never", "on"));
  EXPECT_EQ(settings_with("CHAINER_CUDNN=0"), settings("never", "on"));
  EXPECT_EQ(settings_with("CHAINER_CUDNN=1"), settings("auto", "on"));
  EXPECT_EQ(settings_with("CATENA_CUDNN=always CHAINER_CUDNN=0"), settings("always", "on"))
      << "the new name decides";
  for (const std::string name : {"CATENA_CUDNN", "CHAINER_CUDNN"})
    EXPECT_EQ(settings_with(name + "=abc"),
              "catena warning: " + name + "=abc is none of never, auto, always; using auto\n" +
                  settings("auto", "on"));
}

TEST(Config, TypeChecksOfTheEnvironment) {
  EXPECT_EQ(settings_with("CATENA_TYPE_CHECK=0"), settings("auto", "off"));
  EXPECT_EQ(settings_with("CHAINER_TYPE_CHECK=0"), settings("auto", "off"));
  EXPECT_EQ(settings_with("CATENA_TYPE_CHECK=1 CHAINER_TYPE_CHECK=0"), settings("auto", "on"))
      << "the new name decides";
}

// As many as this machine has, shared out among the ranks of the host, by whichever launcher names
// them.
TEST(Config, ThreadsOfARank) {
  const std::string alone =
      "-u OMP_NUM_THREADS -u CATENA_LOCAL_SIZE -u OMPI_COMM_WORLD_LOCAL_SIZE "
      "-u MPI_LOCALNRANKS ";
  const int cores = std::stoi(settings_with(alone, " threads"));
  for (const std::string name :
       {"CATENA_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
    const std::string ranks = name + "=" + std::to_string(cores);
    EXPECT_EQ(settings_with(alone + ranks, " threads"), "1\n") << ranks;
  }
  EXPECT_EQ(settings_with(alone + "OMP_NUM_THREADS=7 MPI_LOCALNRANKS=2", " threads"), "7\n");
}

}  // namespace
}  // namespace catena
