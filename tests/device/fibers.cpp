#include "device/fibers.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace fibers {
namespace {

constexpr unsigned kMost = 1024;
constexpr std::size_t kStackBytes = 64 << 10;

struct Block {
  const std::function<void(unsigned)>* body = nullptr;
  ucontext_t caller;
  std::vector<ucontext_t> fibers;
  std::vector<unsigned> ready;
  unsigned running = 0, left = 0;
  Order order = Order::kAny;
  std::minstd_rand draw;
};
Block block;

// One for each fiber, kept from block to block; the page below each cannot be touched, so that a
// kernel that needs more ends at once.
std::byte* stack_of(unsigned index) {
  static const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE)), step = kStackBytes + page;
  static std::byte* const all = [] {
    void* memory =
        mmap(nullptr, kMost * step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    for (unsigned fiber = 0; fiber < kMost; ++fiber) {
      std::byte* const stack = static_cast<std::byte*>(memory) + fiber * step + page;
      if (mprotect(stack, kStackBytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    }
    return static_cast<std::byte*>(memory);
  }();
  return all + index * step + page;
}

// One of the fibers that can go on; the caller of run() where none can.
ucontext_t* next_of_block() {
  if (block.ready.empty()) return &block.caller;
  if (block.order == Order::kAny)
    std::swap(block.ready[block.draw() % block.ready.size()], block.ready.back());
  block.running = block.ready.back();
  block.ready.pop_back();
  return &block.fibers[block.running];
}

void run_fiber() {
  (*block.body)(block.running);
  --block.left;
  setcontext(next_of_block());
}

}  // namespace

void run(unsigned count, const std::function<void(unsigned)>& body, Order order) {
  if (count > kMost) throw std::logic_error("a block has at most 1024 threads");
  block.body = &body;
  block.left = count;
  block.order = order;
  block.fibers.resize(count);
  block.ready.clear();
  for (unsigned index = 0; index < count; ++index) {
    ucontext_t& fiber = block.fibers[index];
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack_of(index);
    fiber.uc_stack.ss_size = kStackBytes;
    fiber.uc_link = nullptr;
    makecontext(&fiber, run_fiber, 0);
    block.ready.push_back(index);
  }
  swapcontext(&block.caller, next_of_block());
  if (block.left > 0)
    throw std::logic_error(std::to_string(block.left) +
                           " threads of a block wait for others that do not come");
}

void Meeting::wait() {
  const unsigned self = block.running;
  waiting_.push_back(self);
  if (waiting_.size() == expected_) {
    block.ready.insert(block.ready.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  ucontext_t* const next = next_of_block();
  if (next != &block.fibers[self]) swapcontext(&block.fibers[self], next);
}

}  // namespace fibers
