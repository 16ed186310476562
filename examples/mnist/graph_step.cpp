#include "graph_step.h"

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"

namespace mnist {

namespace ds = catena::datasets;
using catena::Array;

GraphStep::GraphStep(Program& program, ds::ResidentIterator& data, int64_t batch)
    : program_(program), data_(data), batch_(batch) {
  const catena::Device device = program.device;
  CATENA_CHECK(DeviceError, device.is_cuda(), "--graph: CUDA graphs need a GPU, training runs on ",
               device);
  const ds::RankOf who =
      program.comm ? ds::RankOf{program.comm->rank(), program.comm->size()} : ds::RankOf{};
  share_ = ds::scatter(batch, who);
  order_ = catena::empty({data.size()}, {catena::dtype::int64, device});
  cursor_ = catena::zeros({}, {catena::dtype::int64, device});
  offsets_ = catena::arange(share_.begin, share_.end, 1, {catena::dtype::int64, device});
  loss_sum_ = catena::zeros({}, {catena::dtype::float32, device});
  accuracy_sum_ = catena::zeros({}, {catena::dtype::float32, device});
}

// One step on the batch at the cursor.
void GraphStep::body() {
  const Array positions = catena::take(order_, offsets_ + cursor_, 0, catena::OutOfRange::kClip);
  ds::Batch batch;
  for (const Array& column : data_.columns()) {
    batch.arrays.push_back(catena::take(column, positions, 0, catena::OutOfRange::kClip));
  }
  batch.global_count = batch_;
  batch.weight = share_.weight;
  const Scores scores = program_.step(batch);
  loss_sum_ += scores.loss;
  accuracy_sum_ += scores.accuracy;
  cursor_ += batch_;
}

void GraphStep::prepare(int64_t epoch) {
  order_.assign(data_.order_of(epoch));
  cursor_.fill(0);
  loss_sum_.fill(0);
  accuracy_sum_.fill(0);
}

void GraphStep::one_epoch(int64_t epoch, catena::training::Means& means,
                          const std::function<void(int64_t)>& progress) {
  constexpr int64_t kWarmUp =
      3;  // eager steps: kernels are compiled, memory is there, NCCL connected
  prepare(epoch);
  const int64_t full = data_.size() / batch_;
  for (int64_t i = 0; i < full; ++i) {
    if (graph_.defined()) {
      graph_.launch();
    } else if (i < kWarmUp) {
      body();
    } else {
      program_.optimizer->prepare_for_capture();
      graph_ = catena::cuda::Graph::capture(program_.device, [this] { body(); });
      graph_.launch();
    }
    progress((i + 1) * batch_);
  }
  const double count = double(full * share_.size());
  means.add("loss", loss_sum_.item<double>() / double(full), count);
  means.add("accuracy", accuracy_sum_.item<double>() / double(full), count);
  // The rest of the epoch, and the iterator's own position.
  ds::IteratorState state = data_.state();
  state.epoch = epoch;
  state.position = full * batch_;
  if (state.position == data_.size()) {
    state.epoch = epoch + 1;
    state.position = 0;
    data_.set_state(state);
    return;
  }
  data_.set_state(state);
  const auto rest = data_.next();
  const Scores scores = program_.step(*rest);
  if (rest->size() > 0) {
    means.add("loss", scores.loss, double(rest->size()));
    means.add("accuracy", scores.accuracy, double(rest->size()));
  }
  progress(data_.size());
}

}  // namespace mnist
