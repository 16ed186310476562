// Records of functions that move axes, and of those that take triangles and diagonals.
#include <algorithm>

#include "catena/functions/array/diagonal.h"
#include "catena/functions/array/flip.h"
#include "catena/functions/array/move_axes.h"
#include "catena/functions/array/sort.h"
#include "catena/functions/array/stack.h"
#include "catena/functions/array/triangle.h"
#include "functions/array/view_record.h"

namespace catena {
namespace {

// Axis i of the result is axis order[i] of x.
UnaryReference in_order(std::vector<size_t> order) {
  return [=](const Plain& x) {
    Shape shape = x.shape;
    for (size_t i = 0; i < order.size(); ++i) shape[i] = x.shape[order[i]];
    return plain(shape, [&](const Shape& index) {
      Shape at = index;
      for (size_t i = 0; i < order.size(); ++i) at[order[i]] = index[i];
      return x.at(at);
    });
  };
}

template <class Exception, class Call>
ErrorRecord refused(Call call, std::string text) {
  return error<Exception>([=](const Draw& draw) { call(draw({4, 3, 2})); }, std::move(text));
}

FunctionRecords moveaxis_records() {
  FunctionRecord several = view_record(
      "moveaxis", "two axes", {{4, 3, 2}, {0, 3, 2}},
      [](const Variable& x) {
        return F::moveaxis(x, {0, -1}, {-1, 1});
      },
      in_order({1, 2, 0}));
  several.errors = {
      refused<ValueError>(
          [](const Array& x) {
            F::moveaxis(x, {0, 1}, 2);
          },
          "Moveaxis: 2 axes to 1 places; expected lists of one length"),
      refused<ValueError>(
          [](const Array& x) {
            F::moveaxis(x, {0, -3}, {1, 2});
          },
          "Moveaxis: an axis is given twice in (0, -3)"),
      refused<IndexError>([](const Array& x) { F::moveaxis(x, 3, 0); },
                          "Moveaxis: axis 3 is out of range for an array of 3 dimensions"),
  };
  FunctionRecord rolled = view_record(
      "rollaxis", "before the first", {{4, 3, 2}, {0, 3, 2}},
      [](const Variable& x) { return F::rollaxis(x, -1); }, in_order({2, 0, 1}));
  rolled.errors = {
      refused<IndexError>([](const Array& x) { F::rollaxis(x, 0, 4); },
                          "Rollaxis: start 4 is out of range for 3 axes; expected -3 to 3"),
      refused<IndexError>([](const Array& x) { F::rollaxis(x, -4); },
                          "Rollaxis: axis -4 is out of range for an array of 3 dimensions"),
  };
  return {several,
          view_record(
              "moveaxis", "one axis", {{4, 3, 2}},
              [](const Variable& x) { return F::moveaxis(x, 2, 0); }, in_order({2, 0, 1})),
          view_record(
              "moveaxis", "none", {{4, 3, 2}, {}},
              [](const Variable& x) { return F::moveaxis(x, none, none); }, in_order({})),
          rolled,
          view_record(
              "rollaxis", "to the end", {{4, 3, 2}},
              [](const Variable& x) { return F::rollaxis(x, 0, 3); }, in_order({1, 2, 0})),
          view_record(
              "rollaxis", "before a negative start", {{4, 3, 2}},
              [](const Variable& x) { return F::rollaxis(x, 0, -1); }, in_order({1, 0, 2}))};
}

// Quarter turns of the first two axes, one after the other.
Plain turned(const Plain& x, int64_t times) {
  if (times == 0) return x;
  Shape shape = x.shape;
  std::swap(shape[0], shape[1]);
  const Plain once = plain(shape, [&](Shape i) {
    const int64_t row = i[0];
    i[0] = i[1];
    i[1] = x.shape[1] - 1 - row;
    return x.at(i);
  });
  return turned(once, times - 1);
}

FunctionRecords turn_records() {
  FunctionRecords records;
  for (const int64_t times : {0, 1, 2, 3, -1, 6}) {
    records.push_back(view_record(
        "rot90", message(times, " times"), {{3, 2}, {2, 3, 2}, {0, 2}},
        [=](const Variable& x) { return F::rot90(x, times); },
        [=](const Plain& x) { return turned(x, (times + 8) % 4); }));
  }
  records.push_back(view_record(
      "rot90", "axes -1 and 0", {{3, 2}},
      [](const Variable& x) {
        return F::rot90(x, 1, {-1, 0});
      },
      [](const Plain& x) { return turned(x, 3); }));
  records.back().errors = {
      error<ShapeError>({{3}}, "Rot90: expected at least 2 axes, got (3,)"),
      refused<ValueError>([](const Array& x) { F::rot90(x, 1, {1}); },
                          "Rot90: expected two axes, got (1,)"),
      refused<ValueError>(
          [](const Array& x) {
            F::rot90(x, 1, {1, -2});
          },
          "Rot90: an axis is given twice in (1, -2)"),
  };
  return records;
}

FunctionRecords mirror_records() {
  const auto mirrored = [](size_t axis) {
    return [=](const Plain& x) {
      return plain(x.shape, [&](Shape i) {
        i[axis] = x.shape[axis] - 1 - i[axis];
        return x.at(i);
      });
    };
  };
  FunctionRecord up = view_record(
      "flipud", "", {{3, 2}, {3}, {0, 2}}, [](const Variable& x) { return F::flipud(x); },
      mirrored(0));
  FunctionRecord across = view_record(
      "fliplr", "", {{3, 2}, {2, 3, 2}}, [](const Variable& x) { return F::fliplr(x); },
      mirrored(1));
  up.errors = {error<ShapeError>({WrongInput()}, "Flipud: expected at least 1 axis, got ()")};
  across.errors = {error<ShapeError>({{3}}, "Fliplr: expected at least 2 axes, got (3,)")};
  return {up, across};
}

// Inputs side by side along axis 2, `depth` of each.
FunctionRecord dstack_record(std::string variant, std::vector<Shapes> shapes, Shape rows,
                             int64_t depth) {
  FunctionRecord r;
  r.function = "dstack";
  r.variant = std::move(variant);
  r.shapes = std::move(shapes);
  r.call = [](const Variables& v) { return Variables{F::dstack(v)}; };
  r.reference = [=](const Plains& in) {
    Shape part = rows, all = rows;
    part.push_back(depth);
    all.push_back(depth * int64_t(in.size()));
    return Plains{plain(all, [&](Shape i) {
      const Plain x{part, in[size_t(i[2] / depth)].values};
      i[2] %= depth;
      return x.at(i);
    })};
  };
  r.forward_launches = 1;
  r.backward_launches = 0;
  return r;
}

FunctionRecords dstack_records() {
  FunctionRecord matrices = dstack_record("matrices", {{{3, 2}, {3, 2}, {3, 2}}}, {3, 2}, 1);
  matrices.errors = {
      error<ValueError>([](const Draw&) { F::dstack({}); }, "Dstack: expected at least one input")};
  return {matrices, dstack_record("vectors", {{{3}, {3}}}, {1, 3}, 1),
          dstack_record("numbers", {{{}, {}}}, {1, 1}, 1),
          dstack_record("images", {{{2, 3, 2}, {2, 3, 2}}}, {2, 3}, 2)};
}

// Elements (i, j) of the last two axes for which keep(j - i), else 0; a vector is each row.
UnaryReference triangle_of(std::function<bool(int64_t)> keep) {
  return [=](const Plain& x) {
    Shape shape = x.shape;
    if (shape.ndim() == 1) shape.push_back(shape[0]);
    return plain(shape, [&](const Shape& i) {
      const int64_t above = i[i.size() - 1] - i[i.size() - 2];
      if (!keep(above)) return 0.0;
      return x.shape.ndim() == 1 ? x(i[1]) : x.at(i);
    });
  };
}

FunctionRecords triangle_records() {
  FunctionRecords records;
  const Shapes shapes{{3, 4}, {2, 3, 2}, {3}, {0, 2}, {2, 0}, {0}};
  for (const int64_t k : {0, 1, -1, 9, -9}) {
    records.push_back(unary_record(
        "tril", message("diagonal ", k), shapes, [=](const Variable& x) { return F::tril(x, k); },
        triangle_of([=](int64_t above) { return above <= k; })));
    records.back().errors = {
        error<ShapeError>({WrongInput()}, "Tril: expected at least 1 axis, got a 0-d x")};
    records.push_back(unary_record(
        "triu", message("diagonal ", k), shapes, [=](const Variable& x) { return F::triu(x, k); },
        triangle_of([=](int64_t above) { return above >= k; })));
    records.back().errors = {
        error<ShapeError>({WrongInput()}, "Triu: expected at least 1 axis, got a 0-d x")};
  }
  return records;
}

// The diagonal of axes a and b of x, which has no other axes but those in `rest`.
Plain diagonal_of(const Plain& x, int64_t offset, size_t a, size_t b, std::vector<size_t> rest) {
  const int64_t down = std::max<int64_t>(0, -offset), right = std::max<int64_t>(0, offset);
  Shape shape;
  for (const size_t axis : rest) shape.push_back(x.shape[axis]);
  shape.push_back(std::max<int64_t>(0, std::min(x.shape[a] - down, x.shape[b] - right)));
  return plain(shape, [&](const Shape& i) {
    Shape at = x.shape;
    for (size_t k = 0; k < rest.size(); ++k) at[rest[k]] = i[k];
    at[a] = i.back() + down;
    at[b] = i.back() + right;
    return x.at(at);
  });
}

FunctionRecords diagonal_records() {
  FunctionRecords records;
  const Shapes shapes{{3, 4}, {4, 2}, {0, 3}};
  for (const int64_t offset : {0, 1, -2, 7}) {
    const auto reference = [=](const Plain& x) { return diagonal_of(x, offset, 0, 1, {}); };
    records.push_back(unary_record(
        "diagonal", message("offset ", offset), shapes,
        [=](const Variable& x) { return F::diagonal(x, offset); }, reference));
    records.back().forward_launches = 0;
    records.push_back(unary_record(
        "trace", message("offset ", offset), shapes,
        [=](const Variable& x) { return F::trace(x, offset); },
        [=](const Plain& x) { return over_axes(reference(x), {-1}, false, added_up); }));
  }
  const auto reference = [](const Plain& x) { return diagonal_of(x, 1, 2, 0, {1}); };
  records.push_back(unary_record(
      "diagonal", "axes -1 and 0", {{3, 2, 3}},
      [](const Variable& x) { return F::diagonal(x, 1, -1, 0); }, reference));
  records.push_back(unary_record(
      "trace", "axes -1 and 0", {{3, 2, 3}},
      [](const Variable& x) { return F::trace(x, 1, -1, 0); },
      [=](const Plain& x) { return over_axes(reference(x), {-1}, false, added_up); }));
  records.back().errors = {
      error<ShapeError>([](const Draw& draw) { F::diagonal(draw({3})); },
                        "Diagonal: expected at least 2 axes, got (3,)"),
      error<ShapeError>({{3}}, "Trace: expected at least 2 axes, got (3,)"),
      refused<ValueError>([](const Array& x) { F::diagonal(x, 0, 1, -2); },
                          "Diagonal: both axes are 1"),
      refused<ValueError>([](const Array& x) { F::trace(x, 0, 1, -2); }, "Trace: both axes are 1"),
      refused<IndexError>([](const Array& x) { F::trace(x, 0, 1, 3); },
                          "Trace: axis 3 is out of range for an array of 3 dimensions"),
      integers_refused("Trace", {1, 1}),
  };
  return records;
}

FunctionRecord sort_record(std::string variant, const Shapes& shapes,
                           std::function<Variable(const Variable&)> call, bool last) {
  return unary_record("sort", std::move(variant), shapes, std::move(call), [=](const Plain& x) {
    Plain y = x;
    const int64_t lines = last ? x.shape.back() : x.shape[0];
    const int64_t length = last ? 1 : int64_t(x.values.size()) / std::max<int64_t>(1, lines);
    for (int64_t i = 0; i < int64_t(x.values.size()); ++i) {
      // The place of element i in its line: how many are smaller.
      const int64_t at = i / length % lines, first = i - at * length;
      int64_t place = 0;
      for (int64_t k = 0; k < lines; ++k)
        if (std::pair(x.values[size_t(first + k * length)], k) < std::pair(x.values[size_t(i)], at))
          ++place;
      y.values[size_t(first + place * length)] = x.values[size_t(i)];
    }
    return y;
  });
}

FunctionRecords sort_records() {
  FunctionRecord flat = unary_record(
      "sort", "flattened", {{2, 3}, {}, {0, 2}}, [](const Variable& x) { return F::sort(x, none); },
      [](const Plain& x) {
        Plain y{{int64_t(x.values.size())}, x.values};
        std::sort(y.values.begin(), y.values.end());
        return y;
      });
  flat.errors = {error<IndexError>([](const Draw& draw) { F::sort(draw({3}), 1); },
                                   "Sort: x has one axis, 0 or -1; the axis given is 1.")};
  return {sort_record(
              "last axis", {{3, 4}, {2, 2, 5}, {3, 1}, {2, 0}},
              [](const Variable& x) { return F::sort(x); }, true),
          sort_record(
              "first axis", {{4, 3}, {5}, {0, 2}}, [](const Variable& x) { return F::sort(x, 0); },
              false),
          flat};
}

}  // namespace

CATENA_FUNCTION_RECORDS(axes) {
  return joined({moveaxis_records(), turn_records(), mirror_records(), dstack_records(),
                 triangle_records(), diagonal_records(), sort_records()});
}

}  // namespace catena
