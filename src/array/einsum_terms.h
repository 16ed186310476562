// Subscripts and order of work of einsum, for arrays and variables: written for the operations of
// either.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catena/core/error.h"
#include "catena/core/shape.h"

namespace catena::einsum_terms {

// Names of axes: letters, and kRest + i for the i-th axis of "...", counted from the last one.
using Label = int;
using Labels = std::vector<Label>;
inline constexpr Label kRest = 1000;

// "ij,jk->ik", read: the names of the axes of each operand, and those of the result.
struct Subscripts {
  std::string_view text;
  std::vector<Labels> operands;  // a name may occur twice in one: the diagonal of its axes
  Labels output;
};
// ValueError, which shows the text, unless they are subscripts of operands of these shapes.
Subscripts read_subscripts(std::string_view text, std::span<const Shape> shapes);

inline bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
template <class List>
List joined(std::initializer_list<List> parts) {
  List all;
  for (const List& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Contracts operands from left to right. T is an array or a variable; Operations has, as static
// functions, diagonal(x, i, j), transpose(x, axes), sum(x, axes), multiply(x, y), reshape(x,
// shape), broadcast_to(x, shape), and product(x, y) of matrices or of as many matrices each.
template <class T, class Operations>
class Contraction {
 public:
  static T of(const Subscripts& subscripts, const std::vector<T>& operands) {
    return Contraction(subscripts).result(operands);
  }

 private:
  struct Term {
    T value;
    Labels labels;  // one for each axis, all different
  };

  explicit Contraction(const Subscripts& subscripts) : subscripts_(subscripts) {}

  T result(const std::vector<T>& operands) const {
    const std::vector<Labels>& named = subscripts_.operands;
    Term total = with_diagonals(operands[0], named[0]);
    for (size_t k = 1; k < operands.size(); ++k) {
      Labels kept = subscripts_.output;
      for (size_t later = k + 1; later < operands.size(); ++later)
        kept.insert(kept.end(), named[later].begin(), named[later].end());
      total = contracted(total, with_diagonals(operands[k], named[k]), kept);
    }
    return arranged(sum_others(total, subscripts_.output), subscripts_.output);
  }

  // A name that occurs twice selects the diagonal of its axes.
  static Term with_diagonals(T value, Labels labels) {
    for (size_t i = 0; i < labels.size();) {
      const auto twin = std::find(labels.begin() + int64_t(i) + 1, labels.end(), labels[i]);
      if (twin == labels.end()) {
        ++i;
        continue;
      }
      value = Operations::diagonal(value, int64_t(i), int64_t(twin - labels.begin()));
      const Label label = labels[i];
      labels.erase(twin);
      labels.erase(labels.begin() + int64_t(i));
      labels.push_back(label);  // the diagonal is last; the axis now at i is next
    }
    return {value, labels};
  }

  // The axes in the order of `wanted`, which names all of them.
  static T arranged(const Term& term, const Labels& wanted) {
    Axes order;
    for (Label label : wanted)
      order.push_back(std::find(term.labels.begin(), term.labels.end(), label) -
                      term.labels.begin());
    return order.empty() ? term.value : Operations::transpose(term.value, order);
  }

  // Sums over the axes that `kept` does not name.
  static Term sum_others(const Term& term, const Labels& kept) {
    Axes others;
    Labels labels;
    for (size_t i = 0; i < term.labels.size(); ++i) {
      if (contains(kept, term.labels[i]))
        labels.push_back(term.labels[i]);
      else
        others.push_back(int64_t(i));
    }
    return others.empty() ? term : Term{Operations::sum(term.value, others), labels};
  }

  static int64_t extent_of(const Term& term, Label label) {
    const auto place = std::find(term.labels.begin(), term.labels.end(), label);
    return place == term.labels.end() ? 1 : term.value.shape()[size_t(place - term.labels.begin())];
  }

  // The broadcast extents of both terms for the labels of a group.
  Shape joint_extents(const Term& a, const Term& b, const Labels& group) const {
    Shape shape;
    for (Label label : group) {
      const int64_t x = extent_of(a, label), y = extent_of(b, label);
      CATENA_CHECK(ShapeError, x == y || x == 1 || y == 1, "'", subscripts_.text, "': axis '",
                   std::string(1, char(label < kRest ? label : '.')), "' has the extents ", x,
                   " and ", y);
      shape.push_back(x == 1 ? y : x);
    }
    return shape;
  }

  // The product of two terms, summed over the axes that `kept` does not name.
  Term contracted(Term a, Term b, const Labels& kept) const {
    const Labels both_kept = joined({kept, b.labels}), other_kept = joined({kept, a.labels});
    a = sum_others(a, both_kept);
    b = sum_others(b, other_kept);
    Groups g;
    for (Label label : a.labels) {
      if (!contains(b.labels, label))
        g.left.push_back(label);
      else
        (contains(kept, label) ? g.batch : g.summed).push_back(label);
    }
    for (Label label : b.labels) {
      if (!contains(a.labels, label)) g.right.push_back(label);
    }
    g.batch_shape = joint_extents(a, b, g.batch);
    g.summed_shape = joint_extents(a, b, g.summed);
    g.left_shape = joint_extents(a, b, g.left);
    g.right_shape = joint_extents(a, b, g.right);
    return {g.summed.empty() ? outer_product(a, b, g) : matrix_product(a, b, g),
            joined({g.batch, g.left, g.right})};
  }

  // The names of axes that both have and that stay or are summed over, and of those that one has.
  struct Groups {
    Labels batch, summed, left, right;
    Shape batch_shape, summed_shape, left_shape, right_shape;
  };

  static T outer_product(const Term& a, const Term& b, const Groups& g) {
    const T x = arranged(a, joined({g.batch, g.left})), y = arranged(b, joined({g.batch, g.right}));
    Shape x_shape = x.shape(), y_shape(y.shape().begin(), y.shape().begin() + g.batch_shape.ndim());
    x_shape.insert(x_shape.end(), g.right.size(), 1);
    y_shape.insert(y_shape.end(), g.left.size(), 1);
    y_shape.insert(y_shape.end(), y.shape().begin() + g.batch_shape.ndim(), y.shape().end());
    return Operations::multiply(Operations::reshape(x, x_shape), Operations::reshape(y, y_shape));
  }

  static T matrix_product(const Term& a, const Term& b, const Groups& g) {
    const int64_t rows = element_count(g.left_shape), columns = element_count(g.right_shape),
                  depth = element_count(g.summed_shape), stack = element_count(g.batch_shape);
    const auto matrices = [&](const T& x, const Shape& wide, int64_t m, int64_t n) {
      return Operations::reshape(Operations::broadcast_to(x, wide),
                                 stack == 1 ? Shape{m, n} : Shape{stack, m, n});
    };
    const T x = matrices(arranged(a, joined({g.batch, g.left, g.summed})),
                         joined({g.batch_shape, g.left_shape, g.summed_shape}), rows, depth);
    const T y = matrices(arranged(b, joined({g.batch, g.summed, g.right})),
                         joined({g.batch_shape, g.summed_shape, g.right_shape}), depth, columns);
    return Operations::reshape(Operations::product(x, y),
                               joined({g.batch_shape, g.left_shape, g.right_shape}));
  }

  const Subscripts& subscripts_;
};

}  // namespace catena::einsum_terms
