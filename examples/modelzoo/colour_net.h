// A model of Caffe and pictures for it that need no training and no download: which of eight
// colours a picture has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/decoding.h"
#include "model_types.h"

namespace modelzoo {

constexpr int64_t kColours = 8;     // black, blue, green, ... white: three bits of red, green, blue
constexpr float kColourMean = 128;  // of each channel, which the model expects to be subtracted

// A .caffemodel (a NetParameter of Caffe, as protocol buffers encode it) with the blobs of a type
// of model: the mean of all pixels of a picture, and a product whose scores are the logarithms of
// how likely the colours are.
std::string colour_net(const ModelType& type);

struct Coloured {
  examples::Picture picture;
  int32_t label = 0;
};
// Pictures of random sizes from 60 to 140 pixels, each of one colour that is shifted at random, by
// up to 70 in each channel, and noise over it. About every eighth looks more like another colour.
std::vector<Coloured> coloured_pictures(int64_t count, uint64_t seed);

}  // namespace modelzoo
