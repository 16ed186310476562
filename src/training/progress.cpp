#include "catena/training/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "catena/core/error.h"

namespace catena::training {
namespace {

constexpr double kMemory = 3;  // seconds over which the rate is smoothed

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

std::string head(const Progress& p) {
  return p.epochs > 0 ? message("epoch ", std::min(p.epoch, p.epochs), "/", p.epochs, " ")
                      : std::string();
}

double fraction(const Progress& p) {
  return p.total > 0 ? std::clamp(double(p.done) / double(p.total), 0.0, 1.0) : 0;
}

std::string tail(const Progress& p) {
  const auto percent = static_cast<int64_t>(100 * fraction(p));
  std::string text = message(percent < 10 ? "  " : percent < 100 ? " " : "", percent, " %");
  if (p.samples_per_second > 0) {
    const double left = double(std::max<int64_t>(p.total - p.done, 0)) / p.samples_per_second;
    text += message("  ", std::llround(p.samples_per_second), " samples/s  ", format_duration(left),
                    " left");
  }
  return text;
}

}  // namespace

bool draws_on_terminal() {
  if (is_set("CATENA_LAUNCHED")) return prints() && is_set("CATENA_TERMINAL");
  return ::isatty(STDOUT_FILENO) == 1;
}

// Open MPI's own number serves programs that were started by mpirun directly.
bool prints() { return !is_set("CATENA_RANK") && !is_set("OMPI_COMM_WORLD_RANK"); }

int terminal_width() {
  if (const char* columns = std::getenv("COLUMNS")) {
    const int width = std::atoi(columns);
    if (width > 0) return width;
  }
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e7) return "?";
  const auto total = static_cast<int64_t>(std::llround(seconds));
  const int64_t hours = total / 3600, minutes = total / 60 % 60, rest = total % 60;
  const auto two = [](int64_t n) { return message(n < 10 ? "0" : "", n); };
  return hours > 0 ? message(hours, ":", two(minutes), ":", two(rest))
                   : message(minutes, ":", two(rest));
}

std::string format_line(const Progress& progress) { return head(progress) + tail(progress); }

std::string format_bar(const Progress& progress, int width) {
  const std::string before = head(progress), after = " " + tail(progress);
  const int room = std::min(width - static_cast<int>(before.size() + after.size()) - 2, 50);
  std::string text = before;
  if (room >= 5) {
    const auto filled = static_cast<int>(fraction(progress) * room);
    std::string bar(static_cast<size_t>(filled), '#');
    if (filled < room) bar += '>';
    bar.resize(static_cast<size_t>(room), '.');
    text += "[" + bar + "]";
  }
  text += after;
  if (static_cast<int>(text.size()) > width) text.resize(static_cast<size_t>(std::max(width, 0)));
  return text;
}

ProgressBar::ProgressBar(int64_t total_samples, int64_t epochs, const ProgressOptions& options)
    : options_(options),
      out_(options.out ? options.out : &std::cout),
      terminal_(options.terminal.value_or(draws_on_terminal())),
      silent_(options.silent.value_or(!prints())) {
  progress_.total = total_samples;
  progress_.epochs = epochs;
}

void ProgressBar::update(int64_t done, int64_t epoch) {
  progress_.done = done;
  progress_.epoch = epoch;
  if (!started_) {
    started_ = true;
    start_ = Clock::now();
    measured_done_ = done;
    next_ = terminal_ ? options_.bar_interval : options_.line_interval;
    return;
  }
  const double now = std::chrono::duration<double>(Clock::now() - start_).count();
  if (now < next_) return;
  measure(now);
  next_ = now + (terminal_ ? options_.bar_interval : options_.line_interval);
  if (!silent_) draw();
}

// An exponential mean over the last seconds, so that slow first steps do not spoil the time left.
void ProgressBar::measure(double now) {
  const double seconds = now - measured_at_;
  if (seconds <= 0) return;
  const double rate = double(progress_.done - measured_done_) / seconds;
  const double keep = progress_.samples_per_second > 0 ? std::exp(-seconds / kMemory) : 0;
  progress_.samples_per_second = keep * progress_.samples_per_second + (1 - keep) * rate;
  measured_at_ = now;
  measured_done_ = progress_.done;
}

void ProgressBar::draw() {
  if (terminal_) {
    *out_ << '\r' << format_bar(progress_, terminal_width() - 1) << "\x1b[K" << std::flush;
    visible_ = true;
  } else {
    *out_ << format_line(progress_) << '\n' << std::flush;
  }
}

void ProgressBar::clear() {
  if (!visible_) return;
  *out_ << "\r\x1b[K" << std::flush;
  visible_ = false;
}

}  // namespace catena::training
