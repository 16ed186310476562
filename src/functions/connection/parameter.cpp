#include "catena/functions/connection/parameter.h"

namespace catena::functions {
namespace {

const Array& checked_start(const Array& data) {
  CATENA_CHECK(ValueError, data.defined(), "Parameter: expected an array, got an undefined one");
  CATENA_CHECK(DtypeError, is_float(data.dtype()),
               "Parameter: expected a floating dtype, which gradients have, got ", data.dtype());
  return data;
}

}  // namespace

Parameter::Parameter(const Array& data) : W(checked_start(data)) {}

Variable Parameter::operator()(Volatile is_volatile) const {
  return is_volatile == Volatile::on ? Variable(W.data(), Volatile::on) : W.variable();
}

}  // namespace catena::functions
