// Readers of environment variables. A value that makes no sense is named in a warning, and what
// holds without the variable holds. An empty variable counts as none.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace catena {

// The text of the first variable that is set, and its name in `which`; nullptr: none is.
const char* first_set(std::initializer_list<const char*> names, std::string* which = nullptr);

// 1, on, true or yes; 0, off, false or no; in any case.
bool switch_from_environment(const char* name, bool otherwise);

// A whole number above 0; of a list such as "4,2", as OpenMP has them, the first.
std::optional<int> count_from_environment(const char* name);

// A number above 0 as the C locale writes it, whatever the locale; empty when `text` is none.
std::optional<double> positive_number(std::string_view text);

}  // namespace catena
