// What CheckpointFolder writes, when, and what it says of folders that are not whole. Layouts are
// in checkpoint_layouts_test.cpp, processes that are killed in checkpoint_kills_test.cpp.
#include "catena/training/checkpoint_folder.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "catena/array/random.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "parallel/network.h"
#include "temp_folder.h"
#include "training/checkpoint_meeting.h"
#include "training/save_owner.h"
#include "training/slow_index.h"

namespace catena::training {
namespace {

using catena::testing::Net;
using catena::testing::Values;
using catena::testing::values_of;
using catena::testing::wave;

namespace fs = std::filesystem;
namespace F = functions;

// A model and an optimizer that have made some steps.
struct Session {
  Net model;
  optimizers::Adam adam{0.01};
  int64_t count = 7;
  std::string note = "start";
  serializers::Checkpoint state;

  explicit Session(int steps = 0, Dtype dtype = dtype::float32) : model(dtype) {
    adam.setup(model);
    state.add("model", model);
    state.add("adam", adam);
    state.add("count", count);
    state.add("note", note);
    train(steps);
  }
  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      for (const Parameter& p : model.parameters())
        p.set_grad(wave(p.shape(), double(adam.t()), p.dtype()));
      adam.update();
    }
  }
};

std::string newest_folder(const TempFolder& folder, int64_t step) {
  return folder / message("step-00000000000", step);
}

// The bytes of an array whose save takes long enough for a test to act before its end. Where
// ThreadSanitizer watches each access, fewer take as long.
#if defined(__SANITIZE_THREAD__)
constexpr int64_t kLarge = 8 << 20;
#else
constexpr int64_t kLarge = 64 << 20;
#endif

// An array that one rank alone has.
void add_large(serializers::Checkpoint& state, Communicator& comm, int rank, const Array& array) {
  state.add("large", {.parts = [&comm, rank, array] {
              return comm.rank() == rank
                         ? serializers::TensorParts{serializers::part_of("x", array)}
                         : serializers::TensorParts{};
            }});
}

// Writing -----------------------------------------------------------------------------------------

class CheckpointFolders : public ::testing::Test {
 protected:
  const TempFolder folder;
};

TEST_F(CheckpointFolders, GivesBackEverything) {
  Session first(3), second(1);
  first.count = 12;
  first.note = "";
  CheckpointFolder checkpoints(folder / "new/checkpoints");
  EXPECT_FALSE(checkpoints.has_checkpoint());
  checkpoints.save(first.state, 3);
  EXPECT_TRUE(checkpoints.has_checkpoint());
  EXPECT_EQ(checkpoints.load(second.state), 3);
  EXPECT_EQ(values_of(second.model), values_of(first.model));
  EXPECT_EQ(second.adam.t(), 3);
  EXPECT_EQ(second.count, 12);
  EXPECT_EQ(second.note, "");
  first.train(2);
  second.train(2);
  EXPECT_EQ(values_of(second.model), values_of(first.model));
}

TEST_F(CheckpointFolders, GivesBackLossScaleHyperParametersAndGroups) {
  struct Scaled : Session {
    explicit Scaled(double scale) {
      adam.add_group("biases", {"*/b"}, {.rate = 0.5});
      optimizers::add_loss_scale(adam, {.initial = scale});
      adam.setup(model);
    }
  };
  Scaled first(1024), second(8);
  first.adam.set_lr(0.25);
  first.adam.set_group("biases", {.rate = 0.125});
  CheckpointFolder checkpoints(folder.path());
  checkpoints.save(first.state, 1);
  checkpoints.load(second.state);
  EXPECT_EQ(second.adam.lr(), 0.25);
  EXPECT_EQ(second.adam.groups()[0].options.rate, 0.125);
  const auto numbers = [](Session& run) {
    std::map<std::string, double> result;
    for (const auto& [name, a] : run.adam.common_state())
      result[name] = a.reshape({-1}).to_vector<double>()[0];
    return result;
  };
  EXPECT_EQ(numbers(second), numbers(first));
  EXPECT_EQ(numbers(second).at("loss_scale/value"), 1024);
}

TEST_F(CheckpointFolders, KeepsTheNewestAndReplacesTheSameStep) {
  Session run;
  CheckpointFolder checkpoints(folder.path(), nullptr, {.keep = 2});
  for (const int64_t step : {1, 2, 3, 3, 5}) {
    run.count = 10 * step;
    checkpoints.save(run.state, step);
  }
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(folder.entries(), 2);  // nothing hidden is left
  EXPECT_FALSE(fs::exists(folder / "step-000000000005/.owner"));
  checkpoints.load(run.state, 3);
  EXPECT_EQ(run.count, 30);
  EXPECT_EQ(checkpoints.load(run.state), 5);
  EXPECT_EQ(run.count, 50);
  fs::remove(folder / "step-000000000005/complete");
  checkpoints.save(run.state, 6);
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{3, 6})) << "what is not whole counts not";
  fs::create_directory(folder / "notes");
  checkpoints.clear();
  EXPECT_EQ(folder.entries(), 1) << "somebody else's";
}

TEST_F(CheckpointFolders, RanksWaitForTheFirstThatHasNotEnded) {
  const Ending ended{.state = CheckpointWriter::State::kEnded}, late;
  EXPECT_EQ(first_late({ended, ended}), -1);
  EXPECT_EQ(first_late({ended, ended, late}), 2);
  EXPECT_EQ(first_late({late, ended, late}), 2) << "rank 0 itself waits for it";
  EXPECT_EQ(first_late({late, ended}), 0);
}

