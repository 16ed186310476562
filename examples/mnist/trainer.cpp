#include "trainer.h"

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "catena/autograd/grad_mode.h"
#include "catena/parallel/from_rank0.h"
#include "catena/parallel/persistents.h"
#include "catena/parallel/sum_over_ranks.h"
#include "catena/serializers/checkpoint.h"
#include "catena/serializers/npz.h"
#include "catena/training/evaluator.h"
#include "catena/training/output_folder.h"
#include "catena/training/progress.h"
#include "catena/training/report.h"
#include "graph_step.h"

namespace mnist {

namespace ds = catena::datasets;
namespace tr = catena::training;
namespace F = catena::functions;

Loss score(const catena::Variable& predictions, const catena::Array& labels) {
  return {F::softmax_cross_entropy(predictions, labels), F::accuracy(predictions, labels).data()};
}

namespace {

const std::vector<std::string> kNames{"loss", "accuracy"};

class Run {
 public:
  Run(const Options& options, Program& program)
      : options_(options),
        program_(program),
        data_(ds::load_mnist({.folder = options.data, .pixels = {28, 28}})),
        who_(program.comm ? ds::RankOf{program.comm->rank(), program.comm->size()} : ds::RankOf{}),
        train_(data_.train, ds::ShuffledIterator(data_.train->size(), options.batch, options.seed),
               program.device, who_),
        test_(data_.test, ds::SerialIterator(data_.test->size(), 1000), program.device, who_),
        report_({.log = is_root() ? options.out + "/log.json" : std::string()}) {
    describe_checkpoint();
  }

  void all_epochs() {
    if (options_.resume) resume();
    if (options_.graph) graph_ = std::make_unique<GraphStep>(program_, train_, options_.batch);
    tr::ProgressBar bar(options_.epochs * data_.train->size(), options_.epochs);
    const auto start = std::chrono::steady_clock::now();
    const double before = elapsed_;
    while (epoch_ < options_.epochs) {
      tr::Means means(kNames);
      if (const double rate = learning_rate(options_, epoch_)) program_.optimizer->set_lr(rate);
      one_epoch(means, bar);
      means.reduce(catena::parallel::sum_over_ranks(program_.comm));
      const auto test = evaluate();
      bar.clear();
      ++epoch_;
      elapsed_ =
          before + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      report_.add({{"epoch", double(epoch_)},
                   {"train_loss", means.value("loss")},
                   {"train_accuracy", means.value("accuracy")},
                   {"test_loss", test.at("loss")},
                   {"test_accuracy", test.at("accuracy")},
                   {"elapsed", elapsed_}});
      if (program_.check) program_.check();
      if (is_root()) checkpoint_.save(checkpoint_path());
    }
    finish();
  }

 private:
  bool is_root() const { return who_.rank == 0; }
  std::string checkpoint_path() const { return options_.out + "/checkpoint.npz"; }

  void describe_checkpoint() {
    checkpoint_.add(
        "settings",
        [this] {
          return Settings{options_.batch, options_.seed};
        },
        [this](const Settings& saved) { check_settings(saved); });
    checkpoint_.add("model", *program_.model);
    checkpoint_.add("optimizer", *program_.optimizer);
    checkpoint_.add("epoch", epoch_);
    checkpoint_.add("elapsed", elapsed_);
    checkpoint_.add(
        "iterator", [this] { return train_.state(); },
        [this](const ds::IteratorState& s) { train_.set_state(s); });
    checkpoint_.add("random", catena::random::default_state(program_.device));
  }

  // What the order of the samples depends on: a run that goes on with another one would not be the
  // run that it says it is.
  struct Settings {
    int64_t batch;
    uint64_t seed;
  };
  void check_settings(const Settings& saved) {
    CATENA_CHECK(ValueError, saved.batch == options_.batch && saved.seed == options_.seed,
                 "--resume: '", checkpoint_path(), "' was made with --batch ", saved.batch,
                 " --seed ", saved.seed, ", got --batch ", options_.batch, " --seed ",
                 options_.seed, "; give the same ones, or start without --resume");
  }

  void resume() {
    // Only rank 0 needs the file: the ranks may be on hosts that share none.
    const auto share = catena::parallel::from_rank_0(program_.comm);
    checkpoint_.load(checkpoint_path(), [&](const auto& read) {
      return share([&] {
        CATENA_CHECK(IoError, std::filesystem::exists(checkpoint_path()), "--resume: there is no '",
                     checkpoint_path(),
                     "' to go on from; start without --resume, or name the folder of the earlier "
                     "run with --out");
        return read();
      });
    });
    if (options_.lr > 0 && options_.lr != program_.optimizer->lr()) {
      if (tr::prints())
        std::printf("--lr %g replaces the %g of the checkpoint\n", options_.lr,
                    program_.optimizer->lr());
      program_.optimizer->set_lr(options_.lr);
    }
    if (is_root()) report_.restore(epoch_);
    if (epoch_ >= options_.epochs && tr::prints()) {
      std::printf("the checkpoint has %lld epochs already; ask for more with --epochs\n",
                  static_cast<long long>(epoch_));
    }
  }

  void one_epoch(tr::Means& means, tr::ProgressBar& bar) {
    if (graph_)
      return graph_->one_epoch(epoch_, means, [&](int64_t done) {
        bar.update(epoch_ * data_.train->size() + done, epoch_ + 1);
      });
    int64_t done = 0;
    for (bool last = false; !last;) {
      const auto batch = train_.next();
      const Scores scores = program_.step(*batch);
      if (batch->size() > 0) {
        means.add("loss", scores.loss, double(batch->size()));
        means.add("accuracy", scores.accuracy, double(batch->size()));
      }
      done += batch->global_count;
      bar.update(epoch_ * data_.train->size() + done, epoch_ + 1);
      last = train_.is_new_epoch();
    }
  }

  std::map<std::string, double> evaluate() {
    // Of models that collect statistics all ranks test one, which the checkpoint then has.
    catena::parallel::average_persistents(*program_.model, program_.comm);
    catena::NoBackprop no_graph;
    return tr::evaluate(
        *program_.model, test_, kNames,
        [&](const ds::Batch& batch, tr::Means& means) {
          const Loss scores = score(program_.predict(batch.x()), batch.t());
          means.add("loss", scores.loss.data(), double(batch.size()));
          means.add("accuracy", scores.accuracy, double(batch.size()));
        },
        catena::parallel::sum_over_ranks(program_.comm));
  }

  void finish() {
    if (is_root()) catena::serializers::save(options_.out + "/model.npz", *program_.model);
    if (tr::prints())
      std::printf("test accuracy %.4f\n", report_.rows().empty() ? evaluate().at("accuracy")
                                                                 : report_.last("test_accuracy"));
  }

  const Options& options_;
  Program& program_;
  ds::Mnist data_;
  ds::RankOf who_;
  ds::ResidentIterator train_, test_;
  tr::Report report_;
  catena::serializers::Checkpoint checkpoint_;
  std::unique_ptr<GraphStep> graph_;
  int64_t epoch_ = 0;
  double elapsed_ = 0;
};

}  // namespace

void train(const Options& options, Program& program) {
  tr::prepare_output_folder(options.out);
  Run(options, program).all_epochs();
}

}  // namespace mnist
