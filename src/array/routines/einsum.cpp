// Einstein's summation by permutation, reduction and batched matrix products.
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

// Names of axes: letters, and kRest + i for the i-th axis of "...", counted from the last one.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kRest = 1000;

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Term {
  Array array;
  Labels labels;  // one for each axis, all different
};

class Parser {
 public:
  Parser(std::string_view text, std::span<const Array> operands) : text_(text) {
    for (char c : text) {
      if (c != ' ') compact_ += c;
    }
    const size_t arrow = compact_.find("->");
    const std::string left = compact_.substr(0, arrow);
    size_t begin = 0;
    std::vector<std::string> parts;
    for (size_t comma; (comma = left.find(',', begin)) != left.npos; begin = comma + 1)
      parts.push_back(left.substr(begin, comma - begin));
    parts.push_back(left.substr(begin));
    check(parts.size() == operands.size(),
          message(parts.size(), " terms for ", operands.size(), " operands"));
    for (size_t k = 0; k < parts.size(); ++k) add_term(parts[k], operands[k]);
    if (arrow == compact_.npos)
      implicit_output();
    else
      explicit_output(compact_.substr(arrow + 2));
  }

  std::vector<Term> terms;
  Labels output;

 private:
  void check(bool good, const std::string& what) const {
    CATENA_CHECK(ValueError, good, "'", text_, "': ", what);
  }

  // The labels of a term in which "..." stands for `rest` axes.
  Labels parse(const std::string& part, int rest) const {
    Labels labels;
    bool dots = false;
    for (size_t i = 0; i < part.size(); ++i) {
      if (part.compare(i, 3, "...") == 0) {
        check(!dots, message("'", part, "' has two ellipses"));
        dots = true;
        for (int r = rest; r-- > 0;) labels.push_back(kRest + r);
        i += 2;
        continue;
      }
      check(std::isalpha(static_cast<unsigned char>(part[i])) != 0,
            message("'", part.substr(i, 1), "' is not a letter"));
      labels.push_back(part[i]);
    }
    return labels;
  }

  void add_term(const std::string& part, const Array& array) {
    const bool dots = part.find("...") != part.npos;
    const int letters = static_cast<int>(part.size()) - (dots ? 3 : 0);
    check(dots ? letters <= array.ndim() : letters == array.ndim(),
          message("'", part, "' does not name the axes of an array of shape ", array.shape()));
    const int rest = dots ? array.ndim() - letters : 0;
    rest_ = std::max(rest_, rest);
    add_diagonals(array, parse(part, rest));
  }

  // A name that occurs twice selects the diagonal of its axes.
  void add_diagonals(Array array, Labels labels) {
    for (Label label : labels) occurrences_.push_back(label);
    for (size_t i = 0; i < labels.size();) {
      const auto twin = std::find(labels.begin() + int64_t(i) + 1, labels.end(), labels[i]);
      if (twin == labels.end()) {
        ++i;
        continue;
      }
      const auto j = int64_t(twin - labels.begin());
      check(array.shape()[i] == array.shape()[size_t(j)],
            message("axis '", std::string(1, char(labels[i])), "' has the extents ",
                    array.shape()[i], " and ", array.shape()[size_t(j)]));
      array = array.diagonal(0, int64_t(i), j);
      const Label label = labels[i];
      labels.erase(twin);
      labels.erase(labels.begin() + int64_t(i));
      labels.push_back(label);  // the diagonal is last; the axis now at i is next
    }
    terms.push_back({array, labels});
  }

  void implicit_output() {
    for (int r = rest_; r-- > 0;) output.push_back(kRest + r);
    Labels once;
    for (Label label : occurrences_) {
      if (label < kRest && std::count(occurrences_.begin(), occurrences_.end(), label) == 1)
        once.push_back(label);
    }
    std::sort(once.begin(), once.end());
    output.insert(output.end(), once.begin(), once.end());
  }

  void explicit_output(const std::string& part) {
    output = parse(part, rest_);
    check(rest_ == 0 || part.find("...") != part.npos,
          "the output has no ellipsis for that of an operand");
    for (size_t i = 0; i < output.size(); ++i) {
      const std::string shown(1, char(output[i] < kRest ? output[i] : '.'));
      check(contains(occurrences_, output[i]), message("output axis '", shown, "' is in no term"));
      check(std::count(output.begin(), output.end(), output[i]) == 1,
            message("output axis '", shown, "' is named twice"));
    }
  }

  std::string_view text_;
  std::string compact_;
  Labels occurrences_;
  int rest_ = 0;
};

// The axes in the order of `wanted`, which names all of them.
Array arrange(const Term& term, const Labels& wanted) {
  Axes order;
  for (Label label : wanted)
    order.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
  return order.empty() ? term.array : term.array.transpose(order);
}