TEST_F(CheckpointFolders, ArraysMayGrowBetweenSaves) {
  std::map<std::string, Array> arrays{{"x", zeros({2})}};
  serializers::Checkpoint state;
  state.add("arrays", arrays);
  CheckpointFolder checkpoints(folder.path());
  checkpoints.save(state, 1);
  arrays["x"] = arange(5, dtype::float64);
  checkpoints.save(state, 2);
  arrays.clear();
  checkpoints.load(state);
  EXPECT_EQ(arrays.at("x").to_vector<double>(), (std::vector<double>{0, 1, 2, 3, 4}));
}

// A time in nanoseconds, say.
TEST_F(CheckpointFolders, StepsMayBeLarge) {
  Session run;
  CheckpointFolder checkpoints(folder.path(), nullptr, {.keep = 3});
  const std::vector<int64_t> steps = {7, 1764000000000000000, INT64_MAX};
  for (const int64_t step : steps) checkpoints.save(run.state, step);
  EXPECT_EQ(checkpoints.steps(), steps);
  EXPECT_EQ(checkpoints.load(run.state), INT64_MAX);
}

TEST_F(CheckpointFolders, AFileOrAPipeWithTheNameOfAStepIsSomebodyElses) {
  Session run;
  CheckpointFolder checkpoints(folder.path());
  checkpoints.save(run.state, 7);
  write_file(folder / "step-000000000010", "notes");
  ASSERT_EQ(::mkfifo((folder / "step-000000000011").c_str(), 0666), 0);
  EXPECT_EQ(checkpoints.steps(), std::vector<int64_t>{7});
  EXPECT_EQ(checkpoints.load(run.state), 7);
}

TEST_F(CheckpointFolders, NamesThatAnIndexCannotHoldAreRefused) {
  Net net(dtype::float32);
  for (const char* name : {"new\nline", "not \xff UTF-8", "bell\a"}) {
    serializers::Checkpoint state;
    state.add(name, net);
    expect_contains(error_of<ValueError>([&] { CheckpointFolder(folder.path()).save(state, 1); }),
                    {"names of layers", "UTF-8"});
  }
}

// Every tensor is written once, in about equal shares.
TEST_F(CheckpointFolders, RanksShareTheWriting) {
  comm::run_threads(4, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    random::default_state(comm.device()).seed(1);
    struct Large : FunctionSet {
      F::Linear l{512, 1024};
      CATENA_FUNCTIONS(l)
    } model;
    serializers::Checkpoint state;
    state.add("model", model);
    CheckpointFolder checkpoints(folder.path(), &comm);
    checkpoints.save(state, 1);
    const double bytes = 4.0 * 1024 * 513;
    EXPECT_NEAR(double(checkpoints.times().bytes), bytes / 4, 5000) << comm.rank();
  });
}

TEST_F(CheckpointFolders, ASaveThatFindsAnotherOneRunningIsLeftOut) {
  Array large = zeros({kLarge}, {dtype::uint8, cpu(0)});
  serializers::Checkpoint state;
  state.add("large", large);
  CheckpointFolder skipping(folder / "a", nullptr, {.when_busy = WhenBusy::kSkip});
  EXPECT_TRUE(skipping.save_async(state, 1));
  EXPECT_FALSE(skipping.save_async(state, 2));
  skipping.wait();
  EXPECT_TRUE(skipping.save_async(state, 3));
  skipping.save(state, 4);  // which waits for the one that runs
  EXPECT_EQ(skipping.steps(), (std::vector<int64_t>{3, 4}));
  CheckpointFolder waiting(folder / "b");
  EXPECT_TRUE(waiting.save_async(state, 1));
  large.fill(7);
  EXPECT_TRUE(waiting.save_async(state, 2));
  waiting.wait();
  EXPECT_EQ(waiting.steps(), (std::vector<int64_t>{1, 2}));
  waiting.load(state, 1);
  EXPECT_EQ(large[5].item<int64_t>(), 0);
}

TEST_F(CheckpointFolders, ReservingWaitsForTheSaveThatReadsTheMemory) {
  Array large = full({kLarge}, 3, {dtype::uint8, cpu(0)});
  serializers::Checkpoint state;
  state.add("large", large);
  CheckpointFolder checkpoints(folder.path());
  checkpoints.save_async(state, 1);
  checkpoints.reserve(state);
  large.fill(0);
  checkpoints.load(state, 1);
  EXPECT_EQ((large == 3).sum().item<int64_t>(), large.size());
}

// A job that is started again goes on from the older one.
TEST_F(CheckpointFolders, ASaveReplacesANewerOneThatIsDamaged) {
  Session run(2);
  CheckpointFolder checkpoints(folder.path());
  checkpoints.save(run.state, 1);
  checkpoints.save(run.state, 3);
  fs::resize_file(newest_folder(folder, 3) + "/index.json", 20);
  EXPECT_EQ(checkpoints.load(run.state), 1);
  checkpoints.save(run.state, 2);
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{1, 2}));
}

TEST_F(CheckpointFolders, TheDestructorFinishesTheSave) {
  Session run(2);
  { CheckpointFolder(folder.path()).save_async(run.state, 2); }
  EXPECT_EQ(CheckpointFolder(folder.path()).load(run.state), 2);
}

