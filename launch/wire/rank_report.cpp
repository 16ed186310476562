#include "wire/rank_report.h"

#include <map>

#include "base/text.h"

namespace catena::launch {
namespace {

class Writer {
 public:
  explicit Writer(const std::string& type) : line_(type) {}
  Writer& put(const char* key, std::string_view value) {
    if (!value.empty()) line_ += std::string("\t") + key + "=" + percent_encode(value);
    return *this;
  }
  Writer& put(const char* key, std::uint64_t value) {
    return value == 0 ? *this : put(key, std::string_view(std::to_string(value)));
  }
  Writer& put_signed(const char* key, int value) {
    return put(key, std::string_view(std::to_string(value)));
  }
  std::string line() const { return line_ + "\n"; }

 private:
  std::string line_;
};

class Reader {
 public:
  explicit Reader(std::string_view line) {
    for (const std::string& field : split(trim(line), '\t')) {
      const std::size_t equals = field.find('=');
      if (equals != std::string::npos)
        fields_[field.substr(0, equals)] = percent_decode(field.substr(equals + 1));
    }
  }
  std::string text(const char* key) const {
    const auto found = fields_.find(key);
    return found == fields_.end() ? "" : found->second;
  }
  std::uint64_t number(const char* key) const {
    return std::strtoull(text(key).c_str(), nullptr, 10);
  }
  int integer(const char* key, int absent) const {
    const std::string value = text(key);
    return value.empty() ? absent : static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
  }

 private:
  std::map<std::string, std::string> fields_;
};

}  // namespace

std::string to_line(const HelloRecord& record) {
  return Writer("hello")
      .put_signed("rank", record.rank)
      .put_signed("size", record.size)
      .put_signed("local_rank", record.local_rank)
      .put_signed("local_size", record.local_size)
      .put_signed("pid", record.pid)
      .put("host", record.host)
      .put("device", record.device)
      .put("board", record.board)
      .put("log", record.log)
      .put("digest", record.digest)
      .line();
}

std::string to_line(const EndRecord& record) {
  return Writer("end")
      .put_signed("rank", record.rank)
      .put("host", record.host)
      .put_signed("exit_code", record.exit_code)
      .put_signed("signal", record.signal)
      .put("core_dumped", record.core_dumped)
      .put("stop_time", record.stop_time)
      .put("not_started", record.not_started)
      .put("end_time", record.end_time)
      .put("error", record.error)
      .put("error_time", record.error_time)
      .put("peer_error", record.peer_error)
      .put("peer_error_time", record.peer_error_time)
      .put_signed("blamed_rank", record.blamed_rank)
      .put("phase", record.phase)
      .put("operation", record.operation)
      .put("last_call", record.last_call)
      .put("last_lines", record.last_lines)
      .put("log_problem", record.log_problem)
      .line();
}

bool is_hello(std::string_view line) { return line.starts_with("hello\t"); }
bool is_end(std::string_view line) { return line.starts_with("end\t"); }

HelloRecord parse_hello(std::string_view line) {
  const Reader reader(line);
  HelloRecord record;
  record.rank = reader.integer("rank", -1);
  record.size = reader.integer("size", 0);
  record.local_rank = reader.integer("local_rank", 0);
  record.local_size = reader.integer("local_size", 1);
  record.pid = reader.integer("pid", 0);
  record.host = reader.text("host");
  record.device = reader.text("device");
  record.board = reader.text("board");
  record.log = reader.text("log");
  record.digest = reader.text("digest");
  return record;
}

EndRecord parse_end(std::string_view line) {
  const Reader reader(line);
  EndRecord record;
  record.rank = reader.integer("rank", -1);
  record.host = reader.text("host");
  record.exit_code = reader.integer("exit_code", 0);
  record.signal = reader.integer("signal", 0);
  record.core_dumped = reader.number("core_dumped") != 0;
  record.stop_time = reader.number("stop_time");
  record.not_started = reader.number("not_started") != 0;
  record.end_time = reader.number("end_time");
  record.error = reader.text("error");
  record.error_time = reader.number("error_time");
  record.peer_error = reader.text("peer_error");
  record.peer_error_time = reader.number("peer_error_time");
  record.blamed_rank = reader.integer("blamed_rank", -1);
  record.phase = reader.text("phase");
  record.operation = reader.text("operation");
  record.last_call = reader.text("last_call");
  record.last_lines = reader.text("last_lines");
  record.log_problem = reader.text("log_problem");
  return record;
}

}  // namespace catena::launch
