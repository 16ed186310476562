#include "comm/agreement.h"

#include <cmath>

#include "catena/comm/factory.h"
#include "catena/comm/internals.h"
#include "catena/comm/mesh.h"
#include "error_text.h"

namespace catena::comm {
namespace {

std::string difference_between(const Agreement& a, const Agreement& b, const Agreement& c) {
  const auto difference = Agreement::compare({a.text(), b.text(), c.text()});
  return difference ? difference->text() : "none";
}

TEST(Agreement, NamesTheFirstDifference) {
  const Agreement one = Agreement().add("the size", 3).add("the rate", 0.1).add("the kind", "x");
  EXPECT_EQ(difference_between(one, one, one), "none");
  EXPECT_EQ(difference_between(
                one, Agreement().add("the size", 3).add("the rate", 0.2).add("the kind", "y"), one),
            "the rate is 0.1 on ranks 0, 2, 0.2 on rank 1");
  EXPECT_EQ(difference_between(one, one, Agreement().add("the size", 3).add("the rate", 0.1)),
            "the kind is x on ranks 0, 1, none on rank 2");
  EXPECT_EQ(difference_between(one, one, Agreement().add("the size", 3).add("a factor", 2)),
            "ranks 0, 1 have the rate 0.1, rank 2 has a factor 2");
  EXPECT_EQ(difference_between(one, one, Agreement()),
            "the size is 3 on ranks 0, 1, none on rank 2");
  EXPECT_EQ(difference_between(Agreement().add("the stages are", "a"),
                               Agreement().add("the stages are", "b"), Agreement()),
            "the stages are a on rank 0, b on rank 1, none on rank 2");
}

TEST(Agreement, HidesDigests) {
  const auto digest = [](uint64_t value) {
    return Agreement().add_digest("parameter '/W'", value);
  };
  EXPECT_EQ(difference_between(digest(1), digest(2), digest(3)),
            "parameter '/W' on ranks 1, 2 differ from that on rank 0");
  EXPECT_EQ(difference_between(digest(1), digest(1), Agreement().add("lr", 0.5)),
            "ranks 0, 1 have parameter '/W', rank 2 has lr 0.5");
}

// Doubles that print alike differ; line ends and tabs do not make lines.
TEST(Agreement, ComparesWhatIsWritten) {
  EXPECT_EQ(difference_between(Agreement().add("x", 0.1), Agreement().add("x", 0.1),
                               Agreement().add("x", std::nextafter(0.1, 1))),
            "x is 0.1 on ranks 0, 1, 0.10000000000000002 on rank 2");
  EXPECT_EQ(difference_between(Agreement().add("a\tb", "c\nd"), Agreement().add("a b", "c d"),
                               Agreement().add("a b", "c e")),
            "a b is c d on ranks 0, 1, c e on rank 2");
}

TEST(Agreement, KnowsTheOddOneOfThree) {
  const auto odd = [](const std::vector<int>& values) {
    std::vector<std::string> texts;
    for (const int value : values) texts.push_back(Agreement().add("lr", value).text());
    return Agreement::compare(texts)->odd_rank();
  };
  EXPECT_EQ(odd({1, 2, 1}), 1);
  EXPECT_EQ(odd({2, 1, 1}), 0);
  EXPECT_EQ(odd({1, 2}), -1);
  EXPECT_EQ(odd({1, 2, 3}), -1);
  EXPECT_EQ(odd({1, 1, 2, 2}), -1);
}

TEST(Agreement, SendsLinesWhereHashesDiffer) {
  run_threads(4, [](Communicator& comm) {
    const Mesh mesh(comm, {{"data", 2}, {"tensor", 2}});
    const Agreement same = Agreement().add("the size", 3);
    const uint64_t before = internals(comm).calls();
    EXPECT_FALSE(same.compare(comm));
    const uint64_t hashes_alone = internals(comm).calls() - before;
    const auto difference = Agreement().add("the size", comm.rank() == 3 ? 4 : 3).compare(comm);
    ASSERT_TRUE(difference);
    EXPECT_GT(internals(comm).calls() - before, 2 * hashes_alone);
    expect_contains(difference->text(), {"the size is 3 on ranks 0 (data 0, tensor 0)",
                                         "4 on rank 3 (data 1, tensor 1)"});
    EXPECT_EQ(error_of<ValueError>([&] { difference->fail(comm, "they differ"); }), "they differ");
    EXPECT_TRUE(comm.failed());
  });
}

}  // namespace
}  // namespace catena::comm
