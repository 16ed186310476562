// Convolutions and their transposes by definition.
#pragma once

#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/deconvolution_2d.h"
#include "functions/function_record.h"

namespace catena {

// Of x, W and the bias, if there is one.
Plain convolution_of(const Plains& in, const F::ConvolutionOptions& o = {});
Plain deconvolution_of(const Plains& in, const F::DeconvolutionOptions& o);

}  // namespace catena
