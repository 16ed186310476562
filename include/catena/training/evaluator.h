// Means over many batches, exact for batches of different size and over ranks.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catena/array/array.h"
#include "catena/autograd/function_set.h"
#include "catena/autograd/mean.h"
#include "catena/comm/communicator.h"
#include "catena/datasets/prefetch.h"

namespace catena::training {

// Numbers of a batch, each of one element: means, and what each divided by where it declares that
// (mean.h).
struct Numbers : Arrays {
  Numbers() = default;
  Numbers(Arrays values) : Arrays(std::move(values)) {}
  explicit Numbers(const Variables& values);
  // Of each number, undefined for the samples; empty: all are means over the samples.
  Arrays counted;
  // Of each number that is a sum of several means: its terms. Empty for the others, and if there
  // are only others.
  std::vector<Numbers> terms;
};

// Weighted means of named quantities, as a sum and a count each, so that the result is the mean
// over samples whatever the sizes of batches and shards (a mean of means is not). What declares
// that it divided by something else, such as the labels that are not ignored, is the mean over
// that, and a sum or difference of such means (softmax_cross_entropy + 0.5 * mean_squared_error) is
// that of the means of its terms, each over what it counted. Device results are kept until they are
// asked for, so that adding never waits for a GPU.
//
// Other functions of means are averaged over the batches, weighted by samples, and so depend on the
// sizes of batches and shards: exp(loss), r2_score, f1_score, precision, products and quotients of
// means. Add the means themselves, and apply the function to their values at the end
// (exp(means.value("loss"))); or keep the predictions of all batches for one call. The same goes
// for sums of more than 16 terms, or of another number of them from batch to batch: add their terms
// under names of their own.
class Means {
 public:
  // All ranks must use the same names in the same order, also ranks that will have no samples.
  explicit Means(std::vector<std::string> names);

  // `mean` over `count` samples. A count of 0 is left out, whatever the mean (usually NaN).
  void add(const std::string& name, double mean, double count);
  // mean: one element on any device, also of several devices in turn (ShapeError otherwise), which
  // must keep its value until reduce(), value() or values().
  void add(const std::string& name, const Array& mean, double count);
  // The same, with the count in an array of one element, on any device (undefined: `count`).
  void add(const std::string& name, const Array& mean, const Array& counted, double count);
  // The same for a mean that may declare what it divided by; else it is over `count` samples.
  void add(const std::string& name, const Variable& mean, double count);
  // One mean for each name, in their order (ValueError otherwise).
  void add(const Arrays& means, double count);
  // The same, each over what it counted, else over so many samples.
  void add_counted(const Numbers& numbers, double samples);
  // What was added under a name on this rank: the sum of mean times count, and of the counts.
  struct Sum {
    double sum = 0, count = 0;
    std::vector<Sum> terms = {};  // of sums of several means, whose own count are the samples
    // NaN when nothing was counted.
    double mean() const;
    // Goes on with what another one has counted.
    void add(const Sum& other);
  };
  // So far; waits for the device. ValueError after reduce().
  Sum sum(const std::string& name);
  // Means without any go on with the same bits. ValueError after reduce().
  void add(const std::string& name, const Sum& sum);

  // Sums over all ranks of `comm` (nullptr: there is one process). Collective. Afterwards value()
  // is the mean over all ranks; further add() is a ValueError until clear(). ValueError on all
  // ranks if their names differ; it says where.
  void reduce(Communicator* comm);
  // The mean; NaN when nothing was counted. Waits for the device.
  double value(const std::string& name);
  std::map<std::string, double> values();
  // The number of samples, or of what else was counted, behind value(), including those whose
  // numbers are still on a device. Waits for counts that are there.
  double count(const std::string& name) const;
  void clear();

 private:
  struct Pending {
    Array mean;
    double count;
    Array counted;  // in place of count, if defined
    size_t term;    // 0: the number itself
  };
  struct Metric : Sum {
    std::vector<Pending> pending;
  };
  const Metric& metric(const std::string& name) const;
  Metric& metric(const std::string& name);
  void check_not_reduced(const char* who, const std::string& name) const;
  void add_number(const std::string& name, const Numbers& numbers, size_t i, double samples);
  static void add_to(Metric& metric, size_t term, const Array& mean, const Array& counted,
                     double count);
  static bool takes_terms(Metric& metric, size_t terms);
  static void add_pending(Metric& metric);

