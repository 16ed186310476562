// src/device/args.h on the host.
#pragma once

#define CATENA_FN inline
#include "device/args.h"
