// Selection by positions and masks.
#include "catena/array/indexing.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

OutOfRange mode_of(const Call& c) {
  const std::string& text = c.parameter("mode").text;
  return text == "wrap"   ? OutOfRange::kWrap
         : text == "clip" ? OutOfRange::kClip
                          : OutOfRange::kRaise;
}

// The index of a call; "@k" is argument k.
std::vector<AnyIndex> selection_of(const Call& c) {
  std::vector<AnyIndex> entries;
  for (const Value& v : c.parameter("index").list) {
    if (v.kind == Value::Kind::kText && v.text[0] == '@')
      entries.emplace_back(c.array(std::stoul(v.text.substr(1))));
    else
      entries.emplace_back(index_of(v));
  }
  return entries;
}

}  // namespace

void add_indexing(Routines& r) {
  r["take"] = [](const Call& c) {
    return Results{take(c.array(0), c.array(1), c.optional_integer("axis"), mode_of(c))};
  };
  r["scatter_add"] = [](const Call& c) {
    scatter_add(c.array(0), c.array(1), c.array(2), c.integer("axis"));
    return Results{c.array(0)};
  };
  r["index_get"] = [](const Call& c) { return Results{index_get(c.array(0), selection_of(c))}; };
  r["index_put"] = [](const Call& c) {
    index_put(c.array(0), selection_of(c), c.array(1));
    return Results{c.array(0)};
  };
  r["index_add"] = [](const Call& c) {
    index_add(c.array(0), selection_of(c), c.array(1));
    return Results{c.array(0)};
  };
  r["choose"] = [](const Call& c) { return Results{choose(c.array(0), c.arrays(1))}; };
  r["diagonal"] = [](const Call& c) {
    return Results{
        c.array(0).diagonal(c.integer("offset"), c.integer("axis1"), c.integer("axis2"))};
  };
}

}  // namespace catena::oracle
