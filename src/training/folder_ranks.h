// The ranks of a CheckpointFolder: what they say to each other, and how an error of one becomes an
// error of all.
#pragma once

#include <string>
#include <vector>

#include "catena/comm/internals.h"

namespace catena::training {

// ValueError, the same on all ranks, unless these texts of "name\tvalue" lines are equal.
void require_alike(const char* who, const std::vector<std::string>& texts);

// How a rank says to the others why it cannot go on: the kind of the error ('V' for a ValueError,
// else 'I'), and its text. "" if f throws nothing.
std::string described(const std::exception& error);
template <class F>
std::string error_of_call(F f) {
  try {
    f();
  } catch (const std::exception& error) {
    return described(error);
  }
  return "";
}

// What to do about a rank that does not see what rank 0 sees; ends an error.
std::string advice_on_sharing(const std::string& folder);

// The first rank with an error among those of all ranks; -1: none.
int first_with_error(const std::vector<std::string>& errors);

// One text of what each rank has said.
template <class T>
std::vector<std::string> texts_of(const std::vector<T>& all, std::string T::*text) {
  std::vector<std::string> texts;
  for (const T& one : all) texts.push_back(one.*text);
  return texts;
}

// Those of a communicator; null: one process.
class FolderRanks {
 public:
  explicit FolderRanks(Communicator* comm) : comm_(comm) {}

  Communicator* comm() const { return comm_; }
  int rank() const { return comm_ ? comm_->rank() : 0; }
  int size() const { return comm_ ? comm_->size() : 1; }
  bool is_first() const { return rank() == 0; }

  // While it lives, this function of the folder exchanges texts.
  class Call {
   public:
    Call(FolderRanks& ranks, const char* name)
        : ranks_(ranks), purpose_(ranks.comm_, name), before_(ranks.call_) {
      ranks.call_ = name;
    }
    ~Call() { ranks_.call_ = before_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    FolderRanks& ranks_;
    comm::PurposeScope purpose_;
    const char* before_;
  };
  const char* call() const { return call_; }  // the one that runs

  // Texts of all ranks. ValueError where they are in different functions of the folder.
  std::vector<std::string> gather(const std::string& own) const;
  // An error with the rank that has it. Rank 0 may say what another one has said.
  std::string named(int rank, const std::string& error) const;
  // Throws, on all ranks, what the first of those with an error (error_of_call) has said.
  void throw_first(const char* who, const std::vector<std::string>& errors) const;
  // What rank 0 decides, on all ranks; they throw what it throws.
  template <class F>
  std::string decided_by_first(const char* who, F decide) const {
    std::string said;
    if (is_first()) {
      const std::string error = error_of_call([&] { said = "=" + decide(); });
      if (!error.empty()) said = error;
    }
    if (comm_) said = comm_->broadcast_bytes(said, 0);
    if (said[0] != '=') throw_first(who, {said});
    return said.substr(1);
  }

 private:
  Communicator* comm_;
  const char* call_ = "";
};

}  // namespace catena::training
