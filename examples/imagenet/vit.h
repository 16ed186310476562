// ViT-B/16.
#pragma once

#include "networks.h"

namespace imagenet {

constexpr int64_t kVitInsize = 224;

std::unique_ptr<Network> make_vit();

}  // namespace imagenet
