#include "catena/comm/mesh.h"

#include "catena/array/creation.h"
#include "catena/comm/factory.h"
#include "catena/comm/internals.h"
#include "catena/comm/transport.h"
#include "comm/diagnosis/peer_status.h"
#include "error_text.h"

namespace catena::comm {
namespace {

TEST(Mesh, PutsTheLastAxisNextToEachOther) {
  run_threads(8, [](Communicator& comm) {
    Mesh mesh(comm, {{"replica", 2}, {"data", 2}, {"tensor", 2}});
    const int r = comm.rank();
    EXPECT_EQ(mesh.coordinate("replica"), r / 4);
    EXPECT_EQ(mesh.coordinate("data"), r / 2 % 2);
    EXPECT_EQ(mesh.coordinate("tensor"), r % 2);
    EXPECT_EQ(mesh["tensor"].all_reduce_value(r), r + (r ^ 1));
    EXPECT_EQ(mesh["data"].all_reduce_value(r), r + (r ^ 2));
    EXPECT_EQ(mesh["replica"].all_reduce_value(r), r + (r ^ 4));
    // The order of the mesh, whatever the order of the names.
    Communicator& both = mesh.over({"tensor", "replica"});
    EXPECT_EQ(both.all_gather_object(r),
              (std::vector<int>{r & 2, (r & 2) + 1, (r & 2) + 4, (r & 2) + 5}));
    const RankOf place = mesh.rank_of({"tensor", "replica"});
    EXPECT_EQ(place.rank, both.rank());
    EXPECT_EQ(place.ranks, 4);
    EXPECT_EQ(&mesh.over({"replica", "tensor"}), &both) << "made once";
    EXPECT_EQ(both.axis().names, (std::vector<std::string>{"replica", "tensor"}));
    EXPECT_EQ(both.axis().text(), "replica+tensor");
    EXPECT_EQ(comm.axis().text(), "ranks");
  });
}

TEST(Mesh, FillsInOneSize) {
  run_threads(6, [](Communicator& comm) {
    Mesh mesh(comm, {{"data", -1}, {"tensor", 3}});
    EXPECT_EQ(mesh.axes(), (std::vector<Mesh::Axis>{{"data", 2}, {"tensor", 3}}));
    EXPECT_EQ(mesh["data"].size(), 2);
    Mesh line(comm, {{"all", -1}});
    EXPECT_EQ(line["all"].rank(), comm.rank());
    EXPECT_EQ(line["all"].axis().mesh, 2) << "the second one over this communicator";
  });
}

// No rank waits for another one, and the parent counts no call.
TEST(Mesh, AxesOfOneRankAreNotCollective) {
  run_threads(3, [](Communicator& comm) {
    Mesh mesh(comm, {{"data", 3}, {"pipeline", 1}, {"tensor", 1}});
    const uint64_t before = internals(comm).calls();
    if (comm.rank() != 1) return;
    for (Communicator* alone :
         {&mesh["tensor"], &mesh.over({}), &mesh.over({"pipeline", "tensor"})}) {
      EXPECT_EQ(alone->size(), 1);
      EXPECT_EQ(alone->all_reduce_value(7), 7);
      EXPECT_EQ(internals(*alone).rank_in_job(0), 1) << "still the same rank of the job";
    }
    EXPECT_EQ(internals(comm).calls(), before);
  });
}

// An axis that nobody has thought of, with a collective that nobody else makes.
TEST(Mesh, AnyAxisHasItsOwnCollectives) {
  run_threads(8, [](Communicator& comm) {
    Mesh mesh(comm, {{"data", 2}, {"expert", 2}, {"tensor", 1}, {"context", 2}});
    const Array tokens = array({comm.rank() * 10, comm.rank() * 10 + 1});
    const Array mine = mesh["expert"].all_to_all(tokens);
    const int e = mesh.coordinate("expert"), first = comm.rank() - 2 * e;
    EXPECT_EQ(mine.to_vector<int>(), (std::vector<int>{first * 10 + e, (first + 2) * 10 + e}));
  });
}

TEST(Mesh, RefusesSizesThatDoNotFit) {
  run_threads(4, [](Communicator& comm) {
    const auto text = [&](std::vector<Mesh::Axis> axes) {
      return error_of<ValueError>([&] { Mesh(comm, std::move(axes)); });
    };
    EXPECT_EQ(text({{"a", 2}, {"b", 3}}), "Mesh: {a 2, b 3} needs 6 ranks, the communicator has 4");
    expect_contains(text({{"a", 3}, {"b", -1}}), {"{a 3, b -1} needs a multiple of 3 ranks"});
    expect_contains(text({{"a", -1}, {"b", -1}}), {"one size of -1 at most, got {a -1, b -1}"});
    expect_contains(text({{"a", 4}, {"b", 0}}), {"at least 1 of each, got {a 4, b 0}", "-1"});
    expect_contains(text({{"a", 2}, {"a", 2}}), {"a different name for each axis"});
    expect_contains(text({{"", 4}}), {"a different name for each axis"});
    expect_contains(text({}), {"expected 1 to 31 axes, got 0"});
    const int many = 1 << 30;
    expect_contains(text({{"a", -1}, {"b", many}, {"c", many}}), {"a multiple of"});
    expect_contains(text(comm.rank() == 2 ? std::vector<Mesh::Axis>{{"a", 4}}
                                          : std::vector<Mesh::Axis>{{"b", 4}}),
                    {"Mesh: rank 0 gave {b 4}, rank 2 {a 4}; give all ranks the same shape"});
    EXPECT_EQ(comm.all_reduce_value(1), 4) << "the ranks go on together";
  });
}

TEST(Mesh, RefusesNamesThatAreNoAxis) {
  run_threads(2, [](Communicator& comm) {
    Mesh mesh(comm, {{"data", 2}});
    EXPECT_EQ(error_of<ValueError>([&] { mesh["tensor"]; }),
              "Mesh: there is no axis 'tensor', expected one of {data 2}");
    EXPECT_EQ(error_of<ValueError>([&] {
                mesh.rank_of({"data", "data"});
              }),
              "Mesh: the axis 'data' is given twice");
  });
}

TEST(Mesh, RanksAreListedWithCoordinates) {
  run_threads(8, [](Communicator& comm) {
    EXPECT_EQ(list_ranks(comm, {5}), "rank 5");
    Mesh mesh(comm, {{"data", 2}, {"pipeline", 2}, {"tensor", 2}});
    EXPECT_EQ(list_ranks(comm, {5}), "rank 5 (data 1, pipeline 0, tensor 1)");
    EXPECT_EQ(list_ranks(comm, {0, 1, 2, 3, 4}), "ranks 0, 1, 2, 3, 4");
    const std::string data = message("data ", mesh.coordinate("data"));
    EXPECT_EQ(
        list_ranks(mesh.over({"pipeline", "tensor"}), {0, 3}),
        "ranks 0 (" + data + ", pipeline 0, tensor 0), 3 (" + data + ", pipeline 1, tensor 1)");
  });
}

// As errors of calls that hang end.
TEST(Mesh, PartsAreDescribedWithCoordinates) {
  run_threads(4, [](Communicator& comm) {
    Mesh mesh(comm, {{"data", 2}, {"tensor", 2}});
    const std::string part = describe_part(mesh["tensor"]);
    const char* of_others =
        " (ranks of a part of the job: 0 (data 1, tensor 0), 1 (data 1, tensor 1)"
        " are ranks 2, 3 of the job)";
    EXPECT_EQ(part, comm.rank() < 2 ? "" : of_others);
  });
}

}  // namespace
}  // namespace catena::comm
