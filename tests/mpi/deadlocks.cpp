// Calls that wait for each other in a circle, over processes, in the job of suite_main.cpp.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "catena/comm/factory.h"
#include "catena/parallel/functions.h"
#include "comm/suite.h"
#include "error_text.h"

namespace catena {
namespace {

using Clock = std::chrono::steady_clock;

// The CommError that ends f on this rank, long before calls run into their timeout.
std::string early_error(Communicator& comm, const std::function<void(const Array&)>& f) {
  const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, 0);
  comm.barrier();
  const auto start = Clock::now();
  const std::string text = error_of<CommError>([&] { f(x); });
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), 15) << text;
  return text;
}

CommunicatorPtr make_mpi() { return create_communicator("mpi", {.timeout = 60}); }

TEST(ProcessDeadlock, SaysWhichFunctionsWait) {
  const CommunicatorPtr comm = make_mpi();
  const std::string text = early_error(*comm, [&](const Array&) {
    if (comm->rank() < 2) functions::recv(*comm, 1 - comm->rank());
    comm->barrier();
  });
  expect_contains(text, {"deadlock", "from rank 1, in the header of F::recv",
                         "from rank 0, in the header of F::recv"});
  EXPECT_EQ(text.find("group"), std::string::npos) << text;
}

TEST(ProcessDeadlock, ARingOfGroupsThatOnlySend) {
  const CommunicatorPtr comm = make_mpi();
  const std::string text = early_error(*comm, [&](const Array& x) {
    comm->group([&] { comm->send(x, (comm->rank() + 1) % comm->size()); });
    comm->recv(x, (comm->rank() + comm->size() - 1) % comm->size());
  });
  expect_contains(text, {"deadlock", "rank 0 waited in send #1 float32[4] to rank 1", "group"});
}

TEST(ProcessDeadlock, IsNotAPeerThatIsLate) {
  const CommunicatorPtr comm = make_mpi();
  const Array x = comm_suite::make(*comm, {4}, Dtype::kFloat32, 0);
  for (int round = 0; round < 2; ++round) {
    if (comm->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(700));
    if (comm->rank() == 0) comm->send(x, 1);
    if (comm->rank() == 1) comm->recv(x, 0);
    comm->group([&] {  // whose calls are made slowly
      comm->recv(x, (comm->rank() + comm->size() - 1) % comm->size());
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      comm->send(comm_suite::make(*comm, {4}, Dtype::kFloat32, 1),
                 (comm->rank() + 1) % comm->size());
    });
    comm->barrier();
  }
}

// The numbers of the part are those of the job backwards.
std::string part_of_job(const Communicator& comm) {
  std::string part, job;
  for (int r = 0; r < comm.size(); ++r) {
    part += (r ? ", " : "") + std::to_string(r);
    job += (r ? ", " : "") + std::to_string(comm.size() - 1 - r);
  }
  return " (ranks of a part of the job: " + part + " are ranks " + job + " of the job)";
}

TEST(ProcessDeadlock, OfAPartNamesTheRanksOfTheJob) {
  const CommunicatorPtr comm = make_mpi(), part = comm->split(0, -comm->rank());
  const std::string text = early_error(*part, [&](const Array& x) {
    if (part->rank() < 2) part->recv(x, 1 - part->rank());
    part->barrier();
  });
  expect_contains(text, {"rank 0 waited in recv #1", part_of_job(*comm).c_str()});
}

TEST(ProcessMismatch, OfAPartNamesTheRanksOfTheJob) {
  const CommunicatorPtr comm = make_mpi(), part = comm->split(0, -comm->rank());
  const std::string text = early_error(*part, [&](const Array& x) {
    if (part->rank() == 1)
      part->all_reduce(x, comm::Reduction::kMax);
    else
      part->all_reduce(x);
  });
  expect_contains(text, {"rank 1 called all_reduce #2 max", part_of_job(*comm).c_str()});
}

}  // namespace
}  // namespace catena
