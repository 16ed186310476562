// Errors about arguments begin with the name of the outermost entry of their thread.
#include "catena/core/entry_scope.h"

#include <gtest/gtest.h>

#include <thread>

#include "catena/core/error.h"
#include "catena/core/shape.h"

namespace catena {
namespace {

template <class E>
std::string failing() {
  try {
    fail<E>("the text ", 3);
  } catch (const E& error) {
    return error.what();
  }
}

TEST(EntryScope, NamesErrorsAboutArguments) {
  EXPECT_EQ(failing<ValueError>(), "the text 3") << "no entry, no name";
  const EntryScope outer("outer");
  for (const std::string& text :
       {failing<ShapeError>(), failing<DtypeError>(), failing<DeviceError>(), failing<IndexError>(),
        failing<ValueError>()})
    EXPECT_EQ(text, "outer: the text 3");
}

TEST(EntryScope, LeavesOtherErrorsAlone) {
  const EntryScope outer("outer");
  for (const std::string& text :
       {failing<Error>(), failing<OutOfMemoryError>(), failing<IoError>(), failing<CommError>(),
        failing<GradientError>(), failing<InvalidType>()})
    EXPECT_EQ(text, "the text 3");
}

TEST(EntryScope, OnlyTheOutermostCounts) {
  {
    const EntryScope outer("outer");
    {
      const EntryScope inner("inner");
      EXPECT_EQ(failing<ValueError>(), "outer: the text 3");
    }
    EXPECT_EQ(failing<ValueError>(), "outer: the text 3");
    EXPECT_STREQ(called_function(), "outer");
  }
  EXPECT_EQ(failing<ValueError>(), "the text 3");
  const EntryScope next("next");
  EXPECT_EQ(failing<ValueError>(), "next: the text 3");
}

TEST(EntryScope, EndsWithAnException) {
  try {
    const EntryScope outer("outer");
    fail<ShapeError>("wrong");
  } catch (const ShapeError&) {
    EXPECT_EQ(failing<ValueError>(), "the text 3");
  }
}

TEST(EntryScope, IsOfOneThread) {
  const EntryScope outer("outer");
  std::string text;
  std::thread([&] { text = failing<ValueError>(); }).join();
  EXPECT_EQ(text, "the text 3");
}

TEST(EntryScope, CallbacksHaveNamesOfTheirOwn) {
  const EntryScope outer("outer");
  {
    const CallbackScope callback;
    EXPECT_EQ(failing<ValueError>(), "the text 3");
    const EntryScope own("own");
    EXPECT_EQ(failing<ValueError>(), "own: the text 3");
  }
  EXPECT_EQ(failing<ValueError>(), "outer: the text 3");
}

TEST(EntryScope, ChecksWithANameUseItOutsideOfEntries) {
  const auto text = [] {
    try {
      normalize_axis("mine", 5, 2);
    } catch (const IndexError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(text().rfind("mine: axis 5", 0), 0u) << text();
  const EntryScope outer("outer");
  EXPECT_EQ(text().rfind("outer: axis 5", 0), 0u) << text();
}

}  // namespace
}  // namespace catena
