// Translations by a model: the likeliest ones that are found.
#pragma once

#include <cstdint>
#include <vector>

#include "model.h"
#include "vocabulary.h"

namespace translation {

// The translations of sentences, in their order; nothing for one without tokens. Of each sentence
// `beams` beginnings are kept, the likeliest that continue those kept before; with one of them each
// next token is the likeliest. A sentence is done when as many translations have ended, of which
// the best has the largest logarithm of its probability over the 0.6th power of its length (Wu et
// al. 2016, without their constant). One that has not ended at twice the length of the sentence and
// 20 more is cut off. In test state, `batch` sentences at a time.
std::vector<Tokens> translate(Translator& model, const std::vector<Tokens>& sentences,
                              int64_t beams, int64_t batch);

}  // namespace translation
