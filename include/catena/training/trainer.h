// Trainer: the loop around the steps of training: epochs, test passes, table and log, checkpoints,
// and whatever a program adds to it.
//
//   training::StandardUpdater updater(batches, training::make_step(optimizer, score));
//   training::Trainer trainer(updater, model, optimizer, {.epochs = 20, .out = "result"});
//   trainer.evaluate_on(test_batches, score);
//   if (trainer.has_checkpoint()) trainer.resume();
//   trainer.run();
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catena/serializers/checkpoint.h"
#include "catena/training/progress.h"
#include "catena/training/report.h"
#include "catena/training/updater.h"

namespace catena::training {

struct RankState;

// After every so many epochs, or updates, of the whole run: {.epochs = 1}, {.iterations = 100},
// both or (never) none.
struct Trigger {
  int64_t epochs = 0;
  int64_t iterations = 0;
  bool is_set() const { return epochs > 0 || iterations > 0; }
};

// Length, output and files of a run.
struct TrainerOptions {
  // The run ends after so many epochs or updates, those before resume() included, whichever comes
  // first. 0: no limit; ValueError when neither has one.
  int64_t epochs = 0;
  int64_t iterations = 0;
  std::string out = {};  // folder of log.json and checkpoint.npz, made; empty: writes no files
  std::vector<std::string> metrics = {"loss", "accuracy"};  // numbers of a Score, the loss first
  Trigger report = {.epochs = 1};  // a test pass, and a row of table and log
  Trigger snapshot = {.epochs = 1};
  bool allow_nonfinite_loss = false;  // go on from a row whose train_loss is infinite or NaN
  std::optional<bool> silent = {};    // no bar, no table; default: ranks other than 0
  std::ostream* stream = nullptr;     // of bar and table; default: standard output
};

// Which value of a metric counts as the best.
enum class Best : uint8_t { kHighest, kLowest };

// After each update that is due: a row with epoch (with "iteration" where rows come by those), the
// means of the metrics since the row before as train_*, those of the test pass as test_*, elapsed
// (seconds, those of the resumed run included) and the observed numbers; then the extensions, in
// the order in which they were added; then the checkpoint. When the run ends in between, it ends
// with a row and a checkpoint. Neither is made where its trigger is not set.
//
// With a multi-node optimizer all ranks make one of the same options and call the same functions.
// Means are those of all samples of all ranks; statistics of the model are averaged before test
// passes and checkpoints; rank 0 alone prints and writes; the ranks compare their states before
// each checkpoint.
//
// What updater, model, optimizer, functions and extensions refer to must outlive the trainer. An
// exception of any of them leaves run(); the last checkpoint stays.
class Trainer {
 public:
  using Extension = std::function<void(Trainer&)>;

  // ValueError when no limit is set, no metric is named, or the optimizer is not set up; IoError
  // when files cannot be written to options.out.
  Trainer(Updater& updater, Parameterized& model, Optimizer& optimizer, TrainerOptions options);
  Trainer(Updater& updater, Parameterized& model, parallel::MultiNodeOptimizer& optimizer,
          TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Before the run; what the checkpoint holds also before resume() ----------------------------
  // Each row begins with a pass over these batches (an order without repeat), without a graph, the
  // model in test state.
  void evaluate_on(datasets::BatchIterator& batches, Score score);
  // A further column of table and log: what `value` says when a row is made.
  void observe(const std::string& name, std::function<double()> value);
  // Anything else: schedules, checks, samples. Called when the trigger is due.
  void extend(const Trigger& when, Extension what);
  // Saves the model to options.out/file after each row in which the column is better than in all
  // rows before, the resumed ones included. The row must have it (ValueError).
  void keep_best(const std::string& column, Best best, const std::string& file = "best.npz");
  // What is saved and resumed: model, optimizer, position in the data, random numbers of the
  // batches' device, counts, sums of the metrics since the last row. Programs may add to it.
  serializers::Checkpoint& checkpoint() { return checkpoint_; }
  // options.out/checkpoint.npz.
  std::string checkpoint_path() const;
  // Whether there is one, on rank 0. Collective over ranks.
  bool has_checkpoint() const;
  // Goes on from the checkpoint, as if the run had not ended: bit for bit with equal numbers of
  // ranks and threads, else up to rounding. Rank 0 reads it for all, and the rows of log.json up to
  // there; they may have other columns than those that follow. IoError, on all ranks, when one of
  // the files is damaged, or the checkpoint is missing or does not fit.
  //
  // Each rank gets its own random numbers back, and its own arrays declared OverRanks::kPerRank. A
  // rank that the earlier run did not have gets a generator with a seed made from rank 0's seed and
  // its own number (rank 0's generator where all ranks of the earlier run had equal ones), and
  // rank 0's arrays.
  void resume();

  // The run ----------------------------------------------------------------------------------
  // Until the limit. ValueError after a row whose train_loss is not finite (on all ranks, and
  // before anything is saved) unless allow_nonfinite_loss.
  void run();
  // Makes run() end after the current update. Of ranks all must call it after the same one.
  void stop() { stopped_ = true; }
  // A test pass now. ValueError without evaluate_on().
  std::map<std::string, double> evaluate();

  // Where it stands --------------------------------------------------------------------------
  int64_t epoch() const { return updater_.batches().epoch(); }  // completed ones
  double epoch_detail() const { return updater_.batches().epoch_detail(); }
  int64_t iteration() const { return iteration_; }
  bool is_due(const Trigger& trigger) const;  // after the last update
  // The last row that this trainer has made; empty before. The same on all ranks, but for elapsed
  // and observed numbers.
  const Row& row() const { return row_; }
  // A number of it. ValueError listing the columns when there is none.
  double value(const std::string& column) const;
  Optimizer& optimizer() { return optimizer_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Extended {
    Trigger when;
    Extension what;
  };
  struct Record {  // of one keep_best
    std::string column, path;
    Best best;
    double value;  // NaN: none yet
  };
  Trainer(Updater& updater, Parameterized& model, Optimizer& optimizer,
          parallel::MultiNodeOptimizer* ranks, TrainerOptions options);
  bool is_root() const;
  bool is_silent() const;
  bool is_done() const;
  ProgressBar make_bar() const;
  void update(ProgressBar& bar);
  void finish_row(ProgressBar& bar);
  void check_loss() const;
  void save_best(Record& record);
  void average_statistics();
  void count_time();
  RankState own_state();
  void save_snapshot();

  Updater& updater_;
  Parameterized& model_;
  Optimizer& optimizer_;
  TrainerOptions options_;
  parallel::MultiNodeOptimizer* ranks_;  // null: one process
  Communicator* comm_;                   // theirs, or null
  Means means_;                          // since the last row
  Report report_;
  serializers::Checkpoint checkpoint_;
  std::map<std::string, Array> rank_states_;  // while a checkpoint is written or read
  datasets::BatchIterator* test_batches_ = nullptr;
  Score test_score_;
  std::vector<std::pair<std::string, std::function<double()>>> observed_;
  std::vector<Extended> extensions_;
  std::vector<std::unique_ptr<Record>> records_;  // pointers: the checkpoint refers to them
  Row row_;
  int64_t iteration_ = 0;
  int64_t reported_ = 0, saved_ = 0, averaged_ = -1;  // iterations of the last of each
  bool epoch_ended_ = false;
  bool stopped_ = false;
  double elapsed_ = 0;
  Clock::time_point since_{};  // elapsed_ is counted up to here
};

}  // namespace catena::training
