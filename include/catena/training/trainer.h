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
#include <utility>
#include <vector>

#include "catena/serializers/checkpoint.h"
#include "catena/training/checkpoint_folder.h"
#include "catena/training/extension.h"
#include "catena/training/progress.h"
#include "catena/training/report.h"
#include "catena/training/updater.h"

namespace catena::training {

struct RankState;

// Length, output and files of a run.
struct TrainerOptions {
  // The run ends after so many epochs or updates, those before resume() included, whichever comes
  // first. 0: no limit; ValueError when neither has one.
  int64_t epochs = 0;
  int64_t iterations = 0;
  std::string out = {};  // folder of log.json and of checkpoints, made; empty: writes no files
  std::vector<std::string> metrics = {"loss", "accuracy"};  // numbers of a Score, the loss first
  Trigger report = {.epochs = 1};  // a test pass, and a row of table and log
  Trigger snapshot = {.epochs = 1};
  // Set: all ranks write checkpoints together, to the CheckpointFolder out/checkpoints, on a file
  // system that they share; with `async` behind training. Else rank 0 writes out/checkpoint.npz.
  std::optional<CheckpointFolderOptions> checkpoints = {};
  bool async = true;
  // All ranks of the run, where the optimizers' communicator has some of them: Grid::comm(), which
  // models with tensor-parallel layers need. Its rank 0 is that of the optimizers' too. Null: those
  // of the optimizers.
  Communicator* ranks = nullptr;
  bool overwrite = false;  // replace the files of an earlier run that resume() does not go on from
  // Go on from a row, and to a checkpoint, whose train_loss is infinite or NaN. Losses are those
  // before each update: what the last update did to the parameters is not seen.
  bool allow_nonfinite_loss = false;
  // A NanFinder around each update: the first function whose output or gradient is not finite ends
  // the run, with the parameters by name. Several times slower, and not for captured steps or loss
  // scales, whose gradients may overflow.
  bool find_nan = false;
  std::optional<bool> silent = {};  // no bar, no table; default: ranks other than 0
  std::ostream* stream = nullptr;   // of bar and table; default: standard output
};

// After each update that is due: a row with the epoch ("iteration" where rows are counted in
// iterations), the means of the metrics since the last row as train_*, the results of the test pass
// as test_*, elapsed (seconds, including the resumed run) and the observed numbers; then the
// extensions, by priority and in the order in which they were added; then the checkpoint. If the
// run ends between two triggers, a last row and checkpoint are written. Neither is made where its
// trigger is not set.
//
// With a multi-node optimizer all ranks make one of the same options and call the same functions.
// Means are those of all samples of all ranks; statistics of the model are averaged before test
// passes and checkpoints; rank 0 alone prints and writes, but for checkpoints (see TrainerOptions);
// the ranks compare their states before each checkpoint.
//
// Of tensor-parallel layers each rank has slices. The optimizer then averages over Grid::data(),
// and .ranks = &grid.comm() says who writes checkpoints and whose rank 0 prints; a file of one rank
// has no room for slices, so that .checkpoints must be set, and save_model() and keep_best() are
// errors. All ranks have rank 0's row. Generators are saved for each rank of the optimizer's
// communicator: the ranks that share a layer draw alike.
//
// What updater, model, optimizers, functions and extensions refer to must outlive the trainer. An
// exception of any of them leaves run(); the last checkpoint stays.
class Trainer {
 public:
  // ValueError when no limit is set, no metric is named, or an optimizer is not set up, and where
  // the model has slices over ranks that the files of the run cannot have (.ranks, .checkpoints);
  // IoError when files cannot be written to options.out.
  Trainer(Updater& updater, Parameterized& model, Optimizer& optimizer, TrainerOptions options)
      : Trainer(updater, model, List<Optimizer>{optimizer}, std::move(options)) {}
  Trainer(Updater& updater, Parameterized& model, parallel::MultiNodeOptimizer& optimizer,
          TrainerOptions options)
      : Trainer(updater, model, List<parallel::MultiNodeOptimizer>{optimizer}, std::move(options)) {
  }
  // Several optimizers, each with parameters of the model: {generator, critic}. All are saved and
  // resumed; the updater says which of them a step uses. Multi-node ones have one communicator.
  template <class Rule>
  using List = std::vector<std::reference_wrapper<Rule>>;
  Trainer(Updater& updater, Parameterized& model, const List<Optimizer>& optimizers,
          TrainerOptions options);
  Trainer(Updater& updater, Parameterized& model,
          const List<parallel::MultiNodeOptimizer>& optimizers, TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Before the run; what the checkpoint holds also before resume() ----------------------------
  // Each row begins with a pass over these batches, without a graph, the model in test state.
  // ValueError for the batches of training, an order that repeats, and an empty score.
  void evaluate_on(datasets::BatchIterator& batches, Score score);
  // A further column of table and log: what `value` says when a row is made. What it refers to must
  // live until the run ends, as with extend() and scores. ValueError for a column that there is
  // already, and an empty function.
  void observe(const std::string& name, std::function<double()> value);
  // Anything else, as a function: checks, samples. Called when the trigger is due. ValueError when
  // it is not set or the function is empty.
  void extend(const Trigger& when, FunctionExtension::Function what);
  // The same as an object, of which the trainer keeps the state: its name, when, and what it does
  // at the start and the end are its own. Returns it.
  template <class E>
  E& extend(std::unique_ptr<E> extension) {
    E& added = *extension;
    add_extension(std::move(extension));
    return added;
  }
  // extend() with a KeepBest. The row must have the column (ValueError), the trainer a folder.
  void keep_best(const std::string& column, Best best, const std::string& file = "best.npz");
  // extend() with an EarlyStopping.
  void stop_early(const std::string& column, Best best, int64_t patience, double least_change = 0);
  // extend() with a LearningRate of the (first) optimizer.
  void schedule(optimizers::Schedule rate, const Trigger& every = {.epochs = 1});
  // What is saved and resumed: model, optimizers, position in the data, random numbers of the
  // batches' device, counts, sums of the metrics since the last row, that row, and the states of
  // the extensions. Programs may add to it.
  serializers::Checkpoint& checkpoint() { return checkpoint_; }
  // options.out/checkpoint.npz, or options.out/checkpoints; empty without a folder.
  std::string checkpoint_path() const;
  // Whether there is one of either form, on rank 0. Collective over ranks.
  bool has_checkpoint() const;
  // Removes those of both forms. Collective over ranks.
  void remove_checkpoints();
  // Goes on from the newest checkpoint, of whichever form, as if the run had not ended: bit for bit
  // with equal numbers of ranks and threads, else up to rounding. Rank 0 reads checkpoint.npz for
  // all, all ranks read the folder. Rank 0 reads the rows of log.json up to there; they may have
  // other columns than those that follow. An extension that the earlier run
  // did not have begins anew. ValueError without a folder; IoError, on all ranks, when one of the
  // files is damaged, or the checkpoint is missing or does not fit.
  //
  // Each rank gets its own random numbers back, and its own arrays declared OverRanks::kPerRank. A
  // rank that the earlier run did not have gets a generator with a seed made from rank 0's seed and
  // its own number (rank 0's generator where all ranks of the earlier run had equal ones), and
  // rank 0's arrays.
  void resume();

  // The run ----------------------------------------------------------------------------------
  // Until the limit; a run that has reached it, or that an extension had stopped before resume(),
  // says so and ends. ValueError, on all ranks, when the folder has files of an earlier run that
  // this one would overwrite (see TrainerOptions), and after a row whose train_loss is not finite,
  // before anything is saved, unless allow_nonfinite_loss.
  void run();
  // Makes run() end after the current update, or the next run() before its first. Of ranks all must
  // call it after the same one: decide by numbers that all have, such as those of the row.
  void stop() { stopped_ = true; }
  // A test pass now. Collective over ranks. ValueError without evaluate_on().
  std::map<std::string, double> evaluate();
  // Saves the model, with statistics averaged and parameters gathered, to options.out/file; rank 0
  // writes. Collective over ranks. ValueError without a folder.
  void save_model(const std::string& file);

  // Where it stands --------------------------------------------------------------------------
  int64_t epoch() const { return updater_.batches().epoch(); }  // completed ones
  double epoch_detail() const { return updater_.batches().epoch_detail(); }
  int64_t iteration() const { return iteration_; }
  bool is_due(const Trigger& trigger) const;  // after the last update
  // The last row of the run, that of before resume() included; empty before. The same on all ranks,
  // but for elapsed and observed numbers.
  const Row& row() const { return row_; }
  // A number of it. ValueError listing the columns when there is none.
  double value(const std::string& column) const;
  Optimizer& optimizer(size_t k = 0) { return optimizers_.at(k); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Added {
    std::unique_ptr<Extension> extension;
    serializers::Checkpoint state;
  };
  Trainer(Updater& updater, Parameterized& model, const List<Optimizer>& optimizers,
          const List<parallel::MultiNodeOptimizer>& ranks, TrainerOptions options);
  void check_options() const;
  void check_slices() const;
  void list_state();
  bool is_root() const;
  bool is_silent() const;
  void add_extension(std::unique_ptr<Extension> extension);
  std::string folder(const char* who, const std::string& file) const;
  std::string path_for_model(const char* who, const std::string& file) const;

  std::vector<std::string> files_in_the_way() const;
  void take_folder();
  NamedArrays upgraded(NamedArrays arrays) const;
  std::string folder_path() const;
  std::string file_path() const;
  bool folder_is_newest() const;
  void read_checkpoint(std::vector<Row>& rows);
  bool write_checkpoint();  // false: left out, because the one before is still being written
  void restore_row();
  void restore_extensions();
  void gather_values();
  void gather_values_for_folder();
  // Of models that the ranks collect apart.
  void average_statistics();
  void count_time();
  RankState own_state();
  void save_snapshot();

  bool is_done() const;
  void say_that_it_has_ended(const std::string& how) const;
  void start_extensions();
  ProgressBar make_bar() const;
  void update(ProgressBar& bar);
  void run_extensions(ProgressBar& bar, const std::function<bool(const Trigger&)>& due);
  void finish_row(ProgressBar& bar);
  void check_losses_since_row();
  void require_finite_loss(bool is_finite, const std::string& what) const;

  Updater& updater_;
  Parameterized& model_;
  List<Optimizer> optimizers_;
  TrainerOptions options_;
  List<parallel::MultiNodeOptimizer> ranks_;  // empty: one process
  Communicator* comm_;                        // theirs, or null
  Communicator* all_;                         // of all ranks of the run, or null
  Means means_;                               // since the last row
  Report report_;
  serializers::Checkpoint checkpoint_;
  std::unique_ptr<CheckpointFolder> folder_;  // null: checkpoint.npz
  // What only checkpoints hold in this form, while one is written or read.
  std::map<std::string, Array> rank_states_, extension_states_;
  std::string row_columns_;
  std::vector<double> row_numbers_;
  datasets::BatchIterator* test_batches_ = nullptr;
  Score test_score_;
  std::vector<std::pair<std::string, std::function<double()>>> observed_;
  std::vector<Added> extensions_;  // in the order in which they run
  Row row_;
  int64_t functions_ = 0;  // extensions that are functions
  int64_t iteration_ = 0;
  int64_t reported_ = 0, saved_ = 0, averaged_ = -1;  // iterations of the last of each
  bool epoch_ended_ = false;
  bool stopped_ = false, resumed_ = false;
  double elapsed_ = 0;
  Clock::time_point since_{};  // elapsed_ is counted up to here
};

}  // namespace catena::training
