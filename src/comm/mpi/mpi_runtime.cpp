#include "mpi_runtime.h"

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "catena/core/log.h"
#include "comm/diagnosis/wrong_size.h"

namespace catena::comm::mpi {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail<CommError>(call, " failed: ", text);
}

namespace {
std::mutex& mutex() {
  static auto* one = new std::mutex;  // used at exit
  return *one;
}
}  // namespace

Lock::Lock() : lock_(mutex()), slot_(process_slot()) { slot_.enter_library(); }
Lock::~Lock() { slot_.leave_library(); }

bool ended() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

namespace {

double exit_timeout = 600;
MPI_Comm exit_comm = MPI_COMM_NULL;
pid_t rank_process = 0;

// Texts about the failure that are still on their way to other ranks leave with MPI's progress.
void send_last_messages() {
  for (int tries = 0; tries < 100; ++tries) {
    int there = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, 0, exit_comm, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    usleep(1000);
  }
}

// Whether all ranks have come here, before the deadline. The wait is not inside MPI_Finalize, where
// nothing could end it.
bool meet_at_exit() {
  MPI_Request request;
  int done = MPI_Ibarrier(exit_comm, &request) != MPI_SUCCESS;
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(exit_timeout);
  for (int tries = 0; !done && std::chrono::steady_clock::now() < deadline; ++tries) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    if (tries < 1000)
      sched_yield();
    else
      usleep(1000);
  }
  return done != 0;
}

// A rank that is done early waits here for the others, which may still need its progress; but not
// for ever. A rank that failed waits for nobody: whoever started the job ends the others. A child
// that a rank forked has no part in the rank's MPI.
void end_at_exit(int status, void*) {
  if (getpid() != rank_process || ended()) return;
  if (status != 0) return send_last_messages();
  StatusSlot slot = process_slot();
  slot.set_exit_stage(ExitStage::waiting);
  if (meet_at_exit()) {
    slot.set_exit_stage(ExitStage::ending);
    MPI_Finalize();
    slot.set_exit_stage(ExitStage::released);
    return;
  }
  int culprit = -1;
  const std::string text = describe_missing_at_exit(exit_timeout, &culprit);
  slot.fail_because_of_peer(culprit, text);
  logging::error("mpi: ", text, "; leaving without them");
  MPI_Abort(MPI_COMM_WORLD, 1);
}

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;
}

void check_size() {
  int size = 0;
  CATENA_MPI(MPI_Comm_size, MPI_COMM_WORLD, &size);
  const LaunchEnvironment launch = launch_environment();
  CATENA_CHECK(CommError, !launch.launched || launch.size == size,
               describe_wrong_size(launch, size, library_version()));
}

// Where srun gave it nothing to find the others by, MPI_Init of Open MPI ends the process, with
// words about how the library was built and without exit handlers.
void warn_of_missing_connection() {
  const LaunchEnvironment launch = launch_environment();
  const std::string text = describe_missing_connection(launch, library_version());
  if (!text.empty() && launch.rank == 0) logging::warning(text);
}

// A rank has its place in the job until MPI_Finalize: a program that starts MPI after that, in the
// place of one that has ended it, is told by Open MPI about Open MPI's insides.
void refuse_second_program() {
  const char* name = std::getenv("CATENA_STATUS_BOARD");
  if (!name || !*name) return;
  SlotSnapshot slot;
  try {
    const StatusBoard board = StatusBoard::attach_from_environment();
    slot = board.read(board.local_rank());
  } catch (const std::exception&) {  // find_board() says so to all ranks, once they have met
  }
  CATENA_CHECK(CommError, slot.exit_stage == ExitStage::none, "create_communicator: rank ",
               slot.rank, " has run another program of the job before this one, process ", slot.pid,
               ", which has used MPI and ended it, and a rank can start MPI once; give each "
               "program its own catena-run: catena-run ./train && catena-run ./test");
}

}  // namespace

void start(const CommunicatorOptions& options) {
  static bool started = false;
  if (started) {
    CATENA_CHECK(CommError, !ended(),
                 "mpi: MPI_Finalize was called; no communicator can be made after it");
    return;
  }
  CATENA_CHECK(CommError, !ended(),
               "mpi: MPI_Finalize was called; no communicator can be made after it");
  int running = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&running);
  if (running) {
    CATENA_MPI(MPI_Query_thread, &provided);
  } else {
    refuse_second_program();
    warn_of_missing_connection();
    CATENA_MPI(MPI_Init_thread, nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  }
  CATENA_CHECK(CommError, provided >= MPI_THREAD_SERIALIZED, "mpi: MPI runs with thread level ",
               provided, ", catena needs at least MPI_THREAD_SERIALIZED (",
               int(MPI_THREAD_SERIALIZED),
               "); call MPI_Init_thread with it, or leave the start of MPI to catena");
  CATENA_MPI(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CATENA_MPI(MPI_Comm_set_errhandler, MPI_COMM_SELF, MPI_ERRORS_RETURN);
  check_size();
  exit_timeout = timeout_of(options);
  if (!running) {
    CATENA_MPI(MPI_Comm_dup, MPI_COMM_WORLD, &exit_comm);
    rank_process = getpid();
    on_exit(end_at_exit, nullptr);  // as atexit, with the exit code
  }
  started = true;
}

}  // namespace catena::comm::mpi
