#include "catena/parallel/sync_batch_normalization.h"

#include <algorithm>
#include <memory>

#include "catena/array/manipulation.h"
#include "catena/comm/internals.h"
#include "parallel/synchronised_layers.h"

namespace catena::parallel {
namespace {

constexpr const char* kPurpose = "SyncBatchNormalization";
thread_local bool t_own_statistics = false;

// The statistics exchange of layers over a communicator.
class CommunicatorExchange final : public functions::StatisticsExchange {
 public:
  CommunicatorExchange(CommunicatorPtr comm, LossOverRanks loss)
      : comm_(std::move(comm)), loss_(loss) {}

  int ranks() const override { return comm_->size(); }
  void check(const Array& x, const std::string& layer) const override {
    CATENA_CHECK(DeviceError, x.device() == comm_->device(), layer, ": x is on ", x.device(),
                 ", the communicator over which this layer is synchronised on ", comm_->device(),
                 "; move model and batches with to(comm->device())");
  }
  Array gather(const Array& x) const override {
    if (t_own_statistics)  // as if all ranks had this batch
      return concatenate(Arrays(size_t(ranks()), x.reshape({1, x.size()})), 0);
    const comm::PurposeScope purpose(comm_.get(), kPurpose);
    return comm_->all_gather(x.reshape({1, x.size()}));
  }
  void sum(const Array& x) const override {
    const comm::PurposeScope purpose(comm_.get(), kPurpose);
    comm_->all_reduce(x, comm::Reduction::kSum, x);
  }
  const CommunicatorPtr& comm() const { return comm_; }
  bool weighs_by_samples() const override { return loss_ == LossOverRanks::kMeanOverSamples; }

 private:
  CommunicatorPtr comm_;
  LossOverRanks loss_;
};

std::shared_ptr<const functions::StatisticsExchange> exchange_over(const CommunicatorPtr& comm,
                                                                   LossOverRanks loss) {
  if (comm == nullptr) return nullptr;
  return std::make_shared<const CommunicatorExchange>(comm, loss);
}

int64_t share(Parameterized& part,
              const std::shared_ptr<const functions::StatisticsExchange>& exchange) {
  int64_t layers = 0;
  if (auto* layer = dynamic_cast<functions::BatchNormalization*>(&part)) {
    layer->share_statistics(exchange);
    ++layers;
  }
  part.visit_functions(
      [&](const std::string&, Parameterized& inner) { layers += share(inner, exchange); });
  return layers;
}

}  // namespace

OwnStatistics::OwnStatistics() : previous_(t_own_statistics) { t_own_statistics = true; }
OwnStatistics::~OwnStatistics() { t_own_statistics = previous_; }

bool has_synchronised_layer(Parameterized& part) {
  const auto* layer = dynamic_cast<functions::BatchNormalization*>(&part);
  bool found = layer && layer->exchange() && layer->exchange()->ranks() > 1;
  part.visit_functions([&](const std::string&, Parameterized& inner) {
    found = found || has_synchronised_layer(inner);
  });
  return found;
}

namespace {

void add_communicators(Parameterized& part, std::vector<CommunicatorPtr>& found) {
  if (const auto* layer = dynamic_cast<functions::BatchNormalization*>(&part)) {
    const auto* over = dynamic_cast<const CommunicatorExchange*>(layer->exchange().get());
    const bool is_new = over && over->ranks() > 1 &&
                        std::find(found.begin(), found.end(), over->comm()) == found.end();
    if (is_new) found.push_back(over->comm());
  }
  part.visit_functions(
      [&](const std::string&, Parameterized& inner) { add_communicators(inner, found); });
}

}  // namespace

std::vector<CommunicatorPtr> communicators_of_layers(Parameterized& model) {
  std::vector<CommunicatorPtr> found;
  add_communicators(model, found);
  return found;
}

SyncBatchNormalization::SyncBatchNormalization(int64_t size, const CommunicatorPtr& comm,
                                               const functions::BatchNormalizationOptions& options,
                                               LossOverRanks loss)
    : SyncBatchNormalization(Shape{size}, comm, options, loss) {}

SyncBatchNormalization::SyncBatchNormalization(const Shape& size, const CommunicatorPtr& comm,
                                               const functions::BatchNormalizationOptions& options,
                                               LossOverRanks loss)
    : BatchNormalization(size, options) {
  share_statistics(exchange_over(comm, loss));
}

int64_t synchronize_normalization(Parameterized& model, const CommunicatorPtr& comm,
                                  LossOverRanks loss) {
  return share(model, exchange_over(comm, loss));
}

}  // namespace catena::parallel
