// The ranks of a CheckpointFolder: what they say to each other, and how an error of one becomes an
// error of all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catena/comm/internals.h"

namespace catena::training {

// ValueError, the same on all ranks, unless these texts of an Agreement are equal.
void require_alike(const char* who, const std::vector<std::string>& texts);

// Why a rank cannot go on, as it says it to the others.
struct RankError {
  // A ValueError, or any other, which becomes an IoError.
  enum class Kind : uint8_t { kNone, kValue, kIo };
  Kind kind = Kind::kNone;
  std::string text = {};

  static RankError of(const std::exception& error);
  bool empty() const { return kind == Kind::kNone; }
  // Adds to the text of an error; nothing where there is none.
  RankError& operator+=(const std::string& more);
  // As bytes, which other ranks read.
  std::string packed() const;
  static RankError unpacked(const std::string& bytes);
};
// That of a call; none if f throws nothing.
template <class F>
RankError error_of_call(F f) {
  try {
    f();
  } catch (const std::exception& error) {
    return RankError::of(error);
  }
  return {};
}

// What to do about a rank that does not see what rank 0 sees; ends an error.
std::string advice_on_sharing(const std::string& folder);

// The first rank with an error, a RankError or a text that is not empty, among those of all ranks;
// -1: none.
template <class Error>
int first_with_error(const std::vector<Error>& errors) {
  for (size_t rank = 0; rank < errors.size(); ++rank)
    if (!errors[rank].empty()) return int(rank);
  return -1;
}

// One part of what each rank has said.
template <class T, class Part>
std::vector<Part> parts_of(const std::vector<T>& all, Part T::*part) {
  std::vector<Part> parts;
  for (const T& one : all) parts.push_back(one.*part);
  return parts;
}

// Those of a communicator; null: one process.
class RankTalk {
 public:
  explicit RankTalk(Communicator* comm) : comm_(comm) {}

  Communicator* comm() const { return comm_; }
  int rank() const { return comm_ ? comm_->rank() : 0; }
  int size() const { return comm_ ? comm_->size() : 1; }
  bool is_first() const { return rank() == 0; }

  // While it lives, this function of the folder exchanges texts.
  class Call {
   public:
    Call(RankTalk& ranks, const char* name) : ranks_(ranks), purpose_(ranks.comm_, name) {
      ranks.call_ = name;
    }
    ~Call() { ranks_.call_ = ""; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    RankTalk& ranks_;
    comm::PurposeScope purpose_;
  };
  const char* call() const { return call_; }  // the one that runs

  // Texts of all ranks. ValueError where they are in different functions of the folder.
  std::vector<std::string> gather(const std::string& own) const;
  // An error with the rank that has it. Rank 0 may say what another one has said.
  std::string named(int rank, const std::string& error) const;
  std::vector<RankError> gather_errors(const RankError& own) const;
  // Throws, on all ranks, what the first of those with an error has said.
  void throw_first(const char* who, const std::vector<RankError>& errors) const;
  // The same of what each rank brings. Collective.
  void throw_if_any(const char* who, const RankError& own) const {
    throw_first(who, gather_errors(own));
  }
  // What rank 0 decides, on all ranks; they throw what it throws.
  template <class F>
  std::string decided_by_first(const char* who, F decide) const {
    RankError said;  // the decision, where it is none
    if (is_first()) {
      const RankError error = error_of_call([&] { said.text = decide(); });
      if (!error.empty()) said = error;
    }
    if (comm_) said = RankError::unpacked(comm_->broadcast_bytes(said.packed(), 0));
    throw_first(who, {said});
    return said.text;
  }

 private:
  Communicator* comm_;
  const char* call_ = "";
};

}  // namespace catena::training
