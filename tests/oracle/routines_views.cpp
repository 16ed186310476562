// Chains of views of one array and writes through them. A chain is a list of steps; after each the
// view must have NumPy's elements, and after a write the whole memory NumPy's bytes.
#include "catena/array/math.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

std::vector<Index> indices_of(const Value& list) {
  std::vector<Index> indices;
  for (const Value& v : list.list) indices.push_back(index_of(v));
  return indices;
}

Dims dims_of(const Value& v) {
  Dims dims;
  for (const Value& x : v.list) dims.push_back(x.integer);
  return dims;
}

Scalar scalar_of(const Value& v) {
  return v.kind == Value::Kind::kReal ? Scalar(v.real) : Scalar(v.integer);
}

using ViewStep = std::function<Array(const Array&, const Value&)>;
const std::map<std::string, ViewStep>& view_steps() {
  static const std::map<std::string, ViewStep> steps = {
      {"index", [](const Array& a, const Value& v) { return a.at(indices_of(v.list.at(1))); }},
      {"transpose",
       [](const Array& a, const Value& v) { return a.transpose(dims_of(v.list.at(1))); }},
      {"swapaxes",
       [](const Array& a, const Value& v) {
         return a.swapaxes(v.list.at(1).integer, v.list.at(2).integer);
       }},
      {"reshape", [](const Array& a, const Value& v) { return a.reshape(dims_of(v.list.at(1))); }},
      {"squeeze", [](const Array& a, const Value&) { return a.squeeze(); }},
      {"expand_dims",
       [](const Array& a, const Value& v) { return a.expand_dims(v.list.at(1).integer); }},
      {"diagonal",
       [](const Array& a, const Value& v) {
         return a.diagonal(v.list.at(1).integer, v.list.at(2).integer, v.list.at(3).integer);
       }},
      {"broadcast",
       [](const Array& a, const Value& v) { return a.broadcast_to(dims_of(v.list.at(1))); }},
      {"view",
       [](const Array& a, const Value& v) { return a.view(parse_dtype(v.list.at(1).text)); }},
  };
  return steps;
}

// The writes; `source` is a view of the same memory or of the second argument.
using WriteStep = std::function<void(const Array&, const Array& source, const Value&)>;
const std::map<std::string, WriteStep>& write_steps() {
  static const std::map<std::string, WriteStep> steps = {
      {"fill",
       [](const Array& a, const Array&, const Value& v) { a.fill(scalar_of(v.list.at(1))); }},
      {"iadd", [](const Array& a, const Array& b, const Value&) { a += b; }},
      {"isub", [](const Array& a, const Array& b, const Value&) { a -= b; }},
      {"imul", [](const Array& a, const Array& b, const Value&) { a *= b; }},
      {"assign", [](const Array& a, const Array& b, const Value&) { a.assign(b); }},
      {"subtract_out", [](const Array& a, const Array& b, const Value&) { subtract(b, a, a); }},
      {"negative_out", [](const Array& a, const Array& b, const Value&) { negative(b, a); }},
  };
  return steps;
}

// The last entry of a write names its source: 1 for the second argument, or an index of the view
// itself, which overlaps.
Array source_of(const Call& c, const Array& view, const Value& step) {
  const Value& last = step.list.back();
  return last.kind == Value::Kind::kList ? view.at(indices_of(last))
                                         : c.array(static_cast<size_t>(last.integer));
}

}  // namespace

void add_views(Routines& r) {
  r["at"] = [](const Call& c) { return Results{c.array(0).at(indices_of(c.parameter("index")))}; };
  r["view"] = [](const Call& c) { return Results{c.array(0).view(*c.dtype())}; };
  // Results: after each step a copy of the view, and after a write one of the memory as bytes.
  r["view_chain"] = [](const Call& c) {
    Array view = c.array(0);
    Results results;
    for (const Value& step : c.parameter("steps").list) {
      const std::string& name = step.list.at(0).text;
      if (const auto op = view_steps().find(name); op != view_steps().end()) {
        const Array next = op->second(view, step);
        if (next.storage() != view.storage()) throw std::runtime_error(name + " made a copy");
        view = next;
      } else {
        // A write goes into a part of the view, which may overlap its source.
        const Array target = view.at(indices_of(step.list.at(step.list.size() - 2)));
        write_steps().at(name)(target, source_of(c, view, step), step);
        results.push_back(c.array(c.count() - 1).copy());  // the whole memory
      }
      results.push_back(view.copy());
    }
    return results;
  };
}

}  // namespace catena::oracle
