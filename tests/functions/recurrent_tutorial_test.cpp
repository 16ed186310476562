// The recurrent language model of Chainer's tutorial, trained by whole and by truncated
// backpropagation through time.
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/optimizers/sgd.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

constexpr int64_t kWords = 1000;

struct LanguageModel : FunctionSet {
  F::EmbedID embed{kWords, 100};
  F::Linear x_to_h{100, 50}, h_to_h{50, 50}, h_to_y{50, kWords};
  CATENA_FUNCTIONS(embed, x_to_h, h_to_h, h_to_y)

  // The next state, and the loss of the word that follows.
  Variable forward_one_step(Variable& h, const Array& word, const Array& next) {
    h = F::tanh(x_to_h(embed(word)) + h_to_h(h));
    return F::softmax_cross_entropy(h_to_y(h), next);
  }
};

class RecurrentTutorial : public OnDevice {
 protected:
  RecurrentTutorial() {
    model_.to(device());
    optimizer_.setup(model_);
  }
  Variable initial_state() const { return Variable(zeros({1, 50}, {Dtype::kFloat32, device()})); }
  // A sentence that counts: the word after w is (7 w + 3) % 40.
  std::vector<Array> sentence(size_t length) const {
    std::vector<Array> words;
    for (int32_t word = 5; words.size() < length; word = (7 * word + 3) % 40)
      words.push_back(array(std::vector<int32_t>{word}).to(device()));
    return words;
  }

  // Before the weights are drawn.
  static LanguageModel seeded_model() {
    random::seed(9);
    return LanguageModel();
  }

  LanguageModel model_ = seeded_model();
  optimizers::SGD optimizer_{0.1};
};
CATENA_ON_DEVICES(RecurrentTutorial);

// The loss of a sentence of any length, back through all of it.
TEST_P(RecurrentTutorial, LearnsSentencesOfAnyLength) {
  const auto loss_of = [&](const std::vector<Array>& words) {
    Variable h = initial_state(), loss;
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      const Variable one = model_.forward_one_step(h, words[i], words[i + 1]);
      loss = loss.defined() ? loss + one : one;
    }
    return loss;
  };
  // h_to_h is used in every step: its gradient is the sum of theirs, as numbers say.
  const std::vector<Array> words = sentence(5);
  model_.zero_grads();
  loss_of(words).backward();
  const double slope = sum(model_.h_to_h.W.grad()).item<double>();
  const Array W = model_.h_to_h.W.data();
  const auto shifted = [&](double by) {
    W += by;
    const double loss = loss_of(words).data().astype(Dtype::kFloat64).item<double>();
    W -= by;
    return loss;
  };
  EXPECT_NEAR(slope, (shifted(2e-3) - shifted(-2e-3)) / 4e-3, 1e-2 * (1 + std::abs(slope)));

  double first = 0, last = 0;
  for (int epoch = 0; epoch < 30; ++epoch) {
    double total = 0;
    for (const size_t length : {4, 9, 6}) {
      const Variable loss = loss_of(sentence(length));
      model_.zero_grads();
      loss.backward();
      optimizer_.update();
      total += loss.data().item<double>();
    }
    if (epoch == 0) first = total;
    last = total;
  }
  EXPECT_LT(last, first / 10);
}

// What is before the last cut is freed: every part of 30 steps needs the memory of the first.
TEST_P(RecurrentTutorial, FreesWhatIsBeforeTheLastCut) {
  const std::vector<Array> words = sentence(301);
  Variable h = initial_state(), loss;
  std::vector<double> losses;
  std::vector<size_t> used, peaks;
  size_t most = 0;
  const auto used_now = [&] { return memory_statistics(device()).in_use; };
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const Variable one = model_.forward_one_step(h, words[i], words[i + 1]);
    loss = loss.defined() ? loss + one : one;
    most = std::max(most, size_t(used_now()));
    if ((i + 1) % 30 != 0) continue;
    losses.push_back(loss.data().item<double>());
    const Array state = h.data().copy();
    optimizer_.zero_grads();
    loss.backward();
    loss.unchain_backward();
    EXPECT_EQ(h.creator(), nullptr);
    EXPECT_EQ(testing::difference(h.data(), state), "");
    optimizer_.update();
    loss = Variable();
    used.push_back(size_t(used_now()));
    peaks.push_back(std::exchange(most, size_t{0}));
  }
  ASSERT_EQ(losses.size(), 10u);
  EXPECT_LT(losses.back(), losses.front() / 2);
  for (size_t part = 2; part < 10; ++part) {
    EXPECT_EQ(used[part], used[1]) << part;
    EXPECT_EQ(peaks[part], peaks[1]) << part;
  }
}

}  // namespace
}  // namespace catena
