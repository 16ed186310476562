// Started by log_test: one line of each level.
#include "catena/core/log.h"

int main() {
  using namespace catena::logging;
  error("disk ", 1, " is full");
  warning("slow");
  info("started");
  debug("x = ", 2.5);
}
