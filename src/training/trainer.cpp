// The loop around the steps of training.
#include "catena/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "catena/autograd/function_hook.h"
#include "catena/comm/internals.h"
#include "catena/training/output_folder.h"

namespace catena::training {
namespace {

Trainer::List<Optimizer> actual(const Trainer::List<parallel::MultiNodeOptimizer>& ranks) {
  Trainer::List<Optimizer> optimizers;
  for (parallel::MultiNodeOptimizer& each : ranks) optimizers.push_back(each.actual_optimizer());
  return optimizers;
}

}  // namespace

// Making one --------------------------------------------------------------------------------------

Trainer::Trainer(Updater& updater, Parameterized& model, const List<Optimizer>& optimizers,
                 const List<parallel::MultiNodeOptimizer>& ranks, TrainerOptions options)
    : updater_(updater),
      model_(model),
      optimizers_(optimizers),
      options_(std::move(options)),
      ranks_(ranks),
      comm_(ranks.empty() ? nullptr : &ranks[0].get().comm()),
      all_(options_.ranks ? options_.ranks : comm_),
      means_(options_.metrics),
      report_({.log = is_root() && !options_.out.empty() ? options_.out + "/log.json" : "",
               .silent = is_silent(),
               .out = options_.stream}) {
  check_options();
  list_state();
  check_slices();
  if (!options_.out.empty()) prepare_output_folder(options_.out);
  if (!options_.out.empty() && options_.checkpoints)
    folder_ = std::make_unique<CheckpointFolder>(folder_path(), all_, *options_.checkpoints);
}

void Trainer::check_options() const {
  CATENA_CHECK(ValueError, options_.epochs > 0 || options_.iterations > 0, "Trainer: .epochs is ",
               options_.epochs, " and .iterations ", options_.iterations,
               "; set one above 0, at which the run ends");
  CATENA_CHECK(ValueError, !options_.metrics.empty(),
               "Trainer: .metrics is empty; name at least the loss");
  CATENA_CHECK(ValueError, !optimizers_.empty(), "Trainer: the list of optimizers is empty");
  for (const Optimizer& each : optimizers_)
    CATENA_CHECK(ValueError, each.is_set_up(),
                 "Trainer: the optimizer has no parameters yet; call setup(model) first");
  for (parallel::MultiNodeOptimizer& each : ranks_)
    CATENA_CHECK(ValueError, &each.comm() == comm_,
                 "Trainer: the optimizers have different communicators; give them one");
}

Trainer::Trainer(Updater& updater, Parameterized& model, const List<Optimizer>& optimizers,
                 TrainerOptions options)
    : Trainer(updater, model, optimizers, {}, std::move(options)) {}

Trainer::Trainer(Updater& updater, Parameterized& model,
                 const List<parallel::MultiNodeOptimizer>& optimizers, TrainerOptions options)
    : Trainer(updater, model, actual(optimizers), optimizers, std::move(options)) {}

bool Trainer::is_root() const { return all_ == nullptr || all_->rank() == 0; }
bool Trainer::is_silent() const { return options_.silent.value_or(!is_root() || !prints()); }

void Trainer::evaluate_on(datasets::BatchIterator& batches, Score score) {
  CATENA_CHECK(ValueError, &batches != &updater_.batches(),
               "Trainer::evaluate_on: these are the batches of training, which a test pass would "
               "rewind; give other ones");
  check_test_batches("Trainer::evaluate_on", batches);
  CATENA_CHECK(ValueError, score != nullptr,
               "Trainer::evaluate_on: the score is an empty function");
  test_batches_ = &batches;
  test_score_ = std::move(score);
}

void Trainer::observe(const std::string& name, std::function<double()> value) {
  CATENA_CHECK(ValueError, value != nullptr, "Trainer::observe: the function for '", name,
               "' is empty");
  bool known = name == "epoch" || name == "iteration" || name == "elapsed";
  for (const std::string& metric : options_.metrics)
    known = known || name == "train_" + metric || name == "test_" + metric;
  for (const auto& [other, number] : observed_) known = known || name == other;
  CATENA_CHECK(ValueError, !known, "Trainer::observe: the row has a column '", name,
               "' already; give another name");
  observed_.emplace_back(name, std::move(value));
}

void Trainer::extend(const Trigger& when, FunctionExtension::Function what) {
  CATENA_CHECK(ValueError, when.is_set(),
               "Trainer::extend: the trigger is not set, so that the function would never be "
               "called; set .epochs, .iterations or .rows");
  CATENA_CHECK(ValueError, what != nullptr, "Trainer::extend: the function is empty");
  const std::string name = message("function ", ++functions_);
  add_extension(std::make_unique<FunctionExtension>(name, when, std::move(what)));
}

void Trainer::add_extension(std::unique_ptr<Extension> extension) {
  CATENA_CHECK(ValueError, extension != nullptr, "Trainer::extend: there is no extension");
  const std::string& name = extension->name();
  CATENA_CHECK(ValueError, !name.empty() && name.find('/') == std::string::npos,
               "Trainer::extend: expected a name without '/', got '", name, "'");
  for (const Added& other : extensions_)
    CATENA_CHECK(ValueError, other.extension->name() != name,
                 "Trainer::extend: there is an extension '", name, "' already; give another name");
  Added added;
  extension->add_state(added.state);
  const auto place = std::find_if(extensions_.begin(), extensions_.end(), [&](const Added& other) {
    return other.extension->priority() < extension->priority();
  });
  added.extension = std::move(extension);
  extensions_.insert(place, std::move(added));
}

void Trainer::keep_best(const std::string& column, Best best, const std::string& file) {
  path_for_model("Trainer::keep_best", file);
  extend(std::make_unique<KeepBest>(column, best, file));
}

void Trainer::stop_early(const std::string& column, Best best, int64_t patience,
                         double least_change) {
  extend(std::make_unique<EarlyStopping>(column, best, patience, least_change));
}

void Trainer::schedule(optimizers::Schedule rate, const Trigger& every) {
  extend(std::make_unique<LearningRate>(optimizer(), std::move(rate), every));
}

// The run -----------------------------------------------------------------------------------------

bool Trainer::is_done() const {
  return stopped_ || (options_.epochs > 0 && epoch() >= options_.epochs) ||
         (options_.iterations > 0 && iteration_ >= options_.iterations);
}

bool Trainer::is_due(const Trigger& trigger) const {
  return (trigger.epochs > 0 && epoch_ended_ && epoch() % trigger.epochs == 0) ||
         (trigger.iterations > 0 && iteration_ % trigger.iterations == 0) ||
         (trigger.rows && iteration_ > 0 && reported_ == iteration_);
}

// Counts samples; of a run that ends after so many updates, as if all batches were of one size.
ProgressBar Trainer::make_bar() const {
  const datasets::BatchIterator& batches = updater_.batches();
  const int64_t total = options_.epochs > 0
                            ? options_.epochs * batches.size()
                            : options_.iterations * batches.size() / batches.batches_per_epoch();
  return ProgressBar(total, options_.epochs, {.silent = is_silent(), .out = options_.stream});
}

void Trainer::say_that_it_has_ended(const std::string& how) const {
  if (!is_silent())
    (options_.stream ? *options_.stream : std::cout) << message(
        "the run had ended at epoch ", epoch_detail(), " (update ", iteration_, ")", how, "\n");
}

// An extension that knows of earlier rows may end the run before its first update.
void Trainer::start_extensions() {
  for (const Added& added : extensions_) {
    const bool had_ended = is_done();
    added.extension->start(*this);
    if (!had_ended && stopped_)
      say_that_it_has_ended(
          message(": '", added.extension->name(), "' stopped it before another update"));
  }
}

void Trainer::run() {
  check_slices();
  take_folder();
  since_ = Clock::now();
  if (iteration_ > 0 && !stopped_ && is_done()) say_that_it_has_ended("; nothing is left to do");
  start_extensions();
  ProgressBar bar = make_bar();
  while (!is_done()) update(bar);
  const comm::PurposeScope purpose(
      comm_, stopped_ ? "the end of Trainer::run after stop()" : "the end of Trainer::run");
  stopped_ = false;
  if (options_.report.is_set() && iteration_ > reported_) {
    finish_row(bar);
    run_extensions(bar, [](const Trigger& trigger) { return trigger.rows; });
  }
  bar.clear();
  for (const Added& added : extensions_) added.extension->end(*this);
  if (options_.snapshot.is_set() && iteration_ > saved_) {
    if (folder_) folder_->wait();  // WhenBusy::kSkip must not leave out the last one
    save_snapshot();
  }
  if (folder_) folder_->wait();
}

void Trainer::update(ProgressBar& bar) {
  const datasets::BatchIterator& batches = updater_.batches();
  const int64_t running = epoch();
  {
    NanFinder finder;
    std::optional<FunctionHookScope> scope;
    if (options_.find_nan) scope.emplace(finder);
    updater_.update(means_);
  }
  ++iteration_;
  epoch_ended_ = epoch() != running;
  bar.update(epoch() * batches.size() + batches.position(), running + 1);
  if (!options_.report.is_set()) means_.clear();  // nobody will ask for them
  if (is_due(options_.report)) finish_row(bar);
  run_extensions(bar, [this](const Trigger& trigger) { return is_due(trigger); });
  // The last one follows the last row, whose records it holds.
  if (is_due(options_.snapshot) && !is_done()) save_snapshot();
}

void Trainer::run_extensions(ProgressBar& bar, const std::function<bool(const Trigger&)>& due) {
  for (const Added& added : extensions_) {
    if (!due(added.extension->trigger())) continue;
    if (!added.extension->is_quiet()) bar.clear();
    added.extension->run(*this);
  }
}

void Trainer::count_time() {
  const auto now = Clock::now();
  elapsed_ += std::chrono::duration<double>(now - since_).count();
  since_ = now;
}

namespace {

// Ranks that share layers compute one loss, but decide by it on their own, such as when to stop.
Row numbers_of_first(Communicator& comm, Row row) {
  std::vector<double> numbers;
  for (const auto& [name, number] : row) numbers.push_back(number);
  numbers = comm.broadcast_object(numbers);
  for (size_t k = 0; k < row.size(); ++k) row[k].second = numbers.at(k);
  return row;
}

}  // namespace

void Trainer::finish_row(ProgressBar& bar) {
  updater_.settle(means_);
  means_.reduce(comm_);
  Row row{{"epoch", epoch_detail()}};
  if (options_.report.iterations > 0) row.emplace_back("iteration", double(iteration_));
  for (const std::string& name : options_.metrics)
    row.emplace_back("train_" + name, means_.value(name));
  means_.clear();
  if (test_batches_) {
    const auto test = evaluate();
    for (const std::string& name : options_.metrics)
      row.emplace_back("test_" + name, test.at(name));
  }
  count_time();
  row.emplace_back("elapsed", elapsed_);
  for (const auto& [name, number] : observed_) row.emplace_back(name, number());
  if (all_ != comm_) row = numbers_of_first(*all_, std::move(row));
  bar.clear();
  report_.add(row);
  row_ = std::move(row);
  reported_ = iteration_;
  const double loss = value("train_" + options_.metrics[0]);
  require_finite_loss(options_.allow_nonfinite_loss || std::isfinite(loss), message(" is ", loss));
}

// Of losses that no row has looked at: a checkpoint must not replace a good one by such a state.
void Trainer::check_losses_since_row() {
  int is_finite = std::isfinite(means_.sum(options_.metrics[0]).sum);
  if (all_) is_finite = all_->all_reduce_value(is_finite, comm::Reduction::kMin);
  require_finite_loss(is_finite != 0,
                      " of an update since the last row is not finite, at a checkpoint");
}

void Trainer::require_finite_loss(bool is_finite, const std::string& what) const {
  CATENA_CHECK(
      ValueError, is_finite, "Trainer: train_", options_.metrics[0], what, " after ", iteration_,
      " updates (epoch ", epoch_detail(), "); the run ends here and does not save this state",
      saved_ > 0 && !options_.out.empty() ? message(", the last checkpoint is of update ", saved_)
                                          : "",
      "; try a lower learning rate or clipped gradients, set .find_nan to learn in which function ",
      comm_ ? "and on which rank " : "",
      "it begins, or .allow_nonfinite_loss to go on all the same");
}

std::map<std::string, double> Trainer::evaluate() {
  CATENA_CHECK(ValueError, test_batches_ != nullptr,
               "Trainer::evaluate: there are no test batches; call evaluate_on first");
  // Of models that collect statistics all ranks test one, which the checkpoint then has.
  gather_values();
  average_statistics();
  return training::evaluate(model_, *test_batches_, options_.metrics, test_score_, comm_);
}

double Trainer::value(const std::string& column) const {
  const auto at = std::find_if(row_.begin(), row_.end(),
                               [&](const auto& number) { return number.first == column; });
  if (at != row_.end()) return at->second;
  std::string columns;
  for (const auto& [name, number] : row_) columns += (columns.empty() ? "" : ", ") + name;
  fail<ValueError>("Trainer: the row has no column '", column, "'; it has ",
                   columns.empty() ? "none yet" : columns);
}

}  // namespace catena::training
