// Measures that no gradient flows through: one header each.
#pragma once

#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/evaluation/binary_accuracy.h"
#include "catena/functions/evaluation/confusion_matrix.h"
#include "catena/functions/evaluation/r2_score.h"
#include "catena/functions/evaluation/top_k_accuracy.h"
#include "catena/functions/math.h"
