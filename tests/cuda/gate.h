// A stream that stands still until a test lets it go on: shows what does not wait for it, whatever
// the speed of the machine.
#pragma once

#include <chrono>
#include <future>

#include "catena/core/stream.h"

namespace catena::test {

// Work queued on the stream behind the gate waits until it opens. It opens by itself after a while,
// so that a call that waits for the stream makes a test fail instead of hanging.
class Gate {
 public:
  explicit Gate(const Stream& stream) {
    stream.launch_host_func(
        [opened = opened_.get_future().share()] { opened.wait_for(std::chrono::seconds(20)); });
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() {
    if (!is_open_) opened_.set_value();
    is_open_ = true;
  }

 private:
  std::promise<void> opened_;
  bool is_open_ = false;
};

}  // namespace catena::test
