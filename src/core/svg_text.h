// Parts of SVG pictures as text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace catena {

// What shows the text in an element or an attribute. Bytes that are not UTF-8 and characters that
// XML forbids become the replacement character.
std::string svg_escaped(std::string_view text);
// The same of at most so many characters; of longer ones the middle is left out.
std::string svg_shortened(std::string_view text, size_t most);
// A coordinate to a tenth: "12.5", "12".
std::string svg_number(double value);

}  // namespace catena