// Sums over the axes that `kept` does not name, in the dtype of the term.
Term sum_others(const Term& term, const Labels& kept) {
  ReduceOptions options;
  Labels labels;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (contains(kept, term.labels[i]))
      labels.push_back(term.labels[i]);
    else
      options.axes.push_back(int64_t(i));
  }
  if (options.axes.empty()) return term;
  options.dtype = term.array.dtype();
  // The sum of truth values is "or".
  if (term.array.dtype() == Dtype::kBool) return {any(term.array, options), labels};
  return {sum(term.array, options), labels};
}

int64_t extent_of(const Term& term, Label label) {
  const auto place = std::find(term.labels.begin(), term.labels.end(), label);
  return place == term.labels.end() ? 1 : term.array.shape()[size_t(place - term.labels.begin())];
}

// The broadcast extents of both terms for the labels of a group.
Shape joint_extents(std::string_view text, const Term& a, const Term& b, const Labels& group) {
  Shape shape;
  for (Label label : group) {
    const int64_t x = extent_of(a, label), y = extent_of(b, label);
    CATENA_CHECK(ShapeError, x == y || x == 1 || y == 1, "'", text, "': axis '",
                 std::string(1, char(label < kRest ? label : '.')), "' has the extents ", x,
                 " and ", y);
    shape.push_back(x == 1 ? y : x);
  }
  return shape;
}

Shape joined(std::initializer_list<Shape> parts) {
  Shape all;
  for (const Shape& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
Labels joined(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The product of two terms, summed over the axes that `kept` does not name.
Term contract(std::string_view text, Term a, Term b, const Labels& kept) {
  const Labels both_kept = joined({kept, b.labels}), other_kept = joined({kept, a.labels});
  a = sum_others(a, both_kept);
  b = sum_others(b, other_kept);
  Labels batch, summed, left, right;
  for (Label label : a.labels) {
    if (!contains(b.labels, label))
      left.push_back(label);
    else
      (contains(kept, label) ? batch : summed).push_back(label);
  }
  for (Label label : b.labels) {
    if (!contains(a.labels, label)) right.push_back(label);
  }
  const Shape batch_shape = joint_extents(text, a, b, batch),
              summed_shape = joint_extents(text, a, b, summed),
              left_shape = joint_extents(text, a, b, left),
              right_shape = joint_extents(text, a, b, right);
  const int64_t rows = element_count(left_shape), columns = element_count(right_shape),
                depth = element_count(summed_shape), stack = element_count(batch_shape);
  const Array x = arrange(a, joined({batch, left, summed}));
  const Labels labels = joined({batch, left, right});
  const Shape shape = joined({batch_shape, left_shape, right_shape});
  if (summed.empty()) {  // no sum: an element-wise product
    const Array y = arrange(b, joined({batch, right}));
    Shape x_shape = x.shape(), y_shape(y.shape().begin(), y.shape().begin() + batch_shape.ndim());
    x_shape.insert(x_shape.end(), right.size(), 1);
    y_shape.insert(y_shape.end(), left.size(), 1);
    y_shape.insert(y_shape.end(), y.shape().begin() + batch_shape.ndim(), y.shape().end());
    return {multiply(x.reshape(x_shape), y.reshape(y_shape)), labels};
  }
  const Array y = arrange(b, joined({batch, summed, right}));
  const Array x3 = x.broadcast_to(joined({batch_shape, left_shape, summed_shape}))
                       .reshape({stack, rows, depth}),
              y3 = y.broadcast_to(joined({batch_shape, summed_shape, right_shape}))
                       .reshape({stack, depth, columns});
  const Array product = stack == 1 ? matmul(x3[0], y3[0]) : matmul(x3, y3);
  return {product.reshape(shape), labels};
}

}  // namespace

Array einsum(std::string_view subscripts, std::span<const Array> operands) {
  const EntryScope call("einsum");
  CATENA_CHECK(ValueError, !operands.empty(), "'", subscripts, "': expected at least one operand");
  for (const Array& a : operands) check_defined(a);
  for (const Array& a : operands) check_same_device(operands[0], a);
  Parser parser(subscripts, operands);
  Dtype dtype = operands[0].dtype();
  for (const Array& a : operands) dtype = promote(dtype, a.dtype());
  auto& terms = parser.terms;
  for (Term& term : terms) term.array = term.array.astype(dtype, false);
  Term result = terms[0];
  for (size_t k = 1; k < terms.size(); ++k) {
    Labels kept = parser.output;
    for (size_t later = k + 1; later < terms.size(); ++later)
      kept.insert(kept.end(), terms[later].labels.begin(), terms[later].labels.end());
    result = contract(subscripts, result, terms[k], kept);
  }
  return arrange(sum_others(result, parser.output), parser.output);
}

Array einsum(std::string_view subscripts, std::initializer_list<Array> operands) {
  return einsum(subscripts, std::span<const Array>(operands.begin(), operands.size()));
}

}  // namespace catena
