// The loop around the steps of training.
#include "catena/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "catena/autograd/grad_mode.h"
#include "catena/comm/internals.h"
#include "catena/parallel/from_rank0.h"
#include "catena/parallel/persistents.h"
#include "catena/training/output_folder.h"
#include "training/rank_states.h"

namespace catena::training {
namespace {

const std::string kRanks = "rank_states";  // the checkpoint's entry for what each rank has

// Checkpoints of before 2026-11-23 do not have that entry.
NamedArrays with_rank_states(NamedArrays arrays) {
  const bool has = std::any_of(arrays.begin(), arrays.end(), [](const auto& named) {
    return named.first.starts_with(kRanks + "/");
  });
  if (!has) arrays.emplace_back(kRanks + "/none", zeros({0}, {dtype::uint8, cpu(0)}));
  return arrays;
}

}  // namespace

// Making one --------------------------------------------------------------------------------------

Trainer::Trainer(Updater& updater, Parameterized& model, Optimizer& optimizer,
                 parallel::MultiNodeOptimizer* ranks, TrainerOptions options)
    : updater_(updater),
      model_(model),
      optimizer_(optimizer),
      options_(std::move(options)),
      ranks_(ranks),
      comm_(ranks ? &ranks->comm() : nullptr),
      means_(options_.metrics),
      report_({.log = is_root() && !options_.out.empty() ? options_.out + "/log.json" : "",
               .silent = is_silent(),
               .out = options_.stream}) {
  CATENA_CHECK(ValueError, options_.epochs > 0 || options_.iterations > 0, "Trainer: .epochs is ",
               options_.epochs, " and .iterations ", options_.iterations,
               "; set one above 0, at which the run ends");
  CATENA_CHECK(ValueError, !options_.metrics.empty(),
               "Trainer: .metrics is empty; name at least the loss");
  CATENA_CHECK(ValueError, optimizer_.is_set_up(),
               "Trainer: the optimizer has no parameters yet; call setup(model) first");
  if (!options_.out.empty()) prepare_output_folder(options_.out);
  datasets::BatchIterator& batches = updater_.batches();
  checkpoint_.add("model", model_);
  checkpoint_.add("optimizer", optimizer_);
  checkpoint_.add("iteration", iteration_);
  checkpoint_.add("elapsed", elapsed_);
  checkpoint_.add(
      "iterator", [&batches] { return batches.state(); },
      [&batches](const datasets::IteratorState& state) { batches.set_state(state); });
  checkpoint_.add("random", random::default_state(batches.device()));
  checkpoint_.add(kRanks, rank_states_);
}

Trainer::Trainer(Updater& updater, Parameterized& model, Optimizer& optimizer,
                 TrainerOptions options)
    : Trainer(updater, model, optimizer, nullptr, std::move(options)) {}

Trainer::Trainer(Updater& updater, Parameterized& model, parallel::MultiNodeOptimizer& optimizer,
                 TrainerOptions options)
    : Trainer(updater, model, optimizer.actual_optimizer(), &optimizer, std::move(options)) {}

bool Trainer::is_root() const { return comm_ == nullptr || comm_->rank() == 0; }
bool Trainer::is_silent() const { return options_.silent.value_or(!is_root() || !prints()); }

void Trainer::evaluate_on(datasets::BatchIterator& batches, Score score) {
  test_batches_ = &batches;
  test_score_ = std::move(score);
}

void Trainer::observe(const std::string& name, std::function<double()> value) {
  observed_.emplace_back(name, std::move(value));
}

void Trainer::extend(const Trigger& when, Extension what) {
  extensions_.push_back({when, std::move(what)});
}

void Trainer::keep_best(const std::string& column, Best best, const std::string& file) {
  CATENA_CHECK(ValueError, !options_.out.empty(), "Trainer::keep_best: there is no folder for '",
               file, "'; set .out");
  records_.push_back(
      std::make_unique<Record>(Record{column, options_.out + "/" + file, best, std::nan("")}));
  checkpoint_.add("best " + file, records_.back()->value);
}

void Trainer::save_best(Record& record) {
  const double now = value(record.column);
  const bool better = record.best == Best::kHighest ? now > record.value : now < record.value;
  if (std::isnan(now) || !(std::isnan(record.value) || better)) return;
  record.value = now;
  if (is_root()) serializers::save(record.path, model_);
}

// Checkpoints -------------------------------------------------------------------------------------

std::string Trainer::checkpoint_path() const { return options_.out + "/checkpoint.npz"; }

bool Trainer::has_checkpoint() const {
  const bool exists = !options_.out.empty() && std::filesystem::exists(checkpoint_path());
  return comm_ ? comm_->broadcast_object(int(exists)) != 0 : exists;
}

void Trainer::resume() {
  const auto share = parallel::from_rank_0(comm_);
  std::vector<Row> rows;  // of the log, on rank 0: read before anything is restored
  checkpoint_.load(checkpoint_path(), [&](const auto& read) {
    return share([&] {
      CATENA_CHECK(IoError, std::filesystem::exists(checkpoint_path()),
                   "Trainer::resume: there is no '", checkpoint_path(),
                   "' to go on from; start without resume(), or give the folder of the earlier "
                   "run as .out");
      rows = report_.read_log();
      return with_rank_states(read());
    });
  });
  updater_.settle(means_);  // of an earlier run of this trainer
  means_.clear();
  restore_rank_state(rank_states_, own_state(), comm_);
  rank_states_.clear();
  reported_ = saved_ = iteration_;
  averaged_ = -1;
  report_.restore(std::move(rows), epoch_detail());
}

RankState Trainer::own_state() {
  return {random::default_state(updater_.batches().device()), means_, options_.metrics, model_};
}

void Trainer::average_statistics() {
  if (averaged_ == iteration_) return;
  parallel::average_persistents(model_, comm_);
  averaged_ = iteration_;
}

void Trainer::save_snapshot() {
  if (ranks_) ranks_->check_state();
  saved_ = iteration_;
  if (options_.out.empty()) return;
  average_statistics();
  count_time();
  updater_.settle(means_);
  rank_states_ = gather_rank_states(own_state(), comm_);
  if (is_root()) checkpoint_.save(checkpoint_path());
  rank_states_.clear();
}

void Trainer::count_time() {
  const auto now = Clock::now();
  elapsed_ += std::chrono::duration<double>(now - since_).count();
  since_ = now;
}

// The run -----------------------------------------------------------------------------------------

bool Trainer::is_done() const {
  return stopped_ || (options_.epochs > 0 && epoch() >= options_.epochs) ||
         (options_.iterations > 0 && iteration_ >= options_.iterations);
}

bool Trainer::is_due(const Trigger& trigger) const {
  return (trigger.epochs > 0 && epoch_ended_ && epoch() % trigger.epochs == 0) ||
         (trigger.iterations > 0 && iteration_ % trigger.iterations == 0);
}

// Counts samples; of a run that ends after so many updates, as if all batches were of one size.
ProgressBar Trainer::make_bar() const {
  const datasets::BatchIterator& batches = updater_.batches();
  const int64_t total = options_.epochs > 0
                            ? options_.epochs * batches.size()
                            : options_.iterations * batches.size() / batches.batches_per_epoch();
  return ProgressBar(total, options_.epochs, {.silent = is_silent(), .out = options_.stream});
}

void Trainer::run() {
  stopped_ = false;
  since_ = Clock::now();
  ProgressBar bar = make_bar();
  while (!is_done()) update(bar);
  const comm::PurposeScope purpose(
      comm_, stopped_ ? "the end of Trainer::run after stop()" : "the end of Trainer::run");
  if (options_.report.is_set() && iteration_ > reported_) finish_row(bar);
  if (options_.snapshot.is_set() && iteration_ > saved_) save_snapshot();
}

void Trainer::update(ProgressBar& bar) {
  const datasets::BatchIterator& batches = updater_.batches();
  const int64_t running = epoch();
  updater_.update(means_);
  ++iteration_;
  epoch_ended_ = epoch() != running;
  bar.update(epoch() * batches.size() + batches.position(), running + 1);
  if (!options_.report.is_set()) means_.clear();  // nobody will ask for them
  if (is_due(options_.report)) finish_row(bar);
  for (const Extended& e : extensions_) {
    if (!is_due(e.when)) continue;
    bar.clear();
    e.what(*this);
  }
  // The last one follows the last row, whose records it holds.
  if (is_due(options_.snapshot) && !is_done()) save_snapshot();
}

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
  bar.clear();
  report_.add(row);
  row_ = std::move(row);
  reported_ = iteration_;
  if (!options_.allow_nonfinite_loss) check_loss();
  if (!records_.empty()) average_statistics();
  for (const auto& record : records_) save_best(*record);
}

void Trainer::check_loss() const {
  const std::string column = "train_" + options_.metrics[0];
  CATENA_CHECK(ValueError, std::isfinite(value(column)), "Trainer: ", column, " is ", value(column),
               " after ", iteration_, " updates (epoch ", epoch_detail(),
               "); the run ends here and does not save this state",
               saved_ > 0 && !options_.out.empty()
                   ? message(", the last checkpoint is of update ", saved_)
                   : "",
               "; try a lower learning rate or clipped gradients, or set .allow_nonfinite_loss to "
               "go on all the same");
}

std::map<std::string, double> Trainer::evaluate() {
  CATENA_CHECK(ValueError, test_batches_ != nullptr,
               "Trainer::evaluate: there are no test batches; call evaluate_on first");
  // Of models that collect statistics all ranks test one, which the checkpoint then has.
  average_statistics();
  const NoBackprop no_graph;
  return training::evaluate(
      model_, *test_batches_, options_.metrics,
      [this](const datasets::Batch& batch, Means& means) {
        Arrays numbers;
        for (const Variable& number : test_score_(batch)) numbers.push_back(number.data());
        means.add(numbers, double(batch.size()));
      },
      comm_);
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
