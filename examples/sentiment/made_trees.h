// Trees that need no files.
#pragma once

#include "trees.h"

namespace sentiment {

// `count` phrases to train on and a quarter of that for each of dev and test. They are made of a
// few words, of which "awful" has label 0, "good" 3 and those without a meaning 2; "not" mirrors
// the label of what follows, "very" doubles its distance from 2, "but" takes the label of what
// follows, and two phrases beside each other add up. Equal for equal seeds. ValueError for less
// than 5 labels.
Data make_data(int64_t count, int64_t labels, uint64_t seed);

}  // namespace sentiment