  std::vector<std::string> names_;
  std::vector<Metric> metrics_;
  bool reduced_ = false;
};

// ValueError, from the function `who`, unless the order ends: a pass over batches that repeat would
// rewind the iterator of training.
void check_test_batches(const char* who, const datasets::BatchIterator& batches);

// What a model makes of one batch that is not empty: numbers of one element each, in the order of
// the metrics' names. The first is the loss. Serves training and test passes alike. Numbers that
// are neither means nor sums of them, such as exp(loss) and f1_score, are averaged over the
// batches; what to do instead is at Means.
//
//   [&](const datasets::Batch& batch) -> Variables {
//     const Variable y = model(batch.x());
//     return {F::softmax_cross_entropy(y, batch.t()), F::accuracy(y, batch.t())};
//   }
using Score = std::function<Variables(const datasets::Batch&)>;

// Goes once through `batches` (an order without repeat, else ValueError; it is rewound first),
// calls measure for each non-empty batch, without a graph, and returns the means over all ranks of
// `comm` (nullptr: one process; else collective). The measure is expected to run the model in test
// state and to add every name.
std::map<std::string, double> evaluate(
    datasets::BatchIterator& batches, const std::vector<std::string>& names,
    const std::function<void(const datasets::Batch&, Means&)>& measure,
    Communicator* comm = nullptr);
// The same with `model` in test state (TestScope), which gets its state back however this ends.
// Statistics that the ranks collect apart are made one before, on all ranks:
// parallel::average_persistents(model, comm).
std::map<std::string, double> evaluate(
    Parameterized& model, datasets::BatchIterator& batches, const std::vector<std::string>& names,
    const std::function<void(const datasets::Batch&, Means&)>& measure,
    Communicator* comm = nullptr);
// The same with a score, whose numbers are means over the batch in the order of `names`:
//   evaluate(model, test, {"loss", "accuracy"}, score)
std::map<std::string, double> evaluate(Parameterized& model, datasets::BatchIterator& batches,
                                       const std::vector<std::string>& names, const Score& score,
                                       Communicator* comm = nullptr);

// A test pass as an object, which MultiNodeEvaluator runs on all ranks. Derive from it for a pass
// of your own, with measure().
class Evaluator {
 public:
  // A pass of `model` in test state over `batches`, as of evaluate(); both outlive it. The batches
  // of a rank are its part of the data. ValueError for an empty score and batches that repeat.
  Evaluator(Parameterized& model, datasets::BatchIterator& batches, std::vector<std::string> names,
            Score score);
  virtual ~Evaluator() = default;
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // One pass over this process's samples: numerators and counts, not reduced.
  virtual Means measure();
  // The means over them.
  std::map<std::string, double> evaluate() { return measure().values(); }
  // The model that is tested; null: measure() has another one, or none.
  Parameterized* model() const { return model_; }

 protected:
  // For a measure() of your own.
  explicit Evaluator(Parameterized* model) : model_(model) {}

 private:
  Parameterized* model_;
  datasets::BatchIterator* batches_ = nullptr;
  std::vector<std::string> names_;
  Score score_;
};

// An evaluator on all ranks of a communicator. Each measures its own samples; the results are the
// means over the samples of all, equal on all ranks, also where ranks have different numbers of
// samples, or none.
class MultiNodeEvaluator {
 public:
  // The evaluator outlives it. A null communicator is one process.
  MultiNodeEvaluator(Evaluator& evaluator, CommunicatorPtr comm);

  // Makes the statistics of the model that the ranks collect apart one (average_persistents), then
  // runs the pass. Collective: every rank gives the same names in the same order.
  std::map<std::string, double> evaluate();

 private:
  Evaluator& evaluator_;
  CommunicatorPtr comm_;
};
// ChainerMN's spelling.
inline MultiNodeEvaluator create_multi_node_evaluator(Evaluator& evaluator, CommunicatorPtr comm) {
  return MultiNodeEvaluator(evaluator, std::move(comm));
}

// A number of this rank as one of the job: of all ranks the mean, sum, smallest or largest, for
// Trainer::observe, whose rows are made on all ranks together. In order of the ranks, so that all
// get the same bits. A null communicator is one process. ValueError for an empty function and other
// reductions. NaN where any rank has one. Collective at each call.
//
//   trainer.observe("seconds", training::over_ranks(seconds, comm, comm::Reduction::kMax));
std::function<double()> over_ranks(std::function<double()> value, CommunicatorPtr comm,
                                   comm::Reduction how = comm::Reduction::kMean);
// The exact mean of what the ranks have counted: sums over all ranks, divided last. NaN where
// nobody has counted anything.
std::function<double()> mean_over_ranks(std::function<Means::Sum()> value, CommunicatorPtr comm);

}  // namespace catena::training
