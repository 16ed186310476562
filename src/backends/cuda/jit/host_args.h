// src/kernels/args.h on the host.
#pragma once

#define CATENA_FN inline
#include "kernels/args.h"
