// ResNet-50.
#pragma once

#include "networks.h"

namespace imagenet {

constexpr int64_t kResNetInsize = 224;

std::unique_ptr<Network> make_resnet50();

}  // namespace imagenet
