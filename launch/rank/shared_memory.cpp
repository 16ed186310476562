#include "rank/shared_memory.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace catena::launch {

void remove_shared_memory(int local_rank) {
  const char* space = std::getenv("PMIX_NAMESPACE");
  const unsigned long job = space ? std::strtoul(space, nullptr, 10) : 0;
  if (job == 0) return;
  char end[64];
  std::snprintf(end, sizeof(end), ".%u.%x.%d", geteuid(), static_cast<unsigned>(job), local_rank);
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/dev/shm", error), none; !error && entry != none;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool segment = name.starts_with("vader_segment.") || name.starts_with("sm_segment.");
    if (segment && name.ends_with(end)) ::unlink(entry->path().c_str());
  }
}

}  // namespace catena::launch
