// Texts that a model writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model.h"

namespace gpt2 {

// How the next token is chosen: drawn from the top_k likeliest (0: from all), with probabilities of
// scores / temperature; of temperature 0 the likeliest.
struct Choice {
  double temperature = 1;
  int64_t top_k = 0;
  // Keys and values of earlier tokens are kept until the text has as many tokens as the model has
  // positions. Each token after that moves all others to other positions. Without a cache, all are
  // computed anew for each token. The tokens are the same.
  bool cache = true;
};

// `count` tokens that follow those of the prompt, which has one at least; each by as many of those
// before it as the model has positions. Drawn from the default generator of the CPU.
std::vector<int64_t> sample(Gpt2& model, std::vector<int64_t> prompt, int64_t count,
                            const Choice& choice);

// A prompt as tokens: its bytes if there are 256 tokens, else its numbers, separated by blanks. An
// empty one is the end of a line, or token 0. ValueError for words that are not tokens.
std::vector<int64_t> tokens_of(const std::string& prompt, int64_t vocabulary);
// The opposite.
std::string text_of(const std::vector<int64_t>& tokens, int64_t vocabulary);

}  // namespace gpt2
