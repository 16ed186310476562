// Measures of answers.
#include "catena/functions/evaluation.h"

#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {
namespace F = catena::functions;

std::optional<int32_t> ignored(const Inputs& in) {
  if (!in->has("ignore_label")) return {};
  return static_cast<int32_t>(in->integer("ignore_label"));
}

F::ClassAverage average(const Inputs& in) {
  const std::string& name = in.text("average");
  if (name == "macro") return F::ClassAverage::kMacro;
  return name == "micro" ? F::ClassAverage::kMicro : F::ClassAverage::kNone;
}

}  // namespace

void add_evaluation(Functions& f) {
  f["accuracy"] = [](const Inputs& in) {
    return Variables{F::accuracy(in[0], in[1], ignored(in))};
  };
  f["binary_accuracy"] = [](const Inputs& in) {
    return Variables{F::binary_accuracy(in[0], in[1], ignored(in).value_or(-1))};
  };
  f["confusion_matrix"] = [](const Inputs& in) {
    return Variables{F::confusion_matrix(in[0], in[1], ignored(in))};
  };
  f["precision"] = [](const Inputs& in) {
    return Variables{F::precision(in[0], in[1], average(in), ignored(in))};
  };
  f["recall"] = [](const Inputs& in) {
    return Variables{F::recall(in[0], in[1], average(in), ignored(in))};
  };
  f["f1_score"] = [](const Inputs& in) {
    return Variables{F::f1_score(in[0], in[1], average(in), ignored(in))};
  };
  f["r2_score"] = [](const Inputs& in) {
    return Variables{F::r2_score(in[0], in[1], YesNo(in->flag("raw_values")))};
  };
  f["top_k_accuracy"] = [](const Inputs& in) {
    return Variables{F::top_k_accuracy(in[0], in[1], in->integer("k"), ignored(in))};
  };
}

}  // namespace catena::oracle
