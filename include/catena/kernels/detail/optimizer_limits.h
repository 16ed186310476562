// Limits of a row of optimizer_rules.def, and how its states are stored. Plain constants for every
// compiler.
#pragma once

namespace catena {

constexpr int kMaxRuleStates = 3;     // arrays beside the parameter
constexpr int kMaxRuleNumbers = 5;    // hyper-parameters beside the learning rate
constexpr int kMaxRuleConstants = 8;  // numbers that a functor's prepare() works out

// What is stored of a parameter beside its value: states that are wide (of the type that the rule
// computes in) or narrow (bfloat16), and, of 16-bit parameters, a master copy, or none: alone.
enum class RuleFormat : int { kWide, kNarrow, kWideAlone, kNarrowAlone };
constexpr int kRuleFormats = 4;

}  // namespace catena
