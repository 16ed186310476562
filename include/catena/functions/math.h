// Differentiable mathematics, and the operators of variables: one header each.
#pragma once

#include "catena/functions/math/cumprod.h"
#include "catena/functions/math/cumsum.h"
#include "catena/functions/math/diff.h"
#include "catena/functions/math/einsum.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/identity.h"
#include "catena/functions/math/logsumexp.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/math/minmax.h"
#include "catena/functions/math/moments.h"
#include "catena/functions/math/norm.h"
#include "catena/functions/math/prod.h"
#include "catena/functions/math/sum.h"
#include "catena/functions/math/tensordot.h"
