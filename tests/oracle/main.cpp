// Computes the cases of a file that generate.py wrote, on one device, and compares: test_oracle
// those of NumPy, test_function_oracle those of PyTorch. Usage:
//   test_oracle FILE [--device NAME] [--partial] [--share I/N]
//   test_oracle --available NAME
// --partial: the file need not have cases for every routine. --share: only every N-th case, from
// the I-th on; N processes with I from 0 to N - 1 compute all. --available: only look for the
// device. Exit status: 0 all passed, 1 some failed, 2 wrong usage or file, 77 the device is not
// there.
#include <cstdio>
#include <cstring>
#include <set>

#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

constexpr int kShownOfAKind = 2;
constexpr size_t kShownCharacters = 1500;

std::string operand_texts(const Case& c) {
  std::string text;
  for (const Argument& argument : c.arguments) {
    if (!text.empty()) text += ", ";
    if (argument.view)
      text += message(argument.view->dtype, argument.view->shape, " strides ",
                      argument.view->strides, " offset ", argument.view->offset);
    else
      text += to_string(argument.scalar);
  }
  return text;
}

// Counts failures by routine and kind, and shows the first ones of each.
class Report {
 public:
  void add(const Case& c, size_t number, const Failure& failure) {
    int& count = counts_[c.routine + ": " + failure.kind];
    ++failed_;
    if (++count > kShownOfAKind) return;
    std::printf("FAILED case %s: %s: %s: %s\n  arguments: %s\n  %s\n",
                c.name.empty() ? std::to_string(number).c_str() : c.name.c_str(), c.routine.c_str(),
                failure.kind.c_str(), failure.detail.c_str(), operand_texts(c).c_str(),
                c.text.substr(0, kShownCharacters).c_str());
  }
  void print_kinds() const {
    if (!counts_.empty()) std::printf("\nkinds of failure:\n");
    for (const auto& [kind, count] : counts_) std::printf("%8d  %s\n", count, kind.c_str());
  }
  size_t failed() const { return failed_; }

 private:
  std::map<std::string, int> counts_;
  size_t failed_ = 0;
};

// The cases of one of several processes.
struct Share {
  size_t index = 0, count = 1;
  bool has(size_t i) const { return i % count == index; }
  bool is_valid() const { return index < count; }
};

// Names the routines that the file has no case for, and counts them.
size_t print_unused(const Routines& routines, const CaseFile& file) {
  std::set<std::string> used;
  for (const Case& c : file.cases) used.insert(c.routine);
  size_t unused = 0;
  for (const auto& [name, routine] : routines) {
    if (used.count(name)) continue;
    ++unused;
    std::printf("FAILED: no case was generated for %s\n", name.c_str());
  }
  return unused;
}

int run(const std::string& path, Device device, bool partial, Share share) {
  const CaseFile file = read_case_file(path);
  const Routines routines = all_routines();
  std::printf("%zu cases of %s, seed %s, on %s\n", file.cases.size(), file.origin.c_str(),
              file.seed.c_str(), device.name().c_str());
  Report report;
  size_t computed = 0;
  for (size_t i = 0; i < file.cases.size(); ++i) {
    if (!share.has(i)) continue;
    ++computed;
    const Case& c = file.cases[i];
    const auto routine = routines.find(c.routine);
    if (routine == routines.end()) {
      report.add(c, i, {"missing", "no entry of this name in the tables of C++"});
      continue;
    }
    try {
      if (const auto failure = check(c, routine->second, device)) report.add(c, i, *failure);
    } catch (const std::exception& error) {
      // The device failed: nothing after it can be trusted.
      report.add(c, i, {"end of the run", error.what()});
      throw;
    }
  }
  const size_t unused = partial || share.index > 0 ? 0 : print_unused(routines, file);
  report.print_kinds();
  std::printf("%zu passed, %zu failed\n", computed - report.failed(), report.failed() + unused);
  return report.failed() + unused > 0 ? 1 : 0;
}

// 77, the exit status of skipped tests, when the device is not there.
int available(const std::string& name) {
  const Device device(name);
  if (device.index() < device_count(device.type())) return 0;
  std::printf("SKIPPED: there is no %s here: %s\n", name.c_str(),
              unavailable_reason(device.type()).c_str());
  return 77;
}

int usage() {
  std::fprintf(stderr,
               "usage: test_oracle FILE [--device NAME] [--partial] [--share I/N]\n"
               "       test_oracle --available NAME\n");
  return 2;
}

int command(int argc, char** argv) {
  std::string path, device = "cpu:0";
  bool partial = false, ask = false;
  Share share;
  for (int i = 1; i < argc; ++i) {
    const bool named = !std::strcmp(argv[i], "--available");
    if ((named || !std::strcmp(argv[i], "--device")) && i + 1 < argc) {
      device = argv[++i];
      ask = named;
    } else if (!std::strcmp(argv[i], "--share") && i + 1 < argc) {
      if (std::sscanf(argv[++i], "%zu/%zu", &share.index, &share.count) != 2 || !share.is_valid())
        return usage();
    } else if (!std::strcmp(argv[i], "--partial")) {
      partial = true;
    } else if (argv[i][0] != '-' && path.empty()) {
      path = argv[i];
    } else {
      return usage();
    }
  }
  if (ask != path.empty()) return usage();
  const int status = available(device);
  return status || ask ? status : run(path, device, partial, share);
}

}  // namespace
}  // namespace catena::oracle

int main(int argc, char** argv) {
  try {
    return catena::oracle::command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "test_oracle: %s\n", error.what());
    return 2;
  }
}
