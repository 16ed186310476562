// Windows of a text, test passes and samples of a language model.
#pragma once

#include <string>
#include <vector>

#include "catena/datasets/prefetch.h"
#include "catena/training/trainer.h"
#include "model.h"

namespace ptb {

// A text as `streams` texts beside each other. Sample i of the data set is window i / streams of
// stream i % streams: `window` words, and those that follow each of them. So batches of `streams`
// samples, in order, go through all streams, and the next batch goes on where this one ends. What
// does not fill a window is left out; ValueError when that is everything, which names `what`.
catena::datasets::DatasetPtr windows_of(const std::vector<int32_t>& text, int64_t streams,
                                        int64_t window, const std::string& what);

// {steps * mean, mean} of the cross entropy of the next words. The first one is what is minimised:
// the sum over the words of a window, of the mean over the streams.
catena::Variables score_of(LanguageModel& model, const catena::datasets::Batch& batch);

// exp(mean cross entropy) of a text, read from its beginning, from states of zero; the model is in
// test state. Collective over the ranks of `comm`.
double perplexity_of(LanguageModel& model, catena::datasets::ResidentIterator& text,
                     catena::Communicator& comm);

// `count` words that follow the end of a line, each drawn with the probability that the model gives
// it.
std::string sample(LanguageModel& model, const std::vector<std::string>& vocabulary, int64_t count);

}  // namespace ptb
