// The networks of Inception blocks.
#pragma once

#include "networks.h"

namespace imagenet {

constexpr int64_t kGoogLeNetInsize = 224;

std::unique_ptr<Network> make_googlenet();
std::unique_ptr<Network> make_googlenetbn();

}  // namespace imagenet
