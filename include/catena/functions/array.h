// Differentiable rearranging of arrays: one header each. Results share memory with their inputs
// where the array function of the same name gives a view; the gradients of views are views and cost
// no kernel. Reductions come along.
#pragma once

#include "catena/functions/array/broadcast.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/copy.h"
#include "catena/functions/array/diagonal.h"
#include "catena/functions/array/flip.h"
#include "catena/functions/array/get_item.h"
#include "catena/functions/array/move_axes.h"
#include "catena/functions/array/one_hot.h"
#include "catena/functions/array/pad.h"
#include "catena/functions/array/repeat.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/resize_images.h"
#include "catena/functions/array/select_item.h"
#include "catena/functions/array/separate.h"
#include "catena/functions/array/sort.h"
#include "catena/functions/array/split_axis.h"
#include "catena/functions/array/stack.h"
#include "catena/functions/array/take.h"
#include "catena/functions/array/transpose.h"
#include "catena/functions/array/triangle.h"
#include "catena/functions/math.h"
