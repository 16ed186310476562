// Attention.
#include "catena/functions/attention.h"

#include <sstream>

#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {
namespace F = catena::functions;

// q, k and v, a bias where the case says so, then the arrays whose names are given.
F::AttentionOptions options_of(const Inputs& in) {
  F::AttentionOptions o{.causal = in->flag("causal")};
  size_t next = 3;
  if (in->flag("bias")) o.bias = in[next++];
  if (in->has("window")) o.window = in->integer("window");
  if (in->real("scale") > 0) o.scale = in->real("scale");
  if (in->real("softcap") > 0) o.softcap = in->real("softcap");
  const std::map<std::string, std::optional<Array>*> arrays{{"mask", &o.mask},
                                                            {"key_lengths", &o.key_lengths},
                                                            {"query_start", &o.query_start},
                                                            {"documents", &o.documents},
                                                            {"key_documents", &o.key_documents}};
  std::istringstream names(in.text("given"));
  for (std::string name; names >> name;) *arrays.at(name) = in[next++].data();
  return o;
}

Variables attention(const Inputs& in) {
  if (in->flag("statistics")) {
    const auto result = F::attention_with_statistics(in[0], in[1], in[2], options_of(in));
    return {result.y, result.log_sum_exp};
  }
  return {F::scaled_dot_product_attention(in[0], in[1], in[2], options_of(in))};
}

Variables rotary(const Inputs& in) {
  F::RotaryOptions o{.base = in->real("base"),
                     .interleaved = in->flag("interleaved"),
                     .start = in->integer("start")};
  if (in->has("rotated")) o.rotated = in->integer("rotated");
  if (in->flag("positions")) o.positions = in[1].data();
  const std::string& scaling = in.text("scaling");
  const double factor = in->real("factor");
  const int64_t original = in->integer("original");
  if (scaling == "llama3") o.llama3 = {.factor = factor, .low = 1, .high = 4, .original = original};
  if (scaling == "yarn") o.yarn = {.factor = factor, .original = original};
  return {F::rotary_embedding(in[0], o)};
}

}  // namespace

void add_attention(Functions& f) {
  f["scaled_dot_product_attention"] = attention;
  f["attention_with_statistics"] = attention;
  f["rotary_embedding"] = rotary;
  f["alibi"] = [](const Inputs& in) {
    const auto& shape = in[0].shape();
    const bool causal = in->flag("causal");
    const Dtype wide = in[0].dtype() == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
    const Array bias = F::alibi_bias(shape[1], shape[2], in[1].shape()[2],
                                     {.causal = causal, .dtype = wide, .device = in[0].device()});
    return Variables{
        F::scaled_dot_product_attention(in[0], in[1], in[2], {.causal = causal, .bias = bias})};
  };
}

}  // namespace catena::oracle
