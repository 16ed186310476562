// A transport that compares nothing and moves nothing: what is noticed about the calls is noticed
// beside the data path, as with nccl.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catena/comm/factory.h"
#include "catena/comm/transport.h"

namespace catena::comm_suite {

class LooseTransport : public comm::Transport {
 public:
  explicit LooseTransport(CommunicatorPtr control) : control_(std::move(control)) {}
  const char* name() const override { return "loose"; }
  int rank() const override { return control_->rank(); }
  const std::vector<int>& hosts() const override { return control_->topology().hosts; }
  bool moves(DeviceType) const override { return true; }
  CommunicatorPtr control() const override { return control_; }
  void run(std::span<const comm::Call> calls) override { ran += int(calls.size()); }
  std::unique_ptr<Transport> split(const std::vector<int>&, int, int) override { return nullptr; }
  void abort(const std::string&) noexcept override {}
  void close() override {}
  int ran = 0;

 private:
  CommunicatorPtr control_;
};

// Runs fn on communicators over LooseTransport, for arrays of cpu:rank or cuda:rank, ranks on the
// given hosts.
inline void run_loose(int n, const std::function<void(Communicator&, Communicator& control)>& fn,
                      std::vector<int> hosts = {}, bool on_gpus = false) {
  comm::run_threads(n,
                    [&](Communicator& control) {
                      const CommunicatorPtr loose = comm::make_communicator(
                          std::make_unique<LooseTransport>(control.shared_from_this()),
                          on_gpus ? cuda_device(control.rank()) : control.device(), {});
                      control.barrier();
                      fn(*loose, control);
                    },
                    {.timeout = 30, .hosts = std::move(hosts)});
}

// The text of the CommError that body throws; "" when it throws none.
inline std::string thrown_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const CommError& error) {
    return error.what();
  }
  return {};
}

}  // namespace catena::comm_suite
