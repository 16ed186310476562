#include "catena/parallel/pipeline/partition.h"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "catena/array/creation.h"
#include "catena/array/random_source.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/grad_mode.h"
#include "catena/core/stream.h"
#include "catena/parallel/pipeline/balance.h"

namespace catena::parallel::pipeline {

int Cut::end(int stage, size_t units) const {
  return stage + 1 < stages() ? first[size_t(stage) + 1] : static_cast<int>(units);
}

void Cut::check(size_t units) const {
  CATENA_CHECK(ValueError, !first.empty() && first[0] == 0,
               "Cut: the first stage must begin with unit 0; give the first unit of each stage, as "
               "in Cut{{0, 4, 8}}");
  for (int s = 0; s < stages(); ++s)
    CATENA_CHECK(ValueError, first[size_t(s)] < end(s, units), "Cut: stage ", s, " of ", stages(),
                 " begins with unit ", first[size_t(s)], " and ends before unit ", end(s, units),
                 " of a model of ", units, " units; every stage needs at least one");
}

namespace {

std::string unit_text(const Sequence& model, int unit) {
  const std::string number = std::to_string(unit), &name = model.name(size_t(unit));
  return name == number ? number : number + " (" + name + ")";
}

// A line for each stage, and what the largest means.
std::string describe_cut(const Sequence& model, const Cut& cut, const std::vector<double>& costs,
                         const std::string& what) {
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  double largest = 0;
  std::ostringstream text;
  text << model.size() << " units in " << cut.stages() << " stages, by " << what << "\n";
  for (int s = 0; s < cut.stages(); ++s) {
    const int begin = cut.first[size_t(s)], end = cut.end(s, model.size());
    const double cost = std::accumulate(costs.begin() + begin, costs.begin() + end, 0.0);
    largest = std::max(largest, cost);
    text << "stage " << s << ": unit " << unit_text(model, begin);
    if (end - begin > 1) text << " to " << unit_text(model, end - 1);
    text << ", cost " << std::setprecision(4) << cost << " (" << std::fixed << std::setprecision(1)
         << (total > 0 ? 100 * cost / total : 0) << " %)\n"
         << std::defaultfloat;
  }
  if (largest > 0)
    text << "largest stage: " << std::fixed << std::setprecision(3)
         << largest * cut.stages() / total << " of an equal share\n";
  return text.str();
}

Cut cut_by(const Sequence& model, int stages, const std::vector<double>& costs,
           const std::string& what) {
  const auto units = static_cast<int>(model.size());
  CATENA_CHECK(ValueError, stages >= 1 && stages <= units, "partition: ", stages,
               " stages of a model of ", units, " units; expected 1 to ", units);
  CATENA_CHECK(ValueError, costs.size() == model.size(), "partition: ", costs.size(),
               " costs for a model of ", units, " units; expected one for each unit");
  Cut cut{balance(costs, stages).first};
  cut.first.pop_back();  // the end of the last stage
  cut.text = describe_cut(model, cut, costs, what);
  return cut;
}

// Times of one unit, forward and backward, and its results for the next one.
class UnitTimer {
 public:
  UnitTimer(Sequence& model, size_t unit, Arrays inputs)
      : model_(model), unit_(unit), inputs_(std::move(inputs)) {}

  double run() {
    wait();
    const auto start = std::chrono::steady_clock::now();
    Variables xs;
    for (const Array& x : inputs_)
      xs.push_back(is_float(x.dtype()) && unit_ > 0 ? Variable(x) : Variable::constant(x));
    const RandomSourceScope numbers({0, 0, nullptr});
    const RepeatedForward no_averages;
    const Variables ys = model_.run(unit_, xs);
    Variables starts;
    Arrays gradients;
    results_.clear();
    for (const Variable& y : ys) {
      results_.push_back(y.data());
      if (!y.creator() || !y.requires_grad()) continue;
      starts.push_back(y);
      gradients.push_back(ones_like(y.data()));
    }
    if (!starts.empty()) backward(starts, gradients);
    wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const Arrays& results() const { return results_; }

 private:
  void wait() const {
    for (const Array& x : inputs_) synchronize(x.device());
  }

  Sequence& model_;
  size_t unit_;
  Arrays inputs_, results_;
};

}  // namespace

Cut partition(const Sequence& model, int stages, const std::vector<double>& costs) {
  return cut_by(model, stages, costs, "given costs");
}

Cut partition(const Sequence& model, int stages) {
  std::vector<double> costs;
  for (size_t u = 0; u < model.size(); ++u)
    costs.push_back(model.layer(u) ? double(model.layer(u)->parameter_count()) : 0);
  return cut_by(model, stages, costs, "elements of parameters");
}

Cut partition(Sequence& model, int stages, const Arrays& sample, Communicator* comm) {
  std::vector<double> costs = measure_costs(model, sample);
  if (comm) costs = comm->broadcast_object(costs);
  return cut_by(model, stages, costs, "measured seconds");
}

std::vector<double> measure_costs(Sequence& model, const Arrays& sample, int rounds) {
  CATENA_CHECK(ValueError, !sample.empty() && sample[0].defined(),
               "measure_costs: the sample is undefined; give an input of the model");
  CATENA_CHECK(ValueError, rounds > 0, "measure_costs: expected at least one round, got ", rounds);
  std::vector<double> costs;
  Arrays inputs = sample;
  for (size_t u = 0; u < model.size(); ++u) {
    UnitTimer timer(model, u, inputs);
    timer.run();  // kernels are compiled, memory is there
    std::vector<double> seconds;
    for (int i = 0; i < rounds; ++i) seconds.push_back(timer.run());
    std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
    costs.push_back(seconds[size_t(rounds) / 2]);
    inputs = timer.results();
  }
  model.zero_grads();
  return costs;
}

}  // namespace catena::parallel::pipeline
