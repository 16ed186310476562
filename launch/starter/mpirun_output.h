// What mpirun itself prints: notices about the end of a job are kept for the report, everything
// else is passed on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace catena::launch {

struct MpirunHints {
  std::optional<int> abort_rank;  // "MPI_ABORT was invoked on rank R ... with errorcode C"
  int abort_code = 1;
  std::optional<int> killed_rank;  // "process rank R ... exited on signal S"
  int killed_signal = 0;
  std::string killed_host;
  // What ssh said about a host that it could not reach; the host is "" when it did not name one.
  std::string unreached_host;
  std::string unreached_reason;
  bool unreached_for_now = false;  // it may answer later: it is just starting, for instance
  std::string lost_host;           // whose daemon ended, or whose connection did
  std::string broken_host;         // where catena-run itself could not be started
  bool daemons_failed = false;     // some were not started, or were lost; it does not say which
  bool no_ssh = false;             // there is no ssh to reach other hosts with
};

class MpirunChatter {
 public:
  using OnLine = std::function<void(std::string_view line)>;

  // `hosts`: names that ssh may speak of.
  explicit MpirunChatter(OnLine on_line, std::vector<std::string> hosts = {})
      : on_line_(std::move(on_line)), hosts_(std::move(hosts)) {}
  void feed(std::string_view bytes);
  void finish();
  // Before another mpirun is started in place of one that failed.
  void forget() { *this = MpirunChatter(std::move(on_line_), std::move(hosts_)); }
  const MpirunHints& hints() const { return hints_; }
  // The notices that were not passed on.
  const std::string& withheld() const { return withheld_; }

 private:
  void take_line(const std::string& line);
  void close_block();
  void learn(const std::string& text);
  void pass_on(const std::string& line);
  void learn_of_hosts(const std::string& line);

  OnLine on_line_;
  std::vector<std::string> hosts_;
  std::string rest_;
  bool in_block_ = false;  // between two lines of dashes
  std::string block_;
  std::string withheld_;
  MpirunHints hints_;
};

}  // namespace catena::launch
