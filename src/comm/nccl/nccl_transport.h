// Moves GPU arrays by NCCL; host arrays and objects go to the control communicator.
#pragma once

#include <memory>
#include <vector>

#include "nccl_core.h"
#include "shared_blocks.h"
#include "ways.h"

namespace catena::comm::nccl {

class NcclTransport : public Transport {
 public:
  // Finds the other ranks over `control`. Throws DeviceError when two ranks have one GPU.
  static std::unique_ptr<NcclTransport> create(CommunicatorPtr control, Device device,
                                               const CommunicatorOptions& options);
  NcclTransport(CommunicatorPtr control, std::shared_ptr<Core> core);  // collective
  ~NcclTransport() override;

  const char* name() const override { return "nccl"; }
  int rank() const override { return control_->rank(); }
  const std::vector<int>& hosts() const override { return control_->topology().hosts; }
  bool moves(DeviceType type) const override { return type == DeviceType::kCuda; }
  CommunicatorPtr control() const override { return control_; }
  void attach(Communicator& owner) override;
  void run(std::span<const Call> calls) override;
  bool messages_are_independent() const override;
  StoragePtr allocate_shared(size_t bytes) override;
  void prepare_scattered_sums(size_t bytes) override;
  bool moves_by_copies(size_t bytes) const override;
  std::string ways() const override;
  std::unique_ptr<Transport> split(const std::vector<int>& members, int new_rank,
                                   int color) override;
  void watch(const Stream& stream) override;
  void abort(const std::string& reason) noexcept override;
  void abandon() noexcept override;
  std::string failure() const override { return core_->failure(); }
  void close() override;
  bool outlived() const override;

 private:
  bool goes_by_copies(const Call& call, SeenBy& outputs) const;
  bool run_by_peers(const Call& call);
  void run_single(const Call& call);
  void run_group(std::span<const Call> calls);
  std::vector<Call> run_copies(std::span<const Call> calls);
  ncclResult_t issue(const Call& call, ncclRedOp_t op);
  ncclResult_t send_piece(const Call& call, int piece, int to);
  ncclResult_t recv_piece(const Call& call, int piece, int from);
  ncclResult_t gather(const Call& call);
  ncclResult_t scatter(const Call& call);
  ncclResult_t all_to_all(const Call& call);

  CommunicatorPtr control_;
  std::shared_ptr<Core> core_;
  std::shared_ptr<PeerCopies> copies_;  // null: NCCL moves all messages
  Choice choice_;
  std::shared_ptr<PeerExchange> exchange_;  // null: NCCL makes small collectives too
  std::shared_ptr<TwoShotSums> two_shot_;   // null: NCCL makes all larger sums
  std::unique_ptr<SharedBlocks> blocks_;
  std::shared_ptr<CopyCollectives> copied_;  // null: NCCL makes large scattered sums and gathers
};

}  // namespace catena::comm::nccl
