// A progress bar with samples/s and time left on a terminal; plain lines otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace catena::training {

// Whether standard output is a terminal that bars may be drawn on. Under catena-run that is what
// the launcher says (every rank has a terminal of its own, but only rank 0's is shown); else
// isatty.
bool draws_on_terminal();
// Whether this process should print at all: true but for ranks other than 0 under catena-run or
// mpirun.
bool prints();
// Columns of the terminal: COLUMNS, else the terminal's own number, else 80.
int terminal_width();

// The text of a progress line.
struct Progress {
  int64_t done = 0, total = 0;    // samples of the whole run
  double samples_per_second = 0;  // 0: not known yet
  int64_t epoch = 0, epochs = 0;  // running and in all; 0 epochs: not shown
};
// "epoch 2/5 [#######>......]  45 %  51200 samples/s  0:12 left", at most `width` characters.
std::string format_bar(const Progress& progress, int width);
// The same without the bar, for log files.
std::string format_line(const Progress& progress);
// "0:07", "12:34", "1:02:03".
std::string format_duration(double seconds);

// Where and how a Progress prints.
struct ProgressOptions {
  std::optional<bool> terminal = {};  // default: draws_on_terminal()
  std::optional<bool> silent = {};    // default: !prints()
  std::ostream* out = nullptr;        // default: standard output
  double bar_interval = 0.1;          // seconds between two drawings
  double line_interval = 10;          // seconds between two plain lines
};

// Counts samples of a run. update() reads a clock and usually does nothing else (about 50 ns), so
// it may be called every step.
class ProgressBar {
 public:
  ProgressBar(int64_t total_samples, int64_t epochs, const ProgressOptions& options = {});
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` samples of the run are behind us, `epoch` (from 1) is running. A resumed run begins with
  // a first update at its old count, which does not go into the rate.
  void update(int64_t done, int64_t epoch);
  // Removes the bar, so that something else can be printed.
  void clear();
  const Progress& progress() const { return progress_; }

 private:
  using Clock = std::chrono::steady_clock;
  void measure(double now);
  void draw();

  Progress progress_;
  ProgressOptions options_;
  std::ostream* out_;
  bool terminal_, silent_;
  bool visible_ = false;
  bool started_ = false;
  Clock::time_point start_{};
  double next_ = 0;  // seconds after start_ at which to draw again
  double measured_at_ = 0;
  int64_t measured_done_ = 0;
};

}  // namespace catena::training
