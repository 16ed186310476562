// A variational auto-encoder (D. Kingma and M. Welling, Auto-encoding variational Bayes, 2014).
#pragma once

#include "catena/autograd/function_set.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss/vae.h"
#include "catena/functions/math.h"
#include "catena/functions/noise/gaussian.h"

namespace vae {

namespace F = catena::functions;
using catena::Array;
using catena::Variable;

// An image as a distribution of a few hidden numbers, and back.
struct Vae : catena::FunctionSet {
  F::Linear encode, encode_mean, encode_ln_var, decode, decode_out;
  CATENA_FUNCTIONS(encode, encode_mean, encode_ln_var, decode, decode_out)

  Vae(int64_t pixels, int64_t hidden, int64_t units)
      : encode(pixels, units),
        encode_mean(units, hidden),
        encode_ln_var(units, hidden),
        decode(hidden, units),
        decode_out(units, pixels) {}

  struct Distribution {
    Variable mean, ln_var;
  };
  Distribution encoded(const Variable& x) {
    const Variable h = F::tanh(encode(x));
    return {encode_mean(h), encode_ln_var(h)};
  }
  // The logits of the pixels; sigmoid makes them bright or dark.
  Variable decoded(const Variable& z) { return decode_out(F::tanh(decode(z))); }
  Variable images(const Variable& z) { return F::sigmoid(decoded(z)); }

  // {loss, reconstruction}, means over the images: what is lost in reconstruction, drawn `draws`
  // times, and `weight` times how far the hidden numbers are from a standard normal distribution.
  catena::Variables losses(const Array& x, int64_t draws, double weight) {
    const auto [mean, ln_var] = encoded(Variable::constant(x));
    const auto n = static_cast<double>(x.length());
    Variable reconstruction;
    for (int64_t k = 0; k < draws; ++k) {
      const Variable lost = F::bernoulli_nll(x, decoded(F::gaussian(mean, ln_var)));
      reconstruction = reconstruction.defined() ? reconstruction + lost : lost;
    }
    reconstruction = reconstruction / (n * static_cast<double>(draws));
    return {reconstruction + F::gaussian_kl_divergence(mean, ln_var) * (weight / n),
            reconstruction};
  }
};

}  // namespace vae
