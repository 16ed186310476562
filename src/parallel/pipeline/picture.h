// Helpers of both kinds of drawings.
#pragma once

#include <string>
#include <vector>

#include "catena/parallel/pipeline/simulate.h"

namespace catena::parallel::pipeline {

// Which of its rank's stages each stage is, 0 for the first; whether a rank has several.
std::vector<int> place_on_rank(const Simulation& simulation);
bool has_several_stages(const Simulation& simulation);

// "1f1b: 4 stages on 4 ranks, 8 micro-batches, 33 s, bubble 27.3 %, at most 4 bytes on a rank".
std::string title_of(const Simulation& simulation);

// ValueError, from the function `who`, for a Simulation that nothing has filled.
void check_filled(const char* who, const Simulation& simulation);

// What a number is to a reader: at most four digits.
std::string short_number(double value);

}  // namespace catena::parallel::pipeline
