// Meaning of signals to catena-run for a job that may be ending already.
#pragma once

namespace catena::launch {

// A batch system that ends a job sends SIGTERM to all its processes at once, and which of them acts
// first is chance. When a rank process does, the job is being stopped before catena-run reads its
// own signal, which is then the same request and no second one: ranks keep the time to save.
class StopRequests {
 public:
  struct Answer {
    bool at_once = false;        // the second request: nobody wants to wait any longer
    bool is_the_reason = false;  // for the end of the job, which no failure has begun
  };

  // The job is being ended because something failed, whatever is asked from here on.
  void note_failure() { failed_ = true; }
  // One more signal.
  Answer take() {
    const Answer answer{asked_, !asked_ && !failed_};
    asked_ = true;
    return answer;
  }

 private:
  bool failed_ = false;
  bool asked_ = false;
};

}  // namespace catena::launch
