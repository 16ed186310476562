// Started by the tests under mpirun or catena-run: rank 1 misbehaves as the first argument says, on
// the communicator that the second names ("mpi"). With mismatch:NAME and capture:NAME the last rank
// makes the calls of that case of the suites.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/comm/factory.h"
#include "catena/comm/fault.h"
#include "catena/comm/internals.h"
#include "catena/comm/run_main.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "comm/suite.h"
#include "set_up.h"

using namespace catena;
using catena::comm::Fault;
using catena::comm::Reduction;

namespace {

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

// Calls of MPI that do not return, as when the network below hangs.
std::atomic<bool> testall_hangs{false}, finalize_hangs{false};

template <class Function>
Function in_mpi(const char* name) {
  return reinterpret_cast<Function>(dlsym(dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD), name));
}

}  // namespace

// Found before those of the library, as the program exports its symbols. MPI's handles are
// pointers.
extern "C" int MPI_Testall(int count, void* requests, int* done, void* statuses) {
  if (testall_hangs) sleep_for_ever();
  return in_mpi<int (*)(int, void*, int*, void*)>("PMPI_Testall")(count, requests, done, statuses);
}
extern "C" int MPI_Finalize() {
  if (finalize_hangs) sleep_for_ever();
  return in_mpi<int (*)()>("PMPI_Finalize")();
}

