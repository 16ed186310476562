#include "job/console.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

struct Screen {
  explicit Screen(bool terminal)
      : console(terminal, [this](Stream stream, std::string_view bytes) {
          (stream == Stream::output ? out : err) += bytes;
          both += bytes;
        }) {}
  std::string out;
  std::string err;
  std::string both;
  Console console;
};

TEST(Console, LinesAreTaggedAndWhole) {
  Screen screen(false);
  screen.console.add(1, Stream::output, "hel");
  screen.console.add(0, Stream::output, "zero\npart");
  screen.console.add(1, Stream::output, "lo\nworld\n");
  screen.console.add(0, Stream::error, "oops\n");
  screen.console.add(0, Stream::output, "ial");
  EXPECT_EQ(screen.out, "zero\n[1] hello\n[1] world\n");
  EXPECT_EQ(screen.err, "[0] oops\n");
  screen.console.finish();
  EXPECT_EQ(screen.out, "zero\n[1] hello\n[1] world\npartial") << "rank 0 byte for byte";
}

TEST(Console, TheUnfinishedLineOfRankZeroComesLast) {
  Screen screen(false);
  screen.console.add(0, Stream::output, "no end");
  screen.console.add(1, Stream::output, "no end either");
  screen.console.finish();
  EXPECT_EQ(screen.out, "[1] no end either\nno end");
}

TEST(Console, UnfinishedLinesOfOtherRanksGetAnEnd) {
  Screen screen(false);
  screen.console.add(2, Stream::error, "no end");
  screen.console.finish();
  EXPECT_EQ(screen.err, "[2] no end\n");
}

TEST(Console, BarOfAnotherRankLeavesItsLastState) {
  Screen screen(false);
  screen.console.add(1, Stream::output, "\r10%\r50%\r100%\r\n");
  EXPECT_EQ(screen.out, "[1] 100%\n");
}

TEST(Console, TerminalShowsABarAtOnceAndSurvivesOtherLines) {
  Screen screen(true);
  screen.console.add(0, Stream::output, "\r10%");
  EXPECT_EQ(screen.both, "\r10%");
  screen.console.add(1, Stream::output, "note\n");
  EXPECT_EQ(screen.both, "\r10%\r\x1b[K[1] note\n");
  screen.console.add(0, Stream::output, "\r20%");
  screen.console.finish();
  EXPECT_EQ(screen.both, "\r10%\r\x1b[K[1] note\n\r20%\n");
}

TEST(Console, TerminalKeepsAPromptThatIsNoBar) {
  Screen screen(true);
  screen.console.add(0, Stream::output, "name? ");
  screen.console.add(1, Stream::error, "note\n");
  EXPECT_EQ(screen.both, "name? \n[1] note\n");
}

TEST(Console, EndlessLineIsPrintedInPieces) {
  Screen screen(false);
  screen.console.add(1, Stream::output, std::string(100'000, 'x'));
  EXPECT_GT(screen.out.size(), 60'000u);
}

}  // namespace
}  // namespace catena::launch
