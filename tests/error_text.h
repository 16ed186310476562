// What a call that must fail says.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

// The text of the E that f throws; "no error" if nothing. Other exceptions pass.
template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_contains(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}
inline void expect_contains(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) expect_contains(text, {std::string(part)});
}
