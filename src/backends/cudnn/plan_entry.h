// Entry of a plan on disk: the numbers of the engine that was chosen for a problem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace catena::cudnn {

// A configuration of an engine as cuDNN numbers it.
struct EngineChoice {
  struct Knob {
    int64_t type, value;
    friend bool operator==(const Knob&, const Knob&) = default;
  };
  int64_t engine = 0;  // the global index for the graph of the problem
  std::vector<Knob> knobs;
  friend bool operator==(const EngineChoice&, const EngineChoice&) = default;
};

struct PlanEntry {
  std::optional<EngineChoice> choice;  // none: cuDNN has no engine that may be used
  // Of an engine that is compiled at run time, cuDNN's own text of the plan with its kernels; else
  // "".
  std::string compiled;
};

// The entry as bytes. `problem`, one line, is everything that decided the choice.
std::string to_bytes(const PlanEntry& entry, std::string_view problem);
// Nothing where the bytes have another form or belong to another problem.
std::optional<PlanEntry> plan_entry_from(std::string_view bytes, std::string_view problem);

}  // namespace catena::cudnn
