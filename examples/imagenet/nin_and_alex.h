// The networks without branches.
#pragma once

#include "networks.h"

namespace imagenet {

constexpr int64_t kAlexInsize = 227;  // NIN's as well
enum class Normalization : uint8_t { kLocalResponse, kBatch };

std::unique_ptr<Network> make_nin();
// AlexNet, with one of the normalizations behind its first two convolutions.
std::unique_ptr<Network> make_alex(Normalization normalization);

}  // namespace imagenet
