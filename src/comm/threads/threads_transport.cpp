#include "threads_transport.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "catena/array/elementwise.h"
#include "catena/kernels/elementwise_ops.h"
#include "comm/communicator_state.h"
#include "team.h"

namespace catena::comm {

ThreadsTransport::ThreadsTransport(std::shared_ptr<Team> team, int rank)
    : team_(std::move(team)), rank_(rank) {
  for (int r = 0; r < team_->size(); ++r)
    hosts_.push_back(team_->world().hosts[size_t(team_->world_rank(r))]);
}

namespace {

// Moves data: by raw pointers on the CPU, by array operations on GPUs. Offsets and counts are in
// elements of flat arrays.
class Mover {
 public:
  virtual ~Mover() = default;
  // Called before other ranks read this rank's input.
  virtual void publish(const Call& call) {}
  virtual void copy(const Array& target, int64_t to, const Array& source, int64_t from,
                    int64_t count) = 0;
  // Elements [from, from + count) of all ranks' inputs, reduced in rank order.
  virtual Array reduce(const Team& team, const Call& call, int64_t from, int64_t count) = 0;
  // Returns when everything asked for is done.
  virtual void finish(const Call& call) {}
};

char* address(const Array& a, int64_t offset) {
  return static_cast<char*>(a.raw_data()) + offset * a.itemsize();
}

class HostMover : public Mover {
 public:
  void copy(const Array& target, int64_t to, const Array& source, int64_t from,
            int64_t count) override {
    char* destination = address(target, to);
    const char* origin = address(source, from);
    if (count > 0 && destination != origin)
      std::memcpy(destination, origin, size_t(count * target.itemsize()));
  }

  Array reduce(const Team& team, const Call& call, int64_t from, int64_t count) override {
    Array result = Array::uninitialized({count}, call.dtype, cpu(0));
    std::vector<const void*> inputs;
    std::vector<double> weights;
    for (int r = 0; r < team.size(); ++r) {
      inputs.push_back(address(*team.post(r).input, from));
      weights.push_back(team.post(r).weight);
    }
    ordered_reduce(call.dtype, call.effective_reduction(), inputs, weights, count,
                   result.raw_data());
    return result;
  }
};

class ArrayMover : public Mover {
 public:
  void publish(const Call& call) override {
    if (call.stream.state()) call.stream.synchronize();
  }

  void copy(const Array& target, int64_t to, const Array& source, int64_t from,
            int64_t count) override {
    const Array destination = piece(target, to, count);
    const Array origin = piece(source, from, count);
    if (count > 0 && destination.raw_data() != origin.raw_data()) destination.assign(origin);
  }

  Array reduce(const Team& team, const Call& call, int64_t from, int64_t count) override {
    const Device device = call.output ? call.output->device() : call.input->device();
    const Dtype compute = call.dtype == Dtype::kBool    ? Dtype::kUInt8
                          : is_narrow_float(call.dtype) ? Dtype::kFloat32
                                                        : call.dtype;
    Array sum;
    for (int r = 0; r < team.size(); ++r) {
      Array x = piece(*team.post(r).input, from, count).to(device).astype(compute, false);
      if (call.reduction == Reduction::kWeighted)
        x = elementwise(ops::multiply, {x, team.post(r).weight});
      sum = sum.defined() ? elementwise(op_of(call.effective_reduction()), {sum, x}) : x;
    }
    if (call.reduction == Reduction::kMean)
      sum = elementwise(ops::divide, {sum, double(team.size())});
    return sum.astype(call.dtype, false);
  }

  void finish(const Call& call) override {
    if (call.stream.state()) call.stream.synchronize();
  }

