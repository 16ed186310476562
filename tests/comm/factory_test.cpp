#include "catena/comm/factory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "catena/array/creation.h"
#include "catena/comm/topology.h"
#include "catena/comm/transport.h"
#include "catena/core/trace.h"
#include "comma_locale.h"
#include "environment_scope.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Sets variables for a scope; every launcher variable is cleared.
class Environment {
 public:
  explicit Environment(const Variables& variables = {}) {
    for (const char* name : {"CATENA_SIZE",
                             "CATENA_RANK",
                             "CATENA_LOCAL_RANK",
                             "CATENA_LOCAL_SIZE",
                             "CATENA_DEVICE",
                             "CATENA_TIMEOUT",
                             "CATENA_START_TIMEOUT",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_RANK",
                             "PMI_SIZE",
                             "PMI_RANK",
                             "MV2_COMM_WORLD_SIZE",
                             "SLURM_NTASKS",
                             "SLURM_STEP_ID",
                             "SLURM_PROCID",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_LOCALID",
                             "SLURM_NODEID",
                             "SLURM_STEP_TASKS_PER_NODE",
                             "SLURM_MPI_TYPE",
                             "PMIX_RANK"})
      scope_.set(name, std::nullopt);
    for (const auto& [name, value] : variables) scope_.set(name, value);
  }

 private:
  EnvironmentScope scope_;
};

TEST(CreateCommunicator, WithoutLauncherEveryNameGivesOneRankThatWorks) {
  const Environment environment(Variables{{"CATENA_DEVICE", "cpu:0"}});
  for (const char* name : {"auto", "mpi", "naive", "flat", "non_cuda_aware", "dummy", "threads"}) {
    const CommunicatorPtr comm = create_communicator(name);
    EXPECT_EQ(comm->size(), 1) << name;
    EXPECT_EQ(comm->rank(), 0);
    EXPECT_EQ(comm->intra_size(), 1);
    EXPECT_EQ(comm->inter_size(), 1);
    EXPECT_EQ(comm->device(), cpu(0));
    const Array x = array({1.f, 2.f}, comm->device());
    EXPECT_EQ(comm->all_reduce(x).to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(comm->all_gather(x).to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(comm->broadcast_object(std::string("x")), "x");
    EXPECT_EQ(comm->split(0)->size(), 1);
    EXPECT_EQ(comm->split(-1), nullptr);
    comm->barrier();
  }
  EXPECT_EQ(create_communicator("naive", {.device = cpu(3)})->device(), cpu(3));
}

TEST(CreateCommunicator, SendToItselfWithoutGroupIsRefusedSoon) {
  const Environment environment(Variables{{"CATENA_DEVICE", "cpu"}});
  const CommunicatorPtr comm = create_communicator();
  const Array x = array({1.f}), y = array({0.f});
  comm->group([&] {
    comm->send(x, 0);
    comm->recv(y, 0);
  });
  EXPECT_EQ(y.item<float>(), 1.f);
  expect_contains(error_of<ValueError>([&] { comm->send(x, 0); }),
                  {"send: destination 0 is this rank itself", "wait for ever", "group(...)"});
  expect_contains(error_of<ValueError>([&] { comm->recv(y, 0); }),
                  {"recv: source 0 is this rank itself"});
  EXPECT_THROW(comm->send_object(1, 0), ValueError);
  EXPECT_THROW(comm->recv_object<int>(0), ValueError);
  EXPECT_EQ(comm->all_reduce(x).item<float>(), 1.f);  // an argument was wrong, nothing failed
}

TEST(CreateCommunicator, UnknownNameListsTheKnownOnes) {
  try {
    create_communicator("gloo");
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("pure_nccl"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("'gloo'"), std::string::npos);
  }
}

TEST(CreateCommunicator, ThreadsUnderALauncherOfSeveralRanksIsRefused) {
  const Environment environment(Variables{{"CATENA_SIZE", "4"}, {"CATENA_DEVICE", "cpu"}});
  EXPECT_THROW(create_communicator("threads"), CommError);
  EXPECT_THROW(create_communicator("dummy"), CommError);
}

TEST(LaunchEnvironment, ReadsLaunchersInOrder) {
  {
    const Environment environment;
    EXPECT_FALSE(comm::launch_environment().launched);
    EXPECT_EQ(comm::launch_environment().size, 1);
  }
  const Environment environment(
      {{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"CATENA_SIZE", "4"}});
  const auto launch = comm::launch_environment();
  EXPECT_TRUE(launch.launched);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.source, "CATENA_SIZE");
}

TEST(LaunchEnvironment, BatchScriptOfSlurmIsNotAStep) {
  const Environment environment(Variables{{"SLURM_NTASKS", "8"}});
  EXPECT_FALSE(comm::launch_environment().launched);
}

// Also without a communicator, which would know.
TEST(LaunchEnvironment, EachTaskOfAStepOfSlurmHasATraceOfItsOwn) {
  const TempFolder folder;
  const Environment environment(
      {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "3"}});
  tracing::start(folder / "trace.json");
  tracing::stop();
  EXPECT_TRUE(std::filesystem::exists(folder / "trace.json.rank2"));
}

