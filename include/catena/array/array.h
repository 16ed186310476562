// Array, an n-dimensional array on a CPU device or a GPU, with its indices and the arguments of its
// methods.
#pragma once

#include "catena/array/arguments.h"
#include "catena/array/array_body.h"
#include "catena/array/array_class.h"
#include "catena/array/axes.h"
#include "catena/array/checks.h"
#include "catena/array/index.h"
#include "catena/array/out.h"
#include "catena/array/selected.h"
