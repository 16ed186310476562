// A plain MPI program: an all-reduce, then the fault that the argument names on the last rank.
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "status/process_board.h"

// As a program that uses catena: its exit handler notes the code, of which the system keeps 8 bits.
[[noreturn]] void exit_with_board(int rank, int code) {
  using catena::comm::StatusBoard;
  StatusBoard board = StatusBoard::attach_from_environment();
  const int slot = board.local_rank();
  catena::comm::adopt_board(std::move(board), slot, rank);
  std::exit(code);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::string mode = argc > 1 ? argv[1] : "none";
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int sum = 0;
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("sum %d of %d ranks\n", sum, size);
  if (rank == size - 1 && mode == "abort") MPI_Abort(MPI_COMM_WORLD, 7);
  if (rank == size - 1 && mode == "kill") std::raise(SIGKILL);
  if (rank == size - 1 && mode == "exit256") exit_with_board(rank, 256);
  if (mode == "wait") {
    if (rank == 0) std::printf("waiting\n");
    std::fflush(stdout);
    sleep(2);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
