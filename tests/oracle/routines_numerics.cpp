// Ends of gradients, periods, phases, polynomials, pieces, packed bits, windows.
#include "catena/array/along_axis.h"
#include "catena/array/bits.h"
#include "catena/array/calculus.h"
#include "catena/array/math.h"
#include "catena/array/numeric.h"
#include "catena/array/windows.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

std::optional<double> optional_real(const Call& c, const char* name) {
  return c.has(name) ? std::optional<double>(c.real(name)) : std::nullopt;
}

std::vector<Scalar> numbers(const Call& c, const char* name) {
  const Dims dims = c.dims(name);
  return {dims.begin(), dims.end()};
}

BitOrder order_of(const Call& c) {
  return c.parameter("order").text == "big" ? BitOrder::kBig : BitOrder::kLittle;
}

Results gradient_edges(const Call& c) {
  const Operand spacing = c.count() > 1 ? Operand(c.array(1)) : Operand(c.real("spacing"));
  return {gradient(c.array(0), spacing, c.integer("axis"), EdgeOrder::kSecond)};
}

Results pieces(const Call& c) {
  std::vector<Array> masks;
  for (int k = 1; k < int(c.count()); ++k) masks.push_back(c.array(k));
  std::vector<Piece> list;
  for (int64_t number : c.dims("numbers")) list.push_back(number);
  if (c.flag("doubled")) list[0] = Piece([](const Array& part) { return add(part, part); });
  return {piecewise(c.array(0), masks, list)};
}

Results special(const Call& c) {
  const std::string name = c.parameter("name").text;
  if (name == "sinc") return {sinc(c.array(0))};
  if (name == "fix") return {fix(c.array(0))};
  return {name == "isposinf" ? isposinf(c.array(0)) : isneginf(c.array(0))};
}

Results window(const Call& c) {
  const std::string name = c.parameter("name").text;
  const int64_t n = c.integer("n");
  if (name == "bartlett") return {bartlett(n)};
  if (name == "hanning") return {hanning(n)};
  return {name == "hamming" ? hamming(n) : blackman(n)};
}

Results trimmed(const Call& c) {
  const std::string ends = c.parameter("ends").text;
  return {trim_zeros(c.array(0), ends == "fb"  ? TrimEnds::kBoth
                                 : ends == "f" ? TrimEnds::kFront
                                               : TrimEnds::kBack)};
}

Results unpacked(const Call& c) {
  const auto count = c.has("count") ? std::optional<int64_t>(c.integer("count")) : std::nullopt;
  return {unpackbits(c.array(0), c.optional_integer("axis"), count, order_of(c))};
}

}  // namespace

void add_numerics(Routines& r) {
  r["gradient_edges"] = gradient_edges;
  r["interp_period"] = [](const Call& c) {
    return Results{interp(c.array(0), c.array(1), c.array(2), {}, {}, c.real("period"))};
  };
  r["ediff1d"] = [](const Call& c) {
    return Results{ediff1d(c.array(0), numbers(c, "end"), numbers(c, "begin"))};
  };
  r["unwrap"] = [](const Call& c) {
    return Results{
        unwrap(c.array(0), optional_real(c, "discont"), c.integer("axis"), c.real("period"))};
  };
  r["vander"] = [](const Call& c) {
    return Results{vander(c.array(0), c.integer("columns"), c.flag("increasing"))};
  };
  r["polyval"] = [](const Call& c) { return Results{polyval(c.array(0), c.array(1))}; };
  r["piecewise"] = pieces;
  r["packbits"] = [](const Call& c) {
    return Results{packbits(c.array(0), c.optional_integer("axis"), order_of(c))};
  };
  r["unpackbits"] = unpacked;
  r["trim_zeros"] = trimmed;
  r["special"] = special;
  r["float_power"] = [](const Call& c) { return Results{float_power(c.array(0), c.array(1))}; };
  r["window"] = window;
}

}  // namespace catena::oracle
