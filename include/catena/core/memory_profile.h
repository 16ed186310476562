// Record of allocations by the names of the calls that hold the memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catena/core/call_scope.h"
#include "catena/core/device.h"

namespace catena {

// How MemoryProfile::write_svg draws.
struct MemoryPictureOptions {
  std::optional<Device> device;  // by default all on which memory was allocated, one below another
  int callers = 8;               // that are shown by name, 1 to 12; the rest are "others"
  int levels = 2;   // of a path's names, from the outermost, that tell callers apart; 0: all
  int width = 960;  // in pixels, 480 to 10,000
};

// Records every allocation of all threads from construction to destruction (host and device memory
// of arrays, also through allocator hooks), under the path of the calls that made it: the names of
// the CallScopes that the thread was in, outermost first, joined by '/'. Library functions name
// themselves. Profiles may nest; each sees what is allocated while it lives, and follows it to its
// end. While no profile exists, an allocation pays one load. Thread-safe.
//
// For the picture a profile also keeps when memory was allocated and released, at most 262,144
// changes of 24 bytes for each device. When they are that many, it thins them out by buckets of
// time. Of each bucket it keeps the moment at which most was held and the last one, and who held
// what then: no peak is lost. More than 65,536 paths get room for four changes each.
class MemoryProfile {
 public:
  MemoryProfile();
  ~MemoryProfile();
  MemoryProfile(const MemoryProfile&) = delete;
  MemoryProfile& operator=(const MemoryProfile&) = delete;

  // The allocations of one call.
  struct Entry {
    std::string call;  // "(unnamed)" outside of all scopes
    Device device;
    size_t held = 0;           // bytes that are alive now
    size_t peak = 0;           // the most that were alive at once
    size_t total = 0;          // ever allocated
    uint64_t blocks = 0;       // that are alive now
    uint64_t allocations = 0;  // ever made
  };
  // What holds most first; equal ones by total, then by name.
  std::vector<Entry> entries() const;
  // A table of the entries with one line each.
  std::string report() const;
  // Draws what the callers held over time as areas on top of each other, an SVG picture without
  // scripts that browsers open: since the profile began, until now. The peak is marked; the table
  // below lists who held what then. Times are the host's: a GPU's memory is held from the call that
  // allocates it to the one that releases it. The file is written in one step. IoError if it cannot
  // be written, ValueError for options out of range.
  void write_svg(const std::string& path, const MemoryPictureOptions& options = {}) const;

  struct Ledger;  // the library's own

 private:
  std::shared_ptr<Ledger> ledger_;
};

}  // namespace catena
