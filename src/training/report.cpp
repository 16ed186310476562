#include "catena/training/report.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "array/io/file_io.h"
#include "catena/array/io.h"
#include "catena/core/error.h"
#include "catena/training/progress.h"

namespace catena::training {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNarrowest = 10;  // of a column

bool is_whole(double value) { return std::abs(value) < 1e15 && value == std::floor(value); }

Json row_to_json(const Row& row) {
  Json object = Json::object();
  for (const auto& [name, value] : row) {
    object[name] = is_whole(value) ? Json(static_cast<int64_t>(value)) : Json(value);
  }
  return object;
}

Row row_from_json(const std::string& path, const Json& object) {
  CATENA_CHECK(IoError, object.is_object(), "'", path, "': expected a list of objects, found ",
               std::string(object.type_name()));
  Row row;
  for (const auto& [name, value] : object.items()) {
    CATENA_CHECK(IoError, value.is_number() || value.is_null(), "'", path, "': '", name,
                 "' is not a number");
    row.emplace_back(name, value.is_null() ? std::nan("") : value.get<double>());
  }
  return row;
}

Row::const_iterator find(const Row& row, const std::string& name) {
  return std::find_if(row.begin(), row.end(), [&](const auto& cell) { return cell.first == name; });
}

double value_of(const Row& row, const std::string& name) {
  const auto at = find(row, name);
  CATENA_CHECK(ValueError, at != row.end(), "Report: there is no column '", name, "'");
  return at->second;
}

bool same_columns(const Row& a, const Row& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

std::string pad(const std::string& text, size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ') + "  ";
}

// The same text in every locale.
std::string number_text(double value, std::chars_format format, int digits) {
  char text[400];  // the largest double has 309 digits before the point
  return {text, std::to_chars(text, text + sizeof text, value, format, digits).ptr};
}

std::string cell(const std::string& name, double value) {
  if (name == "elapsed") return number_text(value, std::chars_format::fixed, 1);
  if (is_whole(value) && name == "epoch") return number_text(value, std::chars_format::fixed, 0);
  if (std::abs(value) < 1e-3 && value != 0)
    return number_text(value, std::chars_format::scientific, 4);
  return number_text(value, std::chars_format::fixed, 6);
}

std::string heading(const std::string& name) {
  std::string text = name;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

Report::Report(ReportOptions options)
    : options_(std::move(options)),
      out_(options_.out ? options_.out : &std::cout),
      silent_(options_.silent.value_or(!prints())) {}

void Report::print(const Row& row) {
  std::string text;
  if (!heading_printed_) {
    for (const auto& [name, value] : row) text += pad(heading(name), kNarrowest);
    text += '\n';
    heading_printed_ = true;
  }
  for (const auto& [name, value] : row)
    text += pad(cell(name, value), std::max(name.size(), kNarrowest));
  *out_ << text << '\n' << std::flush;
}

void Report::add(const Row& row) {
  CATENA_CHECK(ValueError, !row.empty(), "Report::add: a row without numbers");
  const bool first = rows_.size() == restored_;
  CATENA_CHECK(ValueError, first || same_columns(row, rows_[restored_]),
               "Report::add: the names differ from those of the first row");
  rows_.push_back(row);
  if (!silent_) print(row);
  if (options_.log.empty()) return;
  Json list = Json::array();
  for (const Row& each : rows_) list.push_back(row_to_json(each));
  write_file_atomically(options_.log, list.dump(2) + "\n");
}

std::vector<Row> Report::read_log() const {
  struct stat status {};
  if (options_.log.empty() || ::stat(options_.log.c_str(), &status) != 0) return {};
  const Json list = Json::parse(io::read_whole_file(options_.log), nullptr, false);
  CATENA_CHECK(
      IoError, list.is_array(), "'", options_.log,
      "': expected the JSON list of an earlier run; delete it, or give the log another folder");
  std::vector<Row> rows;
  for (const Json& object : list) {
    rows.push_back(row_from_json(options_.log, object));
    CATENA_CHECK(IoError, find(rows.back(), "epoch") != rows.back().end(), "'", options_.log,
                 "': row ", rows.size(),
                 " has no 'epoch'; delete it, or give the log another folder");
  }
  return rows;
}

void Report::restore(std::vector<Row> rows, double epoch) {
  std::erase_if(rows, [&](const Row& row) { return !(value_of(row, "epoch") <= epoch); });
  rows_ = std::move(rows);
  restored_ = rows_.size();
}

double Report::last(const std::string& name) const {
  return rows_.empty() ? 0 : value_of(rows_.back(), name);
}

}  // namespace catena::training
