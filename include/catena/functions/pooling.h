// Pooling: one number for each part of an image; one header each.
#pragma once

#include "catena/functions/pooling/average_pooling_2d.h"
#include "catena/functions/pooling/max_pooling_2d.h"
#include "catena/functions/pooling/spatial_pyramid_pooling_2d.h"
#include "catena/functions/pooling/unpooling_2d.h"