namespace {

// A destructor that runs after the end of MPI.
struct Late {
  ~Late() {
    if (hangs) sleep_for_ever();
  }
  bool hangs = false;
} late;

// What a rank forks must not speak for it, whichever way it ends.
void fork_child(const std::string& fault, Communicator& comm) {
  const pid_t child = fork();
  if (child == 0) {
    const std::function<void()> fail = [] { throw std::runtime_error("of the child"); };
    if (fault == "fork_throw") fail();
    if (fault == "fork_terminate") [&]() noexcept { fail(); }();
    if (fault == "fork_call") comm.barrier();
    std::exit(fault == "fork_exit" ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

// Before the ranks have met.
void misbehave_early(const std::string& fault) {
  if (comm::launch_environment().rank != 1) return;
  if (fault == "stop_early") std::raise(SIGSTOP);
  if (fault == "late") std::this_thread::sleep_for(std::chrono::seconds(30));
  if (fault == "absent") std::exit(0);
}

// In memory of the communicator, if it has such. Sums then go by copy engines.
Array arena(Communicator& comm, int64_t n) {
  const comm::CommunicatorInternals inside = comm::internals(comm);
  inside.prepare_scattered_sums(size_t(n) * 4);
  const std::string ways = inside.ways();
  if (ways.find("mapped by all ranks") != std::string::npos &&
      ways.find("scattered sums of arenas") == std::string::npos)
    throw std::logic_error("sums do not go by copy engines: " + ways);
  const StoragePtr storage = inside.allocate_shared(size_t(n) * 4);
  if (!storage) return zeros({n}, {Dtype::kFloat32, comm.device()});
  const Array x = Array::from_storage(storage, 0, {n}, contiguous_strides({n}, 4), Dtype::kFloat32);
  x.fill(0);
  return x;
}

constexpr int64_t kArena = 5040000;  // can be cut into 2 to 8 parts

// The result is on the host when it returns: what is wrong with a call of a GPU shows here.
void reduce_and_wait(Communicator& comm, const Array& x, Reduction kind = Reduction::kSum) {
  const int64_t part = x.size() / comm.size();
  if (x.size() == kArena)
    comm.reduce_scatter_async(x, kind, x(Slice(comm.rank() * part, (comm.rank() + 1) * part)),
                              comm.side_stream(), {comm::TagKind::kBucket, 1, 0});
  else
    comm.all_reduce(x, kind);
  synchronize(comm.device());
}

template <class C>
const C& find_case(const std::vector<C>& cases, const std::string& name) {
  for (const C& one : cases)
    if (one.name == name) return one;
  throw std::invalid_argument("no case is named " + name);
}

// A result of calls that differ must not be read: NCCL runs these to their end.
void read_sum_of_max(Communicator& comm, bool odd) {
  const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank());
  const Array y = comm.all_reduce(x, odd ? Reduction::kMax : Reduction::kSum);
  std::printf("%g was read\n", comm_suite::to_doubles(y)[0]);
}

void disagree(Communicator& comm, const std::string& kind, const std::string& name) {
  const bool odd = comm.rank() == comm.size() - 1;
  if (kind == "read") return read_sum_of_max(comm, odd);
  if (kind == "capture")
    return comm_suite::capture_differently(comm, find_case(comm_suite::capture_cases(), name));
  find_case(comm_suite::mismatch_cases(), name).body(comm, odd);
  synchronize(comm.device());
  // A rank whose own work was done, as a broadcast's root's is, is told at its next host call.
  comm.barrier();
  synchronize(comm.device());
}

// Three equal calls, then those of the case; the CommError that ends them says how long it took.
int run_disagreement(const std::string& communicator, const std::string& fault) {
  const size_t colon = fault.find(':');
  const std::string name = colon == std::string::npos ? "" : fault.substr(colon + 1);
  const CommunicatorPtr comm = create_communicator(communicator);
  const Array x = comm_suite::make(*comm, {4}, Dtype::kFloat32, comm->rank());
  for (int i = 0; i < 3; ++i) reduce_and_wait(*comm, x);
  const auto start = std::chrono::steady_clock::now();
  try {
    disagree(*comm, fault.substr(0, colon), name);
  } catch (const CommError&) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%s after %.2f s\n", took.count() < 10 ? "noticed" : "noticed too late,",
                took.count());
    throw;
  }
  std::printf("rank %d was told nothing\n", comm->rank());
  return 1;
}

bool is_disagreement(const std::string& fault) {
  return fault == "read" || fault.find(':') != std::string::npos;
}

// A child process of the rank stops it for a while, as Ctrl-Z and fg do.
void pause_for(int seconds) {
  const pid_t rank = getpid();
  if (fork() > 0) return;
  kill(rank, SIGSTOP);
  sleep(unsigned(seconds));
  kill(rank, SIGCONT);
  _exit(0);
}

// Healthy ranks, of which one is or all are paused for longer than others wait without a question.
void reduce_with_pauses(Communicator& comm, const Array& x, bool all) {
  for (int pause = 0; pause < 2; ++pause) {
    if (all || comm.rank() == 1) pause_for(3);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(4);
    while (comm.all_reduce_value(double(std::chrono::steady_clock::now() < until),
                                 Reduction::kMin) > 0)
      comm.all_reduce(x);
  }
}

// Data-parallel steps in which rank 1 differs.
void train_apart(Communicator& comm, const std::string& fault) {
  functions::Linear model(3, 2);
  auto optimizer = catena::testing::set_up(model, optimizers::SGD(0.1), comm);
  for (int step = 1; step <= 5; ++step) {
    optimizer.zero_grads();
    const bool odd = comm.rank() == 1 && step == 3;
    optimizer.set_batch_weight(odd && fault == "weights" ? 3 : 4, 4 * comm.size());
    functions::sum(model(ones({4, 3}, {Dtype::kFloat32, comm.device()}))).backward();
    if (!(odd && fault == "skip_update")) optimizer.update();
  }
}

// Rank 1 sends one large message of the two that rank 0 waits for.
void end_between_messages(Communicator& comm, const std::string& fault) {
  const Array x = zeros({300000}, {Dtype::kFloat32, comm.device()});
  if (comm.rank() == 0) {
    comm.recv(x, 1);
    comm.recv(x, 1);
  }
  if (comm.rank() == 1) comm.send(x, 0);
  synchronize(comm.device());
  if (comm.rank() == 1 && fault == "kill_between_messages") std::raise(SIGKILL);
  if (comm.rank() == 1) throw std::runtime_error("rank 1 has no disk");
}

// Sets what happens in call #2, or does it now; true when the program is to end.
bool misbehave(Communicator& comm, const std::string& fault, const Array& x) {
  if (fault == "exit") inject_fault(comm, {.kind = Fault::Kind::kExit, .at_call = 2, .seconds = 3});
  if (fault == "kill") inject_fault(comm, {.kind = Fault::Kind::kKill, .at_call = 2});
  if (fault == "hang")
    inject_fault(comm, {.kind = Fault::Kind::kDelay, .at_call = 2, .seconds = 30});
  if (fault == "throw") throw std::runtime_error("rank 1 has no disk");
  if (fault == "abort") comm.abort("loss is NaN");
  if (fault == "leave") _exit(0);
  if (fault == "stop") std::raise(SIGSTOP);
  if (fault == "stuck") testall_hangs = true;
  if (fault == "finalize") finalize_hangs = true;
  if (fault == "late_exit") std::atexit(sleep_for_ever);
  if (fault == "destructor") late.hangs = true;
  if (fault == "send") comm.send(x, 2);
  if (fault.starts_with("fork")) fork_child(fault, comm);
  if (fault == "max") reduce_and_wait(comm, x, Reduction::kMax);
  return fault == "return" || fault == "return_from_messages";
}

int run(const std::string& given, const std::string& communicator) {
  // A fault in a sum of many elements, "kill_large", or of an optimizer's arena: "kill_arena".
  const bool is_large = given.ends_with("_large"), is_arena = given.ends_with("_arena");
  const std::string fault = is_large || is_arena ? given.substr(0, given.rfind('_')) : given;
  if (is_disagreement(fault)) return run_disagreement(communicator, fault);
  misbehave_early(fault);
  const CommunicatorPtr comm = create_communicator(communicator);
  const Array x = is_arena ? arena(*comm, kArena)
                           : zeros({is_large ? 300000 : 4}, {Dtype::kFloat32, comm->device()});
  reduce_and_wait(*comm, x);
  if (comm->rank() == 1 && misbehave(*comm, fault, x)) return 0;
  if (fault.starts_with("pause")) reduce_with_pauses(*comm, x, fault == "pause_all");
  if (fault == "return_from_messages" && comm->rank() == 0) comm->recv(x, 1);
  if (fault.ends_with("_between_messages")) end_between_messages(*comm, fault);
  const comm::PurposeScope purpose(comm.get(), comm->rank() == 1 ? "evaluate" : "update");
  if (fault == "weights" || fault == "skip_update") train_apart(*comm, fault);
  if (fault == "types" && comm->rank() == 1)
    comm->broadcast_object(1.0f);
  else if (fault == "types")
    comm->broadcast_object(5);
  reduce_and_wait(*comm, x);
  comm->close();
  if (comm->rank() == 0) std::printf("all went well over %s\n", comm->name().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "", communicator = argc > 2 ? argv[2] : "mpi";
  if (fault == "uncaught") {
    run("throw", communicator);
    return 0;
  }
  try {
    return run(fault, communicator);
  } catch (const std::exception& error) {
    std::printf("seen: %s\n", error.what());
    std::fflush(stdout);
    report_failure(error);
    return 7;
  }
}