 private:
  static Array piece(const Array& a, int64_t from, int64_t count) {
    return a.reshape({-1})(Slice(from, from + count));
  }
  static ElementwiseOp op_of(Reduction reduction) {
    switch (reduction) {
      case Reduction::kMin: return ops::minimum;
      case Reduction::kMax: return ops::maximum;
      case Reduction::kProduct: return ops::multiply;
      default: return ops::add;
    }
  }
};

Mover& host_mover() {
  static HostMover mover;
  return mover;
}

Mover& array_mover() {
  static ArrayMover mover;
  return mover;
}

// Below this many bytes every rank reduces everything itself, which saves a meeting.
constexpr int64_t kSmall = 16 * 1024;

Mover& mover_of(const ThreadWorld& world, const Call& call) {
  const Array* any = call.input ? call.input : call.output;
  return world.generic || (any && any->device().is_cuda()) ? array_mover() : host_mover();
}

// A collective between its first meeting (calls compared, inputs published) and its last.
class Round {
 public:
  Round(Team& team, int me, const Call& call, Mover& mover)
      : team_(team), me_(me), call_(call), mover_(mover) {}

  void move() {
    const int64_t n = call_.count;
    switch (call_.op) {
      case CommOp::kAllReduce: return all_reduce(n);
      case CommOp::kReduceScatter: return reduce(me_ * n, n, true);
      case CommOp::kReduce: return reduce(0, n, me_ == call_.root);
      case CommOp::kAllGather: return gather(n, true);
      case CommOp::kGather: return gather(n, me_ == call_.root);
      case CommOp::kBroadcast: return from_root(0, n);
      case CommOp::kScatter: return from_root(me_ * n, n);
      case CommOp::kAllToAll: return all_to_all(n);
      case CommOp::kBarrier: return;
      default: fail<CommError>("threads: cannot run ", name(call_.op));
    }
  }

 private:
  const Array& input(int r) const { return *team_.post(r).input; }
  int size() const { return team_.size(); }
  // Everybody has read what it needs from the inputs.
  void meet_between() {
    mover_.finish(call_);
    team_.meet(me_, call_, false, true);
  }

  // An output may be the input: nothing is written before all have read.
  void reduce(int64_t from, int64_t n, bool wanted) {
    Array sum;
    if (wanted) sum = mover_.reduce(team_, call_, from, n);
    meet_between();
    if (wanted) mover_.copy(*call_.output, 0, sum, 0, n);
  }

  void all_reduce(int64_t n) {
    if (n * int64_t(itemsize(call_.dtype)) <= kSmall || size() == 1) return reduce(0, n, true);
    const auto begin = [&](int r) { return n * r / size(); };
    team_.scratch(me_) = mover_.reduce(team_, call_, begin(me_), begin(me_ + 1) - begin(me_));
    meet_between();
    for (int r = 0; r < size(); ++r)
      mover_.copy(*call_.output, begin(r), team_.scratch(r), 0, begin(r + 1) - begin(r));
  }

  void gather(int64_t n, bool wanted) {
    for (int r = 0; wanted && r < size(); ++r) mover_.copy(*call_.output, r * n, input(r), 0, n);
  }

  void from_root(int64_t from, int64_t n) {
    if (call_.output) mover_.copy(*call_.output, 0, input(call_.root), from, n);
  }

  void all_to_all(int64_t n) {
    for (int r = 0; r < size(); ++r) mover_.copy(*call_.output, r * n, input(r), me_ * n, n);
  }

  Team& team_;
  int me_;
  const Call& call_;
  Mover& mover_;
};

}  // namespace

namespace {

// Makes the stream of a call the current one: calls of a group may be on several.
class OnItsStream {
 public:
  explicit OnItsStream(const Call& call) {
    if (call.stream.defined()) scope_.emplace(call.stream);
  }

