#include "mpi_transport.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "catena/core/log.h"

namespace catena::comm::mpi {

namespace {

constexpr int64_t kLargestMessage = int64_t(1) << 28;  // counts are int
constexpr int64_t kSmallReduce = 32 * 1024;  // bytes: gathered everywhere and summed there
constexpr int64_t kReduceChunk = 1 << 20;    // bytes a rank sums at a time
enum Tag { kDataTag = 1, kMessageTag = 2, kPayloadTag = 3 };

char* bytes_of(void* data) { return static_cast<char*>(data); }
const char* bytes_of(const void* data) { return static_cast<const char*>(data); }

// For every rank the first rank on its host.
std::vector<int> find_hosts(MPI_Comm comm, int rank, int size) {
  MPI_Comm host;
  CATENA_MPI(MPI_Comm_split_type, comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  int leader = rank;
  CATENA_MPI(MPI_Bcast, &leader, 1, MPI_INT, 0, host);
  std::vector<int> hosts(static_cast<size_t>(size));
  CATENA_MPI(MPI_Allgather, &leader, 1, MPI_INT, hosts.data(), 1, MPI_INT, comm);
  MPI_Comm_free(&host);
  return hosts;
}

// What all ranks exchange before a collective: the hash of the call, and what rides with it, in 128
// bits with 64 behind the point, so that its sum is exact in any order.
struct News {
  uint64_t hash = 0, inverse = 0;
  uint64_t fraction = 0, whole = 0;
};

// A number that does not fit, or is not finite, rides as 0.
void put_rider(News& news, double number) {
  if (!(std::abs(number) < 4e18)) return;
  const double floor = std::floor(number);
  news.whole = static_cast<uint64_t>(static_cast<int64_t>(floor));
  news.fraction = static_cast<uint64_t>(std::ldexp(number - floor, 64));
}
double rider_of(const News& news) {
  return static_cast<double>(static_cast<int64_t>(news.whole)) +
         std::ldexp(static_cast<double>(news.fraction), -64);
}

// Hashes are equal on all ranks exactly when the smallest is the largest.
void join_news(void* in, void* inout, int* length, MPI_Datatype*) {
  const auto* a = static_cast<const News*>(in);
  auto* b = static_cast<News*>(inout);
  for (int i = 0; i < *length; ++i) {
    b[i].hash = std::min(a[i].hash, b[i].hash);
    b[i].inverse = std::min(a[i].inverse, b[i].inverse);
    b[i].fraction += a[i].fraction;
    b[i].whole += a[i].whole + (b[i].fraction < a[i].fraction ? 1 : 0);
  }
}

struct NewsExchange {
  MPI_Datatype type;
  MPI_Op op;
  NewsExchange() {
    CATENA_MPI(MPI_Type_contiguous, int(sizeof(News)), MPI_BYTE, &type);
    CATENA_MPI(MPI_Type_commit, &type);
    CATENA_MPI(MPI_Op_create, join_news, 1, &op);
  }
};

// Precedes every message, so that two ranks that disagree get an error.
struct Header {
  int64_t hash;
  char text[120];
};
Header header_of(const Call& call) {
  Header header{int64_t(call.hash), {}};
  std::strncpy(header.text, call.describe().c_str(), sizeof header.text - 1);
  return header;
}

}  // namespace

// A message of a group: its header, which the two ranks compare, then the payload.
struct MpiTransport::MessageHeader {
  const Call* call;
  Header header;         // of this rank if it sends, else received
  bool is_met = false;   // the other rank has come to the message
  bool follows = false;  // the payload is under way
};

struct MpiTransport::InFlight {
  Requests parts;              // messages that a collective consists of
  Requests headers, payloads;  // of the messages of a group
  std::vector<MessageHeader> messages;
  News news, joined;
  Header own{};
  std::vector<Header> all;
  std::vector<double> weights;
  std::vector<char> received, sum;
  std::vector<Array> arrays;  // what the calls read and write; once they have failed
};

MpiTransport::MpiTransport(MPI_Comm data, double timeout)
    : data_(data), in_flight_(std::make_unique<InFlight>()) {
  const Lock lock;
  CATENA_MPI(MPI_Comm_set_errhandler, data_, MPI_ERRORS_RETURN);
  CATENA_MPI(MPI_Comm_rank, data_, &rank_);
  CATENA_MPI(MPI_Comm_size, data_, &size_);
  CATENA_MPI(MPI_Comm_dup, data_, &news_);
  hosts_ = find_hosts(data_, rank_, size_);
  waiter_ = std::make_unique<Waiter>(news_, rank_, size_, timeout);
}

// The MPI communicators are freed by close() only: freeing is collective.
MpiTransport::~MpiTransport() = default;

void MpiTransport::meet(const char* doing, double timeout) {
  std::vector<MPI_Request> request(1);
  {
    const Lock lock;
    CATENA_MPI(MPI_Ibarrier, news_, request.data());
  }
  waiter_->wait(request, doing, timeout);
}

void MpiTransport::close() {
  if (ended()) return;
  meet("close", waiter_->timeout());
  const Lock lock;
  MPI_Comm_free(&data_);
  MPI_Comm_free(&news_);
}

void MpiTransport::abort(const std::string& reason) noexcept { waiter_->broadcast_failure(reason); }

void MpiTransport::abandon() noexcept { waiter_->broadcast_abandon(); }

std::unique_ptr<Transport> MpiTransport::split(const std::vector<int>& members, int new_rank,
                                               int color) {
  MPI_Comm child;
  {
    const Lock lock;
    CATENA_MPI(MPI_Comm_split, data_, members.empty() ? MPI_UNDEFINED : color, new_rank, &child);
  }
  if (child == MPI_COMM_NULL) return nullptr;
  return std::make_unique<MpiTransport>(child, waiter_->timeout());
}

// Calls -----------------------------------------------------------------------------------------

void MpiTransport::send(Requests& requests, int peer, const char* data, int64_t bytes, int tag) {
  do {
    const int64_t n = std::min(bytes, kLargestMessage);
    // Messages of send() meet their recv() as with nccl and threads; others may be buffered.
    const auto function = tag == kDataTag ? MPI_Isend : MPI_Issend;
    check(function(data, int(n), MPI_BYTE, peer, tag, data_, &requests.emplace_back()),
          "MPI_Isend");
    data += n;
    bytes -= n;
  } while (bytes > 0);
}

void MpiTransport::recv(Requests& requests, int peer, char* data, int64_t bytes, int tag) {
  do {
    const int64_t n = std::min(bytes, kLargestMessage);
    CATENA_MPI(MPI_Irecv, data, int(n), MPI_BYTE, peer, tag, data_, &requests.emplace_back());
    data += n;
    bytes -= n;
  } while (bytes > 0);
}

// Shifted by the rank, so that not all send to the same one at once.
template <class Start>
MpiTransport::Requests& MpiTransport::start_parts(Start start) {
  Requests& parts = in_flight_->parts;
  parts.clear();
  const Lock lock;
  for (int step = 1; step < size_; ++step)
    start(parts, (rank_ + step) % size_, (rank_ + size_ - step) % size_);
  return parts;
}

template <class Start>
void MpiTransport::await(const Call& call, Start start) {
  MPI_Request request;
  {
    const Lock lock;
    start(&request);
  }
  waiter_->wait(request, call);
}

// Neither a collective nor a send can be cancelled, nor a receive whose message has begun.
void MpiTransport::keep_in_flight(std::span<const Call> calls) {
  static auto& kept = *new std::vector<std::unique_ptr<InFlight>>;
  const Lock lock;
  for (Requests* requests : {&in_flight_->parts, &in_flight_->headers, &in_flight_->payloads})
    Waiter::cancel(*requests);
  for (const Call& call : calls)
    for (const Array* array : {call.input, call.output})
      if (array) in_flight_->arrays.push_back(*array);
  kept.push_back(std::exchange(in_flight_, std::make_unique<InFlight>()));
}

bool MpiTransport::agrees(const Call& call, double* rider) {
  News &news = in_flight_->news, &joined = in_flight_->joined;
  news = {call.hash, ~call.hash};
  if (rider != nullptr) put_rider(news, *rider);
  await(call, [&](MPI_Request* request) {
    static const NewsExchange exchange;
    CATENA_MPI(MPI_Iallreduce, &news, &joined, 1, exchange.type, exchange.op, news_, request);
  });
  if (rider != nullptr) *rider = rider_of(joined);
  return joined.hash == ~joined.inverse;
}

// The hash of the last call covers those before it. Ranks whose calls differ gather what they
// called one by one, up to the first difference; a rank with fewer calls shows its last one again,
// so that all make the same exchanges, whatever they called.
void MpiTransport::compare(std::span<const Call* const> calls) {
  double* rider = nullptr;
  for (const Call* call : calls)
    if (call->rider != nullptr) rider = call->rider;
  if (agrees(*calls.back(), rider)) return;
  for (size_t k = 0;; ++k) {
    const Call& call = *calls[std::min(k, calls.size() - 1)];
    Header& own = in_flight_->own = header_of(call);
    std::vector<Header>& all = in_flight_->all;
    all.assign(static_cast<size_t>(size_), {});
    await(call, [&](MPI_Request* request) {
      CATENA_MPI(MPI_Iallgather, &own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE,
                 news_, request);
    });
    const auto is_same = [&](const Header& header) { return header.hash == all[0].hash; };
    if (std::all_of(all.begin(), all.end(), is_same)) continue;
    std::vector<std::string> called;
    for (const Header& header : all) called.push_back(message("called ", header.text));
    waiter_->fail_mismatch(called, call);
  }
}

void MpiTransport::run(std::span<const Call> calls) {
  try {
    if (calls.size() == 1 && !is_message(calls[0])) return collective(calls[0]);
    group(calls);
  } catch (...) {
    keep_in_flight(calls);
    throw;
  }
}

void MpiTransport::group(std::span<const Call> calls) {
  std::vector<MessageHeader>& list = in_flight_->messages;
  list.clear();
  for (const Call& call : calls)
    if (is_message(call))
      list.push_back({&call, call.op == CommOp::kSend ? header_of(call) : Header{}});
  Requests& headers = in_flight_->headers;
  headers.clear();
  in_flight_->payloads.clear();
  {
    const Lock lock;
    for (MessageHeader& message : list) {
      char* bytes = reinterpret_cast<char*>(&message.header);
      if (message.call->op == CommOp::kSend)
        send(headers, message.call->root, bytes, sizeof(Header), kMessageTag);
      else
        recv(headers, message.call->root, bytes, sizeof(Header), kMessageTag);
    }
  }
  collectives(calls);
  messages(calls);
}

// A message moves as soon as both ranks have come to it, whatever the others of the group do. Those
// between two ranks stay in order.
void MpiTransport::messages(std::span<const Call> calls) {
  std::vector<MessageHeader>& list = in_flight_->messages;
  Requests& payloads = in_flight_->payloads;
  for (size_t met = 0; met < list.size(); ++met) {
    MessageHeader& message = list[waiter_->wait_any(in_flight_->headers, calls[0])];
    const Call& call = *message.call;
    if (call.op == CommOp::kRecv && message.header.hash != int64_t(call.hash)) {
      std::vector<std::string> called(static_cast<size_t>(size_));
      called[size_t(rank_)] = "called " + call.describe();
      called[size_t(call.root)] = catena::message("called ", message.header.text);
      waiter_->fail_mismatch(called, call);
    }
    message.is_met = true;
    for (MessageHeader& next : list) {
      if (next.call->op != call.op || next.call->root != call.root || next.follows) continue;
      if (!next.is_met) break;
      payload(payloads, *next.call);
      next.follows = true;
    }
  }
  waiter_->wait(payloads, calls[0]);
}

void MpiTransport::payload(Requests& requests, const Call& call) {
  const int64_t bytes = call.count * int64_t(itemsize(call.dtype));
  if (bytes == 0) return;
  const Lock lock;
  if (call.op == CommOp::kSend)
    send(requests, call.root, bytes_of(call.in()), bytes, kPayloadTag);
  else
    recv(requests, call.root, bytes_of(call.out()), bytes, kPayloadTag);
}

void MpiTransport::collectives(std::span<const Call> calls) {
  std::vector<const Call*> own;
  for (const Call& call : calls)
    if (!is_message(call)) own.push_back(&call);
  if (own.empty()) return;
  compare(own);
  for (const Call* call : own) move(*call);
}

void MpiTransport::collective(const Call& call) {
  const Call* const one = &call;
  compare({&one, 1});
  move(call);
}

void MpiTransport::move(const Call& call) {
  if (call.count == 0 || call.op == CommOp::kBarrier) return;  // the comparison was a barrier
  switch (call.op) {
    case CommOp::kAllReduce: return all_reduce(call);
    case CommOp::kReduce: return reduce_to_one(call);
    case CommOp::kReduceScatter: return reduce_scatter(call);
    case CommOp::kAllGather: return gather(call, true);
    case CommOp::kGather: return gather(call, false);
    case CommOp::kBroadcast: return broadcast(call);
    case CommOp::kScatter: return scatter(call);
    case CommOp::kAllToAll: return all_to_all(call);
    default: fail<CommError>("mpi: cannot run ", comm::name(call.op));
  }
}

// Copies ----------------------------------------------------------------------------------------

void MpiTransport::broadcast(const Call& call) {
  const int64_t bytes = call.count * int64_t(itemsize(call.dtype));
  if (rank_ == call.root && call.output && call.in() != call.out())
    std::memcpy(call.out(), call.in(), size_t(bytes));
  char* data = rank_ == call.root ? const_cast<char*>(bytes_of(call.in())) : bytes_of(call.out());
  for (int64_t at = 0; at < bytes; at += kLargestMessage) {
    await(call, [&](MPI_Request* request) {
      CATENA_MPI(MPI_Ibcast, data + at, int(std::min(kLargestMessage, bytes - at)), MPI_BYTE,
                 call.root, data_, request);
    });
  }
}

void MpiTransport::gather(const Call& call, bool all) {
  const int64_t bytes = call.count * int64_t(itemsize(call.dtype));
  const bool receives = all || rank_ == call.root;
  Requests& requests = start_parts([&](Requests& parts, int to, int from) {
    if (receives) recv(parts, from, bytes_of(call.out()) + from * bytes, bytes, kDataTag);
    if (all || to == call.root) send(parts, to, bytes_of(call.in()), bytes, kDataTag);
  });
  if (receives) std::memmove(bytes_of(call.out()) + rank_ * bytes, call.in(), size_t(bytes));
  waiter_->wait(requests, call);
}

void MpiTransport::scatter(const Call& call) {
  const int64_t bytes = call.count * int64_t(itemsize(call.dtype));
  Requests& requests = start_parts([&](Requests& parts, int to, int from) {
    if (from == call.root) recv(parts, from, bytes_of(call.out()), bytes, kDataTag);
    if (rank_ == call.root) send(parts, to, bytes_of(call.in()) + to * bytes, bytes, kDataTag);
  });
  if (rank_ == call.root)
    std::memmove(call.out(), bytes_of(call.in()) + rank_ * bytes, size_t(bytes));
  waiter_->wait(requests, call);
}

void MpiTransport::all_to_all(const Call& call) {
  const int64_t bytes = call.count * int64_t(itemsize(call.dtype));
  Requests& requests = start_parts([&](Requests& parts, int to, int from) {
    recv(parts, from, bytes_of(call.out()) + from * bytes, bytes, kDataTag);
    send(parts, to, bytes_of(call.in()) + to * bytes, bytes, kDataTag);
  });
  std::memcpy(bytes_of(call.out()) + rank_ * bytes, bytes_of(call.in()) + rank_ * bytes,
              size_t(bytes));
  waiter_->wait(requests, call);
}

// Reductions ------------------------------------------------------------------------------------

std::vector<double> MpiTransport::weights(const Call& call) {
  std::vector<double>& all = in_flight_->weights;
  all.assign(static_cast<size_t>(size_), 1);
  if (call.reduction != Reduction::kWeighted) return all;
  await(call, [&](MPI_Request* request) {
    CATENA_MPI(MPI_Iallgather, &call.weight, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, news_,
               request);
  });
  return all;
}

// Rank r sums elements part_of[r] of all ranks' inputs; this rank's go to `sum`.
void MpiTransport::reduce_parts(const Call& call, const std::vector<Part>& part_of,
                                std::span<const double> weights, char* sum) {
  const int64_t item = int64_t(itemsize(call.dtype));
  const Part mine = part_of[size_t(rank_)];
  std::vector<char>& received = in_flight_->received;
  received.resize(size_t(mine.count * item * size_));
  Requests& requests = start_parts([&](Requests& parts, int to, int from) {
    const Part part = part_of[size_t(to)];
    if (mine.count > 0)
      recv(parts, from, received.data() + from * mine.count * item, mine.count * item, kDataTag);
    if (part.count > 0)
      send(parts, to, bytes_of(call.in()) + part.from * item, part.count * item, kDataTag);
  });
  waiter_->wait(requests, call);
  if (mine.count == 0) return;
  std::vector<const void*> inputs;
  for (int r = 0; r < size_; ++r)
    inputs.push_back(r == rank_ ? bytes_of(call.in()) + mine.from * item
                                : received.data() + r * mine.count * item);
  ordered_reduce(call.dtype, call.effective_reduction(), inputs, weights, mine.count, sum);
}

void MpiTransport::all_reduce_small(const Call& call) {
  const int64_t bytes = call.count * int64_t(itemsize(call.dtype));
  const std::vector<double> weight = weights(call);
  std::vector<char>& received = in_flight_->received;
  received.resize(size_t(bytes * size_));
  await(call, [&](MPI_Request* request) {
    CATENA_MPI(MPI_Iallgather, call.in(), int(bytes), MPI_BYTE, received.data(), int(bytes),
               MPI_BYTE, data_, request);
  });
  std::vector<const void*> inputs;
  for (int r = 0; r < size_; ++r) inputs.push_back(received.data() + r * bytes);
  ordered_reduce(call.dtype, call.effective_reduction(), inputs, weight, call.count, call.out());
}

void MpiTransport::all_reduce(const Call& call) {
  const int64_t item = int64_t(itemsize(call.dtype));
  if (call.count * item <= kSmallReduce) return all_reduce_small(call);
  const std::vector<double> weight = weights(call);
  std::vector<char>& sum = in_flight_->sum;
  const int64_t chunk = kReduceChunk / item * size_;
  for (int64_t at = 0; at < call.count; at += chunk) {
    const int64_t n = std::min(chunk, call.count - at);
    std::vector<Part> parts;
    for (int r = 0; r < size_; ++r)
      parts.push_back({at + n * r / size_, n * (r + 1) / size_ - n * r / size_});
    const Part mine = parts[size_t(rank_)];
    sum.resize(size_t(mine.count * item));
    reduce_parts(call, parts, weight, sum.data());
    // All of this chunk's input has left, so it may be overwritten when working in place.
    Requests& requests = start_parts([&](Requests& started, int to, int from) {
      const Part part = parts[size_t(from)];
      if (part.count > 0)
        recv(started, from, bytes_of(call.out()) + part.from * item, part.count * item, kDataTag);
      if (mine.count > 0) send(started, to, sum.data(), mine.count * item, kDataTag);
    });
    std::memcpy(bytes_of(call.out()) + mine.from * item, sum.data(), sum.size());
    waiter_->wait(requests, call);
  }
}

// Rank r's output begins with the sums of elements part_of[r], of which there are call.count or
// none.
void MpiTransport::reduce_to(const Call& call, const std::vector<Part>& part_of) {
  const int64_t item = int64_t(itemsize(call.dtype));
  const std::vector<double> weight = weights(call);
  std::vector<char>& sum = in_flight_->sum;
  const int64_t chunk = kReduceChunk / item;
  for (int64_t at = 0; at < call.count; at += chunk) {
    std::vector<Part> parts;
    for (const Part& part : part_of)
      parts.push_back({part.from + at, part.count > 0 ? std::min(chunk, part.count - at) : 0});
    sum.resize(size_t(parts[size_t(rank_)].count * item));
    reduce_parts(call, parts, weight, sum.data());
    // In place the output is this rank's own piece of the input, which nobody else needs.
    if (!sum.empty()) std::memcpy(bytes_of(call.out()) + at * item, sum.data(), sum.size());
  }
}

void MpiTransport::reduce_to_one(const Call& call) {
  std::vector<Part> parts(size_t(size_), Part{0, 0});
  parts[size_t(call.root)].count = call.count;
  reduce_to(call, parts);
}

void MpiTransport::reduce_scatter(const Call& call) {
  std::vector<Part> parts;
  for (int r = 0; r < size_; ++r) parts.push_back({r * call.count, call.count});
  reduce_to(call, parts);
}

}  // namespace catena::comm::mpi