// Has the variables of a step, and those of the whole allocation.
TEST(LaunchEnvironment, ShellOfSallocIsNotATask) {
  for (const char* own : {"4294967290", "4294967291"}) {
    const Environment environment({{"SLURM_NTASKS", "8"},
                                   {"SLURM_STEP_ID", own},
                                   {"SLURM_PROCID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "1"}});
    EXPECT_FALSE(comm::launch_environment().launched) << own;
  }
  const Environment shell({{"SLURM_NTASKS", "8"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_PROCID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_EQ(comm::launch_environment().size, 1) << "srun --pty bash";
}

TEST(LaunchEnvironment, TaskOfSrun) {
  const Variables variables = {{"SLURM_NTASKS", "8"},
                               {"SLURM_STEP_ID", "0"},
                               {"SLURM_PROCID", "4"},
                               {"SLURM_STEP_NUM_TASKS", "5"},
                               {"SLURM_LOCALID", "0"},
                               {"SLURM_NODEID", "2"},
                               {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"}};
  {
    const Environment environment(variables);
    const auto launch = comm::launch_environment();
    EXPECT_TRUE(launch.launched);
    EXPECT_EQ(launch.source, "SLURM_STEP_NUM_TASKS");
    EXPECT_EQ(launch.rank, 4);
    EXPECT_EQ(launch.size, 5);
    EXPECT_EQ(launch.local_rank, 0);
    EXPECT_EQ(launch.local_size, 1);
  }
  Variables under_mpirun = variables;
  under_mpirun.emplace_back("OMPI_COMM_WORLD_SIZE", "2");
  under_mpirun.emplace_back("OMPI_COMM_WORLD_RANK", "1");
  const Environment environment(under_mpirun);
  EXPECT_EQ(comm::launch_environment().size, 2) << "the daemons of mpirun are such tasks";
  EXPECT_EQ(comm::launch_environment().rank, 1);
}

TEST(Timeout, ComesFromOptionsThenEnvironment) {
  const Environment environment(Variables{{"CATENA_TIMEOUT", "12.5"}});
  EXPECT_EQ(comm::timeout_of({}), 12.5);
  EXPECT_EQ(comm::timeout_of({.timeout = 3}), 3);
  {
    const Environment unset;
    EXPECT_EQ(comm::timeout_of({}), 600);
    EXPECT_EQ(comm::start_timeout_of({}), 120);
  }
  const Environment wrong(Variables{{"CATENA_TIMEOUT", "soon"}});
  EXPECT_THROW(comm::timeout_of({}), ValueError);
}

TEST(Timeout, HasAPointWhateverTheLocale) {
  const test::CommaLocale locale;
  if (!locale.in_force()) GTEST_SKIP() << "no locale with decimal commas, and no localedef";
  const Environment environment(Variables{{"CATENA_TIMEOUT", "12.5"}});
  EXPECT_EQ(comm::timeout_of({}), 12.5);
}

TEST(Topology, NumbersHostsInOrderOfAppearance) {
  const auto t = comm::make_topology(4, {9, 2, 9, 5, 2});
  EXPECT_EQ(t.size, 5);
  EXPECT_EQ(t.inter_rank, 1);
  EXPECT_EQ(t.inter_size, 3);
  EXPECT_EQ(t.intra_rank, 1);
  EXPECT_EQ(t.intra_size, 2);
  EXPECT_EQ(t.hosts, (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_THROW(comm::make_topology(5, {0, 0}), ValueError);
}

TEST(OrderedReduce, PropagatesNan) {
  const float nan = std::nanf("");
  const float a[] = {1, nan, 3}, b[] = {nan, 2, 1};
  const void* inputs[] = {a, b};
  float out[3];
  for (auto kind : {comm::Reduction::kMin, comm::Reduction::kMax, comm::Reduction::kSum}) {
    comm::ordered_reduce(Dtype::kFloat32, kind, inputs, {}, 3, out);
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1])) << name(kind);
    EXPECT_FALSE(std::isnan(out[2]));
  }
}

TEST(OrderedReduce, IntegersWrap) {
  const int8_t a[] = {100}, b[] = {100};
  const void* inputs[] = {a, b};
  int8_t out;
  comm::ordered_reduce(Dtype::kInt8, comm::Reduction::kSum, inputs, {}, 1, &out);
  EXPECT_EQ(out, int8_t(-56));
}

}  // namespace
}  // namespace catena