 private:
  std::optional<StreamScope> scope_;
};

}  // namespace

// With one rank a collective is a copy, queued on the current stream like any other operation; a
// weight of 1, that of a batch which one rank has alone, changes nothing.
void ThreadsTransport::run_alone(const Call& call) {
  if (!call.input || !call.output) return;
  const Array& x = *call.input;
  const Array& y = *call.output;
  if (call.reduction == Reduction::kWeighted && call.weight != 1)
    elementwise(ops::multiply, {x, call.weight}, y);
  else if (x.raw_data() != y.raw_data())
    y.reshape({-1}).assign(x.reshape({-1}));
}

void ThreadsTransport::collective(const Call& call) {
  const OnItsStream scope(call);
  if (team_->size() == 1) return run_alone(call);
  Mover& mover = mover_of(team_->world(), call);
  mover.publish(call);
  team_->meet(rank_, call, true, true);
  try {
    if (call.op != CommOp::kBarrier) {
      Round(*team_, rank_, call, mover).move();
      mover.finish(call);
    }
  } catch (...) {
    team_->stop_reading(rank_);
    throw;
  }
  team_->meet(rank_, call, false, false);
  team_->scratch(rank_) = Array();
}

void ThreadsTransport::receive(std::span<const Call> calls) {
  std::vector<const Call*> own;
  for (const Call& call : calls)
    if (call.op == CommOp::kRecv) own.push_back(&call);
  team_->take(rank_, std::move(own), [&](const Call& call, const Call& sent) {
    const OnItsStream scope(call);
    Mover& mover = mover_of(team_->world(), call);
    mover.copy(*call.output, 0, *sent.input, 0, call.count);
    mover.finish(call);
  });
}

void ThreadsTransport::run(std::span<const Call> calls) {
  if (calls.size() == 1 && !is_message(calls[0])) return collective(calls[0]);
  std::deque<Team::Message> sent;
  for (const Call& call : calls) {
    if (call.op != CommOp::kSend) continue;
    mover_of(team_->world(), call).publish(call);
    team_->offer(rank_, sent.emplace_back(Team::Message{&call}));
  }
  // An exception on the way must not leave messages behind that point into this stack.
  try {
    for (const Call& call : calls)
      if (!is_message(call)) collective(call);
    receive(calls);
  } catch (const std::exception& error) {
    team_->world().fail(team_->world_rank(rank_), error.what());
    for (Team::Message& message : sent) {
      try {
        team_->wait_taken(rank_, message);
      } catch (const CommError&) {
      }
    }
    throw;
  }
  for (Team::Message& message : sent) team_->wait_taken(rank_, message);
}

std::unique_ptr<Transport> ThreadsTransport::split(const std::vector<int>& members, int new_rank,
                                                   int color) {
  std::shared_ptr<Team> team = team_->form(rank_, members, color);
  if (!team) return nullptr;
  return std::make_unique<ThreadsTransport>(std::move(team), new_rank);
}

void ThreadsTransport::abort(const std::string& reason) noexcept {
  team_->world().fail(team_->world_rank(rank_), reason);
}

std::string ThreadsTransport::failure() const {
  ThreadWorld& world = team_->world();
  std::lock_guard lock(world.mutex);
  return world.failed ? world.failure_for(team_->world_rank(rank_)) : std::string();
}

CommunicatorPtr make_thread_rank(const std::shared_ptr<Team>& team, int rank, Device device,
                                 const CommunicatorOptions& options) {
  BoardPlace place{team->world().board, {}};
  const auto& hosts = team->world().hosts;
  for (int r = 0; r < team->size(); ++r)
    place.slots.push_back(hosts[size_t(r)] == hosts[size_t(rank)] ? r : -1);
  place.board->slot(rank).set_identity(rank, 0, "");
  const CallRecord origin{.sequence = 1};
  return make_communicator_at(std::make_unique<ThreadsTransport>(team, rank), device, options,
                              std::move(place), fold_call(0, origin));
}

namespace {

std::shared_ptr<Team> team_of_one(const CommunicatorOptions& options) {
  auto world = std::make_shared<ThreadWorld>(1, timeout_of(options), std::vector<int>{}, false);
  return std::make_shared<Team>(world, std::vector<int>{0});
}

}  // namespace

CommunicatorPtr make_single_rank(Device device, const CommunicatorOptions& options) {
  return make_thread_rank(team_of_one(options), 0, device, options);
}

CommunicatorPtr make_alone(const Communicator& comm) {
  constexpr int kAlone = -2;  // no color of a split
  auto team = team_of_one(Communicator::State::of(comm).options);
  return make_part(comm, std::make_unique<ThreadsTransport>(std::move(team), 0), {comm.rank()},
                   {.call = {.root = kAlone}});
}

}  // namespace catena::comm
