// Limits of a row of optimizer_rules.def. Plain constants for every compiler.
#pragma once

namespace catena {

constexpr int kMaxRuleStates = 3;     // arrays beside the parameter
constexpr int kMaxRuleNumbers = 5;    // hyper-parameters beside the learning rate
constexpr int kMaxRuleConstants = 8;  // numbers that a functor's prepare() works out

}  // namespace catena
