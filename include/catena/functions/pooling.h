// Pooling: one number for each part of an image; one header each.
#pragma once

#include "catena/functions/pooling/max_pooling_2d.h"
