// Agreement: what all ranks of a communicator must have alike, and the first thing in which they
// differ.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catena/comm/communicator.h"
#include "core/text_hash.h"

namespace catena::comm {

// The first line of an Agreement that is not the same on all ranks.
class Difference {
 public:
  // Ranks with the same line. Ranks that have fewer lines than others have an empty name.
  struct Group {
    std::string name, value;
    std::vector<int> ranks;
  };
  // How ranks are named: "ranks 0, 2".
  using NameRanks = std::function<std::string(const std::vector<int>& ranks)>;
  Difference(std::vector<Group> groups, NameRanks name_ranks)
      : groups_(std::move(groups)), list_(std::move(name_ranks)) {}

  // At least two, that of rank 0 first.
  const std::vector<Group>& groups() const { return groups_; }
  // What differs; "" where ranks have lines of different names.
  std::string name() const { return has_one_name() ? a_name() : std::string(); }
  // "the batch size is 5 on ranks 0, 2, 6 on rank 1" ("none" where the line is missing; a name that
  // ends in "are" brings its verb); of digests
  // "parameter '/W' on ranks 1, 2 differ from that on rank 0"; "rank 0 has 'momentum' 0.9, rank 1
  // has 'alpha' 0.001" where the lines have different names.
  std::string text() const;
  // The one rank of at least three that differs from all others; -1 if there is none: of two ranks
  // that differ neither is known to be wrong.
  int odd_rank() const;
  // Throws a ValueError with this text, after which the communicator has failed: the report of the
  // job names the odd rank. All ranks call it.
  [[noreturn]] void fail(Communicator& comm, const std::string& text) const;

 private:
  bool has_one_name() const;
  const std::string& a_name() const;
  std::string text_of_digests() const;

  std::vector<Group> groups_;
  NameRanks list_;
};

// The shortest digits that read back as the same number.
std::string shortest_text(double value);

// Lines "name<TAB>value", in the order in which a difference is to be named: causes first.
class Agreement {
 public:
  // Adds a line. A double is written as shortest_text writes it. Tabs and ends of lines count as
  // spaces.
  template <class T>
  Agreement& add(std::string_view name, const T& value) {
    return add_line(name, "", message(value));
  }
  Agreement& add(std::string_view name, double value);
  // One whose value stands for something that is too long to be shown.
  Agreement& add_digest(std::string_view name, uint64_t digest);

  // The lines, for ranks that exchange them together with something else.
  const std::string& text() const { return text_; }
  uint64_t hash() const { return text_hash(text_); }

  // Collective over host memory: ranks exchange hashes, and lines where these differ. The first
  // difference, equal on all ranks; none where they agree.
  std::optional<Difference> compare(Communicator& comm) const;
  // The same of texts that were exchanged.
  static std::optional<Difference> compare(const std::vector<std::string>& texts,
                                           Difference::NameRanks name_ranks = {});
  // Collective: whether all ranks have the same number.
  static bool is_equal(Communicator& comm, uint64_t hash);
  // Collective, once the ranks know that they differ.
  std::optional<Difference> exchange(Communicator& comm) const;

 private:
  Agreement& add_line(std::string_view name, const char* kind, const std::string& value);

  std::string text_;
};

}  // namespace catena::comm
