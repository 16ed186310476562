// Records of functions that move axes, and of those that take triangles and diagonals.
#include "catena/functions/array/diagonal.h"
#include "catena/functions/array/flip.h"
#include "catena/functions/array/move_axes.h"
#include "catena/functions/array/sort.h"
#include "catena/functions/array/stack.h"
#include "catena/functions/array/triangle.h"
#include "functions/array/view_record.h"

namespace catena {
namespace {

template <class Exception, class Call>
ErrorRecord refused(Call call, std::string text) {
  return error<Exception>([=](const Draw& draw) { call(draw({4, 3, 2})); }, std::move(text));
}

FunctionRecords moveaxis_records() {
  FunctionRecord several =
      view_record("moveaxis", "two axes", {{4, 3, 2}, {0, 3, 2}}, [](const Variable& x) {
        return F::moveaxis(x, {0, -1}, {-1, 1});
      });
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
  FunctionRecord rolled = view_record("rollaxis", "before the first", {{4, 3, 2}, {0, 3, 2}},
                                      [](const Variable& x) { return F::rollaxis(x, -1); });
  rolled.errors = {
      refused<IndexError>([](const Array& x) { F::rollaxis(x, 0, 4); },
                          "Rollaxis: start 4 is out of range for 3 axes; expected -3 to 3"),
      refused<IndexError>([](const Array& x) { F::rollaxis(x, -4); },
                          "Rollaxis: axis -4 is out of range for an array of 3 dimensions"),
  };
  return {several,
          view_record("moveaxis", "one axis", {{4, 3, 2}},
                      [](const Variable& x) { return F::moveaxis(x, 2, 0); }),
          view_record("moveaxis", "none", {{4, 3, 2}, {}},
                      [](const Variable& x) { return F::moveaxis(x, none, none); }),
          rolled,
          view_record("rollaxis", "to the end", {{4, 3, 2}},
                      [](const Variable& x) { return F::rollaxis(x, 0, 3); }),
          view_record("rollaxis", "before a negative start", {{4, 3, 2}},
                      [](const Variable& x) { return F::rollaxis(x, 0, -1); })};
}

FunctionRecords turn_records() {
  FunctionRecords records;
  for (const int64_t times : {0, 1, 2, 3, -1, 6}) {
    records.push_back(view_record("rot90", message(times, " times"), {{3, 2}, {2, 3, 2}, {0, 2}},
                                  [=](const Variable& x) { return F::rot90(x, times); }));
  }
  records.push_back(view_record("rot90", "axes -1 and 0", {{3, 2}}, [](const Variable& x) {
    return F::rot90(x, 1, {-1, 0});
  }));
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
  FunctionRecord up = view_record("flipud", "", {{3, 2}, {3}, {0, 2}},
                                  [](const Variable& x) { return F::flipud(x); });
  FunctionRecord across = view_record("fliplr", "", {{3, 2}, {2, 3, 2}},
                                      [](const Variable& x) { return F::fliplr(x); });
  up.errors = {error<ShapeError>({WrongInput()}, "Flipud: expected at least 1 axis, got ()")};
  across.errors = {error<ShapeError>({{3}}, "Fliplr: expected at least 2 axes, got (3,)")};
  return {up, across};
}

FunctionRecord dstack_record(std::string variant, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "dstack";
  r.variant = std::move(variant);
  r.shapes = std::move(shapes);
  r.call = [](const Variables& v) { return Variables{F::dstack(v)}; };
  r.forward_launches = 1;
  r.backward_launches = 0;
  return r;
}

FunctionRecords dstack_records() {
  FunctionRecord matrices = dstack_record("matrices", {{{3, 2}, {3, 2}, {3, 2}}});
  matrices.errors = {
      error<ValueError>([](const Draw&) { F::dstack({}); }, "Dstack: expected at least one input")};
  return {matrices, dstack_record("vectors", {{{3}, {3}}}), dstack_record("numbers", {{{}, {}}}),
          dstack_record("images", {{{2, 3, 2}, {2, 3, 2}}})};
}

FunctionRecords triangle_records() {
  FunctionRecords records;
  const Shapes shapes{{3, 4}, {2, 3, 2}, {3}, {0, 2}, {2, 0}, {0}};
  for (const int64_t k : {0, 1, -1, 9, -9}) {
    records.push_back(unary_record("tril", message("diagonal ", k), shapes,
                                   [=](const Variable& x) { return F::tril(x, k); }));
    records.back().errors = {
        error<ShapeError>({WrongInput()}, "Tril: expected at least 1 axis, got a 0-d x")};
    records.push_back(unary_record("triu", message("diagonal ", k), shapes,
                                   [=](const Variable& x) { return F::triu(x, k); }));
    records.back().errors = {
        error<ShapeError>({WrongInput()}, "Triu: expected at least 1 axis, got a 0-d x")};
  }
  return records;
}

FunctionRecords diagonal_records() {
  FunctionRecords records;
  const Shapes shapes{{3, 4}, {4, 2}, {0, 3}};
  for (const int64_t offset : {0, 1, -2, 7}) {
    records.push_back(unary_record("diagonal", message("offset ", offset), shapes,
                                   [=](const Variable& x) { return F::diagonal(x, offset); }));
    records.back().forward_launches = 0;
    records.push_back(unary_record("trace", message("offset ", offset), shapes,
                                   [=](const Variable& x) { return F::trace(x, offset); }));
  }
  records.push_back(unary_record("diagonal", "axes -1 and 0", {{3, 2, 3}},
                                 [](const Variable& x) { return F::diagonal(x, 1, -1, 0); }));
  records.push_back(unary_record("trace", "axes -1 and 0", {{3, 2, 3}},
                                 [](const Variable& x) { return F::trace(x, 1, -1, 0); }));
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

FunctionRecords sort_records() {
  FunctionRecord flat = unary_record("sort", "flattened", {{2, 3}, {}, {0, 2}},
                                     [](const Variable& x) { return F::sort(x, none); });
  flat.errors = {error<IndexError>([](const Draw& draw) { F::sort(draw({3}), 1); },
                                   "Sort: x has one axis, 0 or -1; the axis given is 1.")};
  return {unary_record("sort", "last axis", {{3, 4}, {2, 2, 5}, {3, 1}, {2, 0}},
                       [](const Variable& x) { return F::sort(x); }),
          unary_record("sort", "first axis", {{4, 3}, {5}, {0, 2}},
                       [](const Variable& x) { return F::sort(x, 0); }),
          flat};
}

}  // namespace

CATENA_FUNCTION_RECORDS(axes) {
  return joined({moveaxis_records(), turn_records(), mirror_records(), dstack_records(),
                 triangle_records(), diagonal_records(), sort_records()});
}

}  // namespace catena
