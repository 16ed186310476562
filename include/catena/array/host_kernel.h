// Element-wise functions and reductions written as C++ lambdas, for arrays of CPU devices: by
// themselves, or as the CPU side of an ElementwiseKernel or ReductionKernel (its on_cpu).
//
// The lambda's parameters say what it works on: a value (float x) is an input, a reference
// (float& y) an output, RawView<float> an argument that the lambda indexes itself, and KernelIndex
// the position in the loop. Their types are written out, or those of a template are given to
// on_cpu. Pointers to functions and objects with one operator() do as well. Loops run on the
// library's threads, contiguous ones vectorised. Lambdas must not write to shared state without
// care of their own; a mutable one starts with a fresh copy of its captures for every element. An
// exception in one ends the call and comes out of it.
#pragma once

#include "catena/array/detail/host_elementwise.h"
#include "catena/array/detail/host_reduction.h"
#include "catena/array/raw_view.h"

#undef CATENA_IVDEP
