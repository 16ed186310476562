// Data parallelism in one process: a master model on the first device and replicas on the others.
//
//   Mlp model;
//   model.to(devices[0]);
//   optimizers::SGD optimizer(0.1);
//   optimizer.setup(model);
//   parallel::Replicas<Mlp> replicas(model, devices);
//   for (...) {
//     const Arrays x = parallel::scatter_batch(batch_x, devices);
//     const Arrays t = parallel::scatter_batch(batch_t, devices);
//     replicas.zero_grads();
//     for (size_t i = 0; i < replicas.size(); ++i) {
//       const Variable loss = F::softmax_cross_entropy(replicas[i](Variable(x[i])), t[i]);
//       parallel::backward(loss, parallel::shard_weight(n, replicas.size(), i));
//     }
//     replicas.accumulate_into(optimizer);
//     optimizer.update();
//     replicas.copy_from(optimizer);
//   }
//
// Chainer's way by hand works as well: copy the model, replica.to_gpu(1), backward on both,
// optimizer.accumulate_grads(replica.gradients()),
// replica.copy_parameters_from(model.parameters()).
#pragma once

#include <memory>
#include <vector>

#include "catena/optimizers/optimizer.h"

namespace catena::parallel {

// Nearly equal parts along the first axis, part i on devices[i]; the first parts are one longer
// when the extent does not divide. Parts may be empty.
Arrays scatter_batch(const Array& batch, const std::vector<Device>& devices);
// Samples of part i of n samples, and its share of them: what its mean loss counts in the mean over
// all n.
int64_t shard_size(int64_t n, size_t parts, size_t i);
double shard_weight(int64_t n, size_t parts, size_t i);
// Backward of weight * loss for a scalar loss, without a kernel for the product.
void backward(const Variable& loss, double weight);

// The part of Replicas that does not depend on the model's type.
class ReplicaSet {
 public:
  // Adds the gradients of all replicas to those of the optimizer, which holds the master: one
  // transfer and one addition for each replica, as replicas lie in arenas.
  void accumulate_into(Optimizer& optimizer);
  // Copies the optimizer's parameters into all replicas, one transfer each. Persistent arrays stay
  // those that each replica has collected itself; see average_persistents.
  void copy_from(Optimizer& optimizer);

 protected:
  // What Replicas is made of: registers a replica, zeroes all gradients, averages the persistent
  // arrays.
  void add(Parameterized& replica);
  void zero_replicas();
  void average_persistents_with(const Parameterized& master);

 private:
  struct Entry {
    Parameterized* model;
    optimizers::ArenaSet layout;
  };
  std::vector<Entry> entries_;
};

// A master and one copy of it on each further device. Model needs its copy constructor, and the
// master must stay where it is while this lives.
template <class Model>
class Replicas : public ReplicaSet {
 public:
  Replicas(Model& master, const std::vector<Device>& devices) : master_(&master) {
    CATENA_CHECK(ValueError, !devices.empty(), "Replicas: no devices given");
    master.to(devices[0]);
    for (size_t i = 1; i < devices.size(); ++i) {
      copies_.push_back(std::make_unique<Model>(master));
      copies_.back()->to(devices[i]);
      add(*copies_.back());
    }
  }
  size_t size() const { return 1 + copies_.size(); }
  // 0 is the master.
  Model& operator[](size_t i) { return i == 0 ? *master_ : *copies_[i - 1]; }
  void zero_grads() {
    master_->zero_grads();
    zero_replicas();
  }
  // Gives master and replicas the mean over all of them of each persistent array that is declared
  // OverRanks::kMean: before the master is tested or saved.
  void average_persistents() { average_persistents_with(*master_); }

 private:
  Model* master_;
  std::vector<std::unique_ptr<Model>> copies_;
};

}  // namespace catena::parallel
