#include "wire/board_name.h"

#include <cstdio>
#include <random>

namespace catena::launch {

void set_new_board_key() {
  std::random_device random;
  std::string key;
  char part[9];
  while (key.size() < 32) {
    std::snprintf(part, sizeof(part), "%08x", random());
    key += part;
  }
  setenv(kBoardKey, key.c_str(), 1);
}

}  // namespace catena::launch
