// The kernel texts that the build embeds (src/cmake/embed_texts.cmake).
#pragma once

namespace catena::jit {

struct EmbeddedText {
  const char* name;
  const char* text;
};
extern const EmbeddedText kEmbeddedTexts[];
extern const int kEmbeddedTextCount;

}  // namespace catena::jit
