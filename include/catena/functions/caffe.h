// Models of Caffe as functions; one header each.
#pragma once

#include "catena/functions/caffe/caffe_function.h"
