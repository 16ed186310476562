// How much translations have in common with those of people.
#pragma once

#include <vector>

#include "vocabulary.h"

namespace translation {

// BLEU of a whole text, of 0 to 100 (K. Papineni et al., BLEU: a method for automatic evaluation of
// machine translation, 2002): the geometric mean of the shares of the runs of 1 to 4 tokens that
// are also in the reference, each as often as there, times exp(1 - r / c) where the c tokens of the
// translations are fewer than the r of the references. kUnknown is in no reference. ValueError for
// other numbers of references.
double bleu(const std::vector<Tokens>& translations, const std::vector<Tokens>& references);

}  // namespace translation
