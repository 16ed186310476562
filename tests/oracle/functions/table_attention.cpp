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

}  // namespace

void add_attention(Functions& f) {
  f["scaled_dot_product_attention"] = attention;
  f["attention_with_statistics"] = attention;
}

}  // namespace catena::oracle