TEST_F(CheckpointFolders, ASaveMayTakeLongerThanTheLimitForCalls) {
  const SlowIndex slow(folder.path(), std::chrono::milliseconds(5000));
  comm::run_threads(3,
                    [&](Communicator& comm) {
                      serializers::Checkpoint state;
                      add_large(state, comm, 1, zeros({kLarge}, {dtype::uint8, cpu(0)}));
                      CheckpointFolder checkpoints(folder.path(), &comm);
                      checkpoints.save(state, 1);
                      EXPECT_EQ(checkpoints.steps(), std::vector<int64_t>{1});
                      EXPECT_TRUE(comm.rank() != 0 || checkpoints.times().written > 4);
                    },
                    {.timeout = 3});
}

TEST_F(CheckpointFolders, NobodyWaitsForEverForADiskThatDoesNotAnswer) {
  SlowIndex slow(folder.path(), std::chrono::minutes(1));
  comm::run_threads(3, [&](Communicator& comm) {
    serializers::Checkpoint state;
    add_large(state, comm, 1, zeros({kLarge}, {dtype::uint8, cpu(0)}));
    CheckpointFolder checkpoints(folder.path(), &comm, {.timeout = 2});
    const auto start = std::chrono::steady_clock::now();
    expect_contains(error_of<IoError>([&] { checkpoints.save(state, 1); }),
                    {"rank 0 has written its part, but not completed the checkpoint within 2 s",
                     "raise CheckpointFolderOptions::timeout"});
    // Rank 0 too, which leaves its thread behind.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  });
  slow.let_go();
  // That thread knows that its checkpoint has failed.
  for (int k = 0; k < 1000 && folder.entries() > 0; ++k)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(folder.entries(), 0);
}

// Failures of writing -----------------------------------------------------------------------------

TEST_F(CheckpointFolders, AFolderThatCannotBeMadeIsAnErrorOnAllRanks) {
  write_file(folder / "file", "");
  comm::run_threads(2, [&](Communicator& comm) {
    Session run;
    CheckpointFolder checkpoints(folder / "file/checkpoints", &comm);
    for (int round = 0; round < 2; ++round)
      expect_contains(error_of<IoError>([&] { checkpoints.save_async(run.state, 1); }),
                      {"rank 0", "the folder", "file/checkpoints", "Not a directory"});
  });
}

// Each rank in a working folder of its own, as on hosts that have the same path on disks of theirs.
TEST_F(CheckpointFolders, AFolderThatTheRanksDoNotShareIsNamed) {
  comm::run_threads(2, [&](Communicator& comm) {
    const std::string own = folder / std::to_string(comm.rank());
    fs::create_directory(own);
    ASSERT_EQ(::unshare(CLONE_FS), 0);  // from here on a folder of the thread
    ASSERT_EQ(::chdir(own.c_str()), 0);
    Session run;
    CheckpointFolder checkpoints("checkpoints", &comm);
    expect_contains(error_of<IoError>([&] { checkpoints.save(run.state, 1); }),
                    {"rank 1: there is no 'checkpoints/.step-000000000001.",
                     "which rank 0 has made", "share the file system of 'checkpoints'"});
    if (comm.rank() == 0) {
      EXPECT_TRUE(fs::is_empty("checkpoints"));
      CheckpointFolder("checkpoints").save(run.state, 1);
    }
    expect_contains(error_of<IoError>([&] { checkpoints.load(run.state); }),
                    {"rank 1: there is no checkpoint", "rank 0 reads it",
                     "share the file system of 'checkpoints'"});
  });
}

// Files cannot become longer, as if the disk were full.
class ShortFiles {
 public:
  explicit ShortFiles(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~ShortFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(CheckpointFolders, OneRankThatCannotWriteIsAnErrorOnAllAndTheOldOneStays) {
  for (const int failing : {0, 1, 2}) {
    const TempFolder folder;
    comm::run_threads(3, [&](Communicator& comm) {
      Session run(1);
      Array large = zeros({1 << 20}, {dtype::uint8, cpu(0)});
      add_large(run.state, comm, failing, large);
      CheckpointFolder checkpoints(folder.path(), &comm, {.timeout = 60});
      checkpoints.save(run.state, 1);
      const auto wait_for_all = [&] { comm.barrier(); };
      for (const bool is_async : {false, true}) {
        std::unique_ptr<ShortFiles> limit;
        wait_for_all();
        if (comm.rank() == 0) limit = std::make_unique<ShortFiles>(100'000);
        wait_for_all();
        std::string error;
        if (is_async) {
          EXPECT_TRUE(checkpoints.save_async(run.state, 2));
          error = error_of<IoError>([&] { checkpoints.save_async(run.state, 3); });
        } else {
          error = error_of<IoError>([&] { checkpoints.save(run.state, 2); });
        }
        EXPECT_EQ(error.find("rank "), error.rfind("rank ")) << error;
        expect_contains(error, {"step 2", message("rank ", failing).c_str(), "cannot write",
                                "File too large", "those before it are still there"});
        wait_for_all();
        limit.reset();
        wait_for_all();
      }
      EXPECT_EQ(checkpoints.load(run.state), 1);
      checkpoints.save(run.state, 4);
      EXPECT_EQ(checkpoints.load(run.state), 4);
    });
    EXPECT_EQ(folder.entries(), 2);
  }
}

TEST_F(CheckpointFolders, RanksWithOtherModelsAreNamed) {
  comm::run_threads(2, [&](Communicator& comm) {
    F::Linear layer(3, 4 + comm.rank());
    serializers::Checkpoint state;
    state.add("model", layer);
    CheckpointFolder checkpoints(folder.path(), &comm);
    expect_contains(error_of<ValueError>([&] { checkpoints.save(state, 1); }),
                    {"'model/W' stands for", "(4, 3)", "(5, 3)"});
  });
}

TEST_F(CheckpointFolders, RanksThatSaveDifferentThingsAreNamed) {
  comm::run_threads(3, [&](Communicator& comm) {
    const int rank = comm.rank();
    const bool is_last = rank == 2;
    Session run(1);
    if (is_last) run.state.add("more", run.count);
    serializers::Checkpoint alike;
    alike.add("model", run.model);
    CheckpointFolder checkpoints(folder.path(), &comm);
    expect_contains(error_of<ValueError>([&] { checkpoints.save(alike, is_last ? 4 : 3); }),
                    {"CheckpointFolder::save: the step is 3 on ranks 0, 1, 4 on rank 2",
                     "all ranks make the same calls"});
    expect_contains(error_of<ValueError>([&] { checkpoints.save(alike, is_last ? -1 : 3); }),
                    {"rank 2: expected a step of at least 0, got -1"});
    expect_contains(error_of<ValueError>([&] { checkpoints.save_async(run.state, 3); }),
                    {"the list of entries is (model, adam, count, note) on ranks 0, 1, (model, "
                     "adam, count, note, more) on rank 2"});
    expect_contains(error_of<ValueError>([&] {
                      if (is_last)
                        checkpoints.save_async(alike, 3);
                      else
                        checkpoints.save(alike, 3);
                    }),
                    {"the function that is called is CheckpointFolder::save on ranks 0, 1",
                     "CheckpointFolder::save_async on rank 2"});
    CheckpointFolder other(folder.path(), &comm,
                           {.when_busy = is_last ? WhenBusy::kSkip : WhenBusy::kWait});
    expect_contains(error_of<ValueError>([&] { other.save(alike, 3); }),
                    {".when_busy is kWait on ranks 0, 1, kSkip on rank 2"});
    CheckpointFolder more(folder.path(), &comm, {.keep = is_last ? 3 : 2});
    expect_contains(error_of<ValueError>([&] { more.save(alike, 3); }),
                    {".keep is 2 on ranks 0, 1, 3 on rank 2"});
    CheckpointFolder slower(folder.path(), &comm, {.timeout = is_last ? 60.0 : 30.0});
    expect_contains(error_of<ValueError>([&] { slower.save(alike, 3); }),
                    {".timeout is 30 on ranks 0, 1, 60 on rank 2"});
    EXPECT_TRUE(checkpoints.steps().empty());
    checkpoints.save(alike, 3);
    EXPECT_EQ(checkpoints.load(alike), 3);
  });
}

TEST_F(CheckpointFolders, RanksThatLoadDifferentStepsAreNamed) {
  comm::run_threads(2, [&](Communicator& comm) {
    Session run(1);
    CheckpointFolder checkpoints(folder.path(), &comm);
    checkpoints.save(run.state, 1);
    checkpoints.save(run.state, 2);
    run.train(1);
    const Values before = values_of(run.model);
    expect_contains(error_of<ValueError>([&] { checkpoints.load(run.state, 1 + comm.rank()); }),
                    {"CheckpointFolder::load: the checkpoint to load is that of step 1 on rank 0, "
                     "that of step 2 on rank 1"});
    expect_contains(error_of<ValueError>([&] {
                      if (comm.rank() == 0)
                        checkpoints.load(run.state);
                      else
                        checkpoints.load(run.state, 2);
                    }),
                    {"is the newest on rank 0, that of step 2 on rank 1"});
    EXPECT_EQ(values_of(run.model), before);
    checkpoints.load(run.state, 1);
  });
}

// Whether there was such a file in the folder that is being written.
bool remove_file_of_save(const TempFolder& folder, const std::string& file) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().extension() == ".tmp" && fs::remove(entry.path() / file, code)) return true;
  return false;
}

// Removes the folder of a save that has begun, into which files are being written, once it has this
// one.
void remove_unfinished(const TempFolder& folder, const std::string& file = "") {
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    std::error_code code;
    if (entry.path().extension() != ".tmp") continue;
    while (fs::exists(entry.path()) && !fs::exists(entry.path() / file)) std::this_thread::yield();
    while (fs::exists(entry.path())) fs::remove_all(entry.path(), code);
  }
}

TEST_F(CheckpointFolders, ASecondOneThatSavesAtTheSameTimeIsNamed) {
  comm::run_threads(2, [&](Communicator& comm) {
    Session run(1);
    Array large = zeros({kLarge}, {dtype::uint8, cpu(0)});
    run.state.add("large", large);
    CheckpointFolder first(folder.path(), &comm), second(folder.path(), &comm);
    first.save_async(run.state, 1);
    const std::string process = message("process ", ::getpid(), " on ");
    for (const auto& call : {std::function<void()>([&] { second.save(run.state, 2); }),
                             std::function<void()>([&] { second.clear(); })})
      expect_contains(error_of<IoError>(call),
                      {"is being written by", process.c_str(), "another CheckpointFolder saves to",
                       "give each run another folder"});
    first.wait();
    second.save(run.state, 2);  // one after the other
    EXPECT_EQ(first.load(run.state), 2);
  });
  EXPECT_EQ(folder.entries(), 2);
  for (const int64_t step : {1, 2})
    EXPECT_FALSE(fs::exists(newest_folder(folder, step) + "/.owner"));
}

// What a process that was killed leaves has no owner.
TEST_F(CheckpointFolders, ASaveWhoseProcessIsGoneIsReplaced) {
  const std::string unfinished = folder / ".step-000000000001.0123.tmp";
  fs::create_directory(unfinished);
  write_file(unfinished + "/.owner", "process 1 on elsewhere");
  Session run(1);
  CheckpointFolder(folder.path()).save(run.state, 2);
  EXPECT_EQ(folder.entries(), 1);
}

// It was killed while a process that it had forked lives on, a loader of data perhaps.
TEST_F(CheckpointFolders, ASaveWhoseProcessIsGoneIsNotKeptByItsChildren) {
  const std::string unfinished = folder / ".step-000000000001.0123.tmp";
  fs::create_directory(unfinished);
  int children[2];
  ASSERT_EQ(::pipe(children), 0);
  const pid_t saving = ::fork();
  if (saving == 0) {
    const SaveOwner owner(unfinished);
    const bool is_child = ::fork() == 0;
    const pid_t own = ::getpid();
    if (is_child) (void)!::write(children[1], &own, sizeof own);
    ::alarm(60);
    for (;;) ::pause();
  }
  pid_t child = 0;
  ASSERT_EQ(::read(children[0], &child, sizeof child), ssize_t(sizeof child));
  EXPECT_NE(owner_of(unfinished), "");
  ::kill(saving, SIGKILL);
  ::waitpid(saving, nullptr, 0);
  Session run(1);
  CheckpointFolder(folder.path()).save(run.state, 2);
  EXPECT_EQ(folder.entries(), 1);
  ::kill(child, SIGKILL);
  for (const int end : children) ::close(end);
}

// Nobody else can lock it and so keep this user from saving.
TEST_F(CheckpointFolders, OthersCannotOpenTheOwnersFile) {
  const SaveOwner owner(folder.path());
  EXPECT_EQ(fs::status(folder / ".owner").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

// By a program that knows nothing of owners, or where the file system has no locks.
TEST_F(CheckpointFolders, ASaveWhoseFolderDisappearsEndsWithAnError) {
  comm::run_threads(2, [&](Communicator& comm) {
    Session run(1);
    Array large = zeros({2 * kLarge}, {dtype::uint8, cpu(0)});
    add_large(run.state, comm, 1, large);
    CheckpointFolder checkpoints(folder.path(), &comm, {.timeout = 60});
    checkpoints.save_async(run.state, 1);
    if (comm.rank() == 0) remove_unfinished(folder);
    expect_contains(error_of<IoError>([&] { checkpoints.wait(); }),
                    {"was not written", ".tmp' was removed while it was written",
                     "another CheckpointFolder saves to"});
    checkpoints.save(run.state, 2);
    // Rank 0, whose part is written, does not wait for .timeout in the destructor either.
    const auto start = std::chrono::steady_clock::now();
    {
      CheckpointFolder others(folder.path(), &comm, {.timeout = 60});
      others.save_async(run.state, 3);
      if (comm.rank() == 0) remove_unfinished(folder, "rank-00000.done");
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  });
}

// Rank 1 is gone before it has said that its part is there. It has five seconds for a sign of life,
// not .timeout.
TEST_F(CheckpointFolders, ARankThatIsGoneDoesNotHoldUpAJobThatHasFailed) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(
      comm::run_threads(2,
                        [&](Communicator& comm) {
                          Session run(1);
                          const Array large = zeros({3 * kLarge / 2}, {dtype::uint8, cpu(0)});
                          add_large(run.state, comm, 0, large);
                          CheckpointFolder checkpoints(folder.path(), &comm);
                          checkpoints.save_async(run.state, 1);
                          if (comm.rank() == 0) return;
                          while (!remove_file_of_save(folder, "rank-00001.done"))
                            std::this_thread::yield();
                          comm.abort("rank 1 is gone");
                          throw IoError("rank 1 is gone");
                        }),
      Error);
  const auto seconds = std::chrono::steady_clock::now() - start;
  EXPECT_GT(seconds, std::chrono::seconds(4));
  EXPECT_LT(seconds, std::chrono::seconds(60));
  EXPECT_TRUE(CheckpointFolder(folder.path()).steps().empty());
}

// Failures of reading -----------------------------------------------------------------------------

struct Damaged {
  TempFolder folder;
  Session run{2};
  CheckpointFolder checkpoints{folder.path()};
  std::string newest = newest_folder(folder, 2), file = newest + "/rank-00000.slices";

  Damaged() {
    checkpoints.save(run.state, 1);
    run.train(1);
    checkpoints.save(run.state, 2);
  }
  std::string error() {
    return error_of<IoError>([&] { checkpoints.load(run.state, 2); });
  }
  // The one before is loaded instead.
  void expect_older() { EXPECT_EQ(checkpoints.load(run.state), 1); }
};

// A bit of a slice that differs: its size and the index are those that were written.
void change_a_bit(const std::string& file) {
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] ^= 1;
  write_file(file, bytes);
}

TEST_F(CheckpointFolders, ADamagedSliceIsNamedWithTheTensorAndTheOlderOneIsLoaded) {
  Damaged damaged;
  change_a_bit(damaged.file);
  expect_contains(damaged.error(), {damaged.file.c_str(), "is damaged", "'adam/", "checksum",
                                    "nothing was loaded", "load(state) takes the newest"});
  ::testing::internal::CaptureStderr();
  damaged.expect_older();
  expect_contains(::testing::internal::GetCapturedStderr(),
                  {"leaves out a checkpoint", damaged.file.c_str(), "is damaged"});
  EXPECT_EQ(damaged.run.adam.t(), 2);
}

TEST_F(CheckpointFolders, WhereAllSlicesAreDamagedNothingIsLoaded) {
  Damaged damaged;
  change_a_bit(damaged.file);
  change_a_bit(newest_folder(damaged.folder, 1) + "/rank-00000.slices");
  damaged.run.train(3);
  damaged.run.count = 99;
  const Values before = values_of(damaged.run.model);
  expect_contains(
      error_of<IoError>([&] { damaged.checkpoints.load(damaged.run.state); }),
      {"no complete checkpoint", "step-000000000001", "step-000000000002", "is damaged"});
  EXPECT_NE(damaged.error(), "no error");
  EXPECT_EQ(values_of(damaged.run.model), before);
  EXPECT_EQ(damaged.run.adam.t(), 6);
  EXPECT_EQ(damaged.run.count, 99);
}

// Only the rank that reads the damaged share sees it.
TEST_F(CheckpointFolders, AllRanksLeaveOutWhatOneFindsDamaged) {
  comm::run_threads(3, [&](Communicator& comm) {
    Session run(1);
    CheckpointFolder checkpoints(folder.path(), &comm);
    checkpoints.save(run.state, 1);
    const Values first = values_of(run.model);
    run.train(1);
    checkpoints.save(run.state, 2);
    if (comm.rank() == 0)
      for (const int rank : {1, 2})
        change_a_bit(newest_folder(folder, 2) + message("/rank-0000", rank, ".slices"));
    comm.barrier();
    expect_contains(error_of<IoError>([&] { checkpoints.load(run.state, 2); }),
                    {"rank ", ".slices' is damaged"});
    EXPECT_EQ(checkpoints.load(run.state), 1);
    EXPECT_EQ(values_of(run.model), first);
  });
}

TEST_F(CheckpointFolders, WhatIsWrongIsNamedAndTheOlderOneIsLoaded) {
  const auto change_index = [](const Damaged& damaged, const auto& change) {
    std::string text = read_file(damaged.newest + "/index.json");
    change(text);
    write_file(damaged.newest + "/index.json", text);
  };
  const struct {
    std::function<void(const Damaged&)> damage;
    std::vector<const char*> texts;
  } rows[] = {
      {[](const Damaged& d) { fs::resize_file(d.file, 100); },
       {"rank-00000.slices", "has 100 bytes", "truncated"}},
      {[](const Damaged& d) { fs::resize_file(d.file, fs::file_size(d.file) + 1); },
       {"rank-00000.slices", "damaged"}},
      {[](const Damaged& d) { fs::remove(d.file); },
       {"rank-00000.slices", "No such file", "copy the whole folder", "share"}},
      {[](const Damaged& d) { fs::remove(d.newest + "/complete"); },
       {"'complete'", "its save did not end"}},
      // Not read whole: a file may have terabytes that are not there.
      {[](const Damaged& d) { fs::resize_file(d.newest + "/complete", uintmax_t{1} << 40); },
       {"complete' is damaged", "1099511627776 bytes"}},
      {[&](const Damaged& d) { change_index(d, [](auto& text) { text.resize(text.size() - 3); }); },
       {"index.json' is damaged"}},
      {[&](const Damaged& d) {
         change_index(d, [](auto& text) { text[text.find("float32")] = 'F'; });
       },
       {"index.json' is damaged"}}};
  for (const auto& row : rows) {
    Damaged damaged;
    row.damage(damaged);
    for (const char* text : row.texts) expect_contains(damaged.error(), {text});
    damaged.expect_older();
  }
}

TEST_F(CheckpointFolders, ACheckpointUnderTheNameOfAnotherStepIsNamedAndTheOlderOneIsLoaded) {
  Damaged damaged;
  fs::rename(damaged.newest, newest_folder(damaged.folder, 3));
  expect_contains(error_of<IoError>([&] { damaged.checkpoints.load(damaged.run.state, 3); }),
                  {"step-000000000003' has the checkpoint of step 2", "'step-000000000002'"});
  damaged.expect_older();
}

TEST_F(CheckpointFolders, WhereNoneIsWholeAllAreListed) {
  Damaged damaged;
  fs::remove(damaged.newest + "/complete");
  fs::remove(newest_folder(damaged.folder, 1) + "/index.json");
  expect_contains(error_of<IoError>([&] { damaged.checkpoints.load(damaged.run.state); }),
                  {"no complete checkpoint", "'complete'", "step-000000000001", "index.json"});
  expect_contains(error_of<IoError>([&] { CheckpointFolder("/nowhere").load(damaged.run.state); }),
                  {"no complete checkpoint in '/nowhere'"});
  expect_contains(damaged.error(), {"'complete'"});
  expect_contains(error_of<IoError>([&] { damaged.checkpoints.load(damaged.run.state, 9); }),
                  {"there is no checkpoint", "step-000000000009"});
}

TEST_F(CheckpointFolders, AllTensorsThatDoNotFitAreListedAndNothingIsLoaded) {
  Session saved(2);
  CheckpointFolder checkpoints(folder.path());
  checkpoints.save(saved.state, 2);
  struct Other : FunctionSet {
    F::Linear l1 = catena::testing::layer(6, 9, dtype::float32, 50);
    F::Linear l2{9, 8}, more{3, 3};
    CATENA_FUNCTIONS(l1, l2, more)
  } other;
  const Values before = values_of(other);
  int64_t count = 0;
  serializers::Checkpoint state;
  state.add("model", other);
  state.add("count", count);
  state.add("rate", count);
  const std::string error = error_of<IoError>([&] { checkpoints.load(state); });
  expect_contains(error,
                  {"is not a checkpoint of this program", "missing: model/more/W (3, 3)",
                   "model/l2/W: expected (8, 9) float32, got (9, 9) float32", "missing: rate",
                   "unknown: adam", "unknown: note", "unknown: model/l3/W"});
  EXPECT_EQ(values_of(other), before);
  Session doubles(0, dtype::float64);
  expect_contains(error_of<IoError>([&] { checkpoints.load(doubles.state); }),
                  {"model/l1/W: expected (9, 6) float64, got (9, 6) float32"});
}

// Of plain entries too: those of other ranks would go on.
TEST_F(CheckpointFolders, EntriesOfAnotherFormAreListedAndNothingIsLoaded) {
  comm::run_threads(2, [&](Communicator& comm) {
    Session saved(2);
    Array array = zeros({3}, {dtype::float32, cpu(0)});
    saved.state.add("array", array);
    CheckpointFolder checkpoints(folder.path(), &comm);
    checkpoints.save(saved.state, 2);
    Session run(1);
    const Values before = values_of(run.model);
    serializers::Checkpoint state;
    float count = 5;
    std::vector<int64_t> note{8};
    Array longer = zeros({4}, {dtype::float32, cpu(0)});
    state.add("model", run.model);
    state.add("adam", run.adam);
    state.add("count", count);
    state.add("note", note);
    state.add("array", longer);
    expect_contains(error_of<IoError>([&] { checkpoints.load(state); }),
                    {"is not a checkpoint of this program",
                     "entry 'count' is int64 of shape (), expected float32",
                     "entry 'note' has 5 bytes, expected a multiple of 8",
                     "entry 'array' is float32 of shape (3,), expected float32 of shape (4,)"});
    EXPECT_EQ(values_of(run.model), before);
    EXPECT_EQ(run.adam.t(), 1);
    EXPECT_EQ(count, 5);
  });
}

TEST_F(CheckpointFolders, NumbersOfAnotherOptimizerAreListedAndNothingIsLoaded) {
  Session saved(2), run(1);
  optimizers::add_loss_scale(saved.adam, {.initial = 1024});
  CheckpointFolder checkpoints(folder.path());
  checkpoints.save(saved.state, 2);
  const Values before = values_of(run.model);
  expect_contains(error_of<IoError>([&] { checkpoints.load(run.state); }),
                  {"entry 'adam': these are not the numbers of this optimizer",
                   "unknown: loss_scale/value", "call add_loss_scale before"});
  EXPECT_EQ(values_of(run.model), before);
  EXPECT_EQ(run.adam.t(), 1);
}

// For root, whom permissions do not stop, another user while it lives.
class WithoutPrivileges {
 public:
  WithoutPrivileges() : is_root_(::geteuid() == 0) {
    if (is_root_) become(65534);
  }
  ~WithoutPrivileges() {
    if (is_root_) become(0);
  }
  WithoutPrivileges(const WithoutPrivileges&) = delete;
  WithoutPrivileges& operator=(const WithoutPrivileges&) = delete;

 private:
  static void become(uid_t user) { EXPECT_EQ(::seteuid(user), 0); }
  const bool is_root_;
};

TEST_F(CheckpointFolders, AFolderThatCannotBeReadOrWrittenDoesNotPassForAnEmptyOne) {
  Session run(1);
  CheckpointFolder checkpoints(folder.path());
  checkpoints.save(run.state, 1);
  fs::permissions(folder.path(), fs::perms(0555));
  {
    const WithoutPrivileges scope;
    expect_contains(error_of<IoError>([&] { checkpoints.clear(); }),
                    {"clear", "cannot remove", "step-000000000001", "Permission denied"});
  }
  {
    const WithoutPrivileges scope;
    expect_contains(error_of<IoError>([&] { CheckpointFolder(folder / "new").save(run.state, 1); }),
                    {"cannot make the folder '", "/new'", "Permission denied"});
  }
  fs::permissions(folder.path(), fs::perms(0));
  {
    const WithoutPrivileges scope;
    for (const auto& call : {std::function<void()>([&] { checkpoints.has_checkpoint(); }),
                             std::function<void()>([&] { checkpoints.load(run.state); })})
      expect_contains(error_of<IoError>(call), {"cannot read the folder", "Permission denied"});
  }
  fs::permissions(folder.path(), fs::perms(0700));
  EXPECT_TRUE(checkpoints.has_checkpoint());
  EXPECT_FALSE(CheckpointFolder(folder / "new").has_checkpoint());
}

// What cannot be read is not damaged: the older one is not taken, whose next save would remove the
// newer one.
TEST_F(CheckpointFolders, WhatCannotBeReadIsAnErrorOnAllRanksAndNoOlderOneIsLoaded) {
  comm::run_threads(3, [&](Communicator& comm) {
    Session run(1);
    CheckpointFolder checkpoints(folder.path(), &comm);
    checkpoints.save(run.state, 1);
    checkpoints.save(run.state, 2);
  });
  fs::permissions(folder.path(), fs::perms(0755));
  const auto load = [&](const std::function<void(const std::function<int64_t()>&)>& check) {
    comm::run_threads(3, [&](Communicator& comm) {
      Session run(1);
      CheckpointFolder checkpoints(folder.path(), &comm);
      check([&] { return checkpoints.load(run.state); });
    });
  };
  for (const char* name : {"/rank-00001.slices", "/index.json"}) {
    const std::string file = newest_folder(folder, 2) + name;
    fs::permissions(file, fs::perms(0));
    {
      const WithoutPrivileges scope;
      load([&](const auto& call) {
        expect_contains(error_of<IoError>([&] { call(); }),
                        {"rank ", file.c_str(), "Permission denied"});
      });
    }
    fs::permissions(file, fs::perms(0600));
  }
  load([](const auto& call) { EXPECT_EQ(call(), 2); });
}

// A check of an entry, of a program's own type of error, on one rank.
TEST_F(CheckpointFolders, ACheckOfAnEntryThatThrowsOnOneRankIsAnErrorOfAll) {
  comm::run_threads(2, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    random::default_state(comm.device()).seed(1);
    functions::Linear layer(2, 2);
    serializers::Checkpoint state;
    serializers::Checkpoint::Spread spread;
    spread.parts = [&] {
      return serializers::TensorParts{serializers::part_of("W", layer.W.data(), layer.W)};
    };
    spread.check_values = [&](const auto&) {
      if (comm.rank() == 1) throw std::runtime_error("not this one");
    };
    state.add("layer", spread);
    CheckpointFolder checkpoints(folder.path(), &comm);
    checkpoints.save(state, 1);
    expect_contains(error_of<IoError>([&] { checkpoints.load(state); }),
                    {"CheckpointFolder::load: rank 1: not this one"});
  });
}

TEST_F(CheckpointFolders, AnErrorOfOneRankIsAnErrorOfAll) {
  comm::run_threads(2, [&](Communicator& comm) {
    Session run(1);
    CheckpointFolder checkpoints(folder.path(), &comm);
    checkpoints.save(run.state, 1);
    serializers::Checkpoint state;
    state.add("model", run.model);
    state.add("adam", run.adam);
    state.add("note", run.note);
    state.add(
        "count", [] { return int64_t{0}; },
        [&](int64_t) { CATENA_CHECK(ValueError, comm.rank() == 0, "this rank does not want it"); });
    expect_contains(error_of<ValueError>([&] { checkpoints.load(state); }),
                    {"rank 1: this rank does not want it", "a part of '", "was loaded",
                     "load another checkpoint"});
  });
}

TEST_F(CheckpointFolders, RefusesWrongArguments) {
  Session run;
  expect_contains(error_of<ValueError>([] { CheckpointFolder folder(""); }), {"path is empty"});
  expect_contains(error_of<ValueError>([] { CheckpointFolder f("a", nullptr, {.keep = 0}); }),
                  {".keep is 0"});
  expect_contains(error_of<ValueError>([] { CheckpointFolder f("a", nullptr, {.timeout = 0}); }),
                  {".timeout is 0"});
  expect_contains(error_of<ValueError>([&] { CheckpointFolder("a").save(run.state, -1); }),
                  {"step of at least 0", "-1"});
}

// GPUs --------------------------------------------------------------------------------------------

// Copies to page-locked memory run beside what follows, which waits before it writes.
TEST_F(CheckpointFolders, OfAGpuHasTheValuesOfItsMoment) {
  CATENA_NEEDS_GPU();
  const Device gpu("cuda:0");
  Array large = zeros({32 << 20}, {dtype::float32, gpu});
  serializers::Checkpoint state;
  state.add("large", large);
  CheckpointFolder checkpoints(folder.path(), nullptr, {.keep = 100});
  for (int step = 0; step < 5; ++step) {
    large.fill(step);
    checkpoints.save_async(state, step);
    large.fill(-1);  // at once: behind the copy on the device
  }
  checkpoints.wait();
  for (int step = 0; step < 5; ++step) {
    checkpoints.load(state, step);
    const Array host = large.to_cpu();
    EXPECT_EQ(host.min().item<double>(), step);
    EXPECT_EQ(host.max().item<double>(), step);
  }
  // A model and states on the GPU, loaded on the CPU.
  Session run(0);
  run.model.to(gpu);
  run.adam.settle_layout();
  for (const Parameter& p : run.model.parameters()) p.set_grad(wave(p.shape(), 1, p.dtype()));
  run.adam.update();
  CheckpointFolder of_run(folder / "run");
  of_run.save(run.state, 1);
  Session on_cpu(3);
  of_run.load(on_cpu.state);
  EXPECT_EQ(values_of(on_cpu.model), values_of(run.model));
  EXPECT_EQ(on_cpu.adam.t(), 1);
}

}  // namespace
}  // namespace catena::training
