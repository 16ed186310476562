// Registration of the providers of a family of kernels: one block at the end of its own source,
//   CATENA_FAMILY(cpu, scan) { kernels::scan.provide<&host::scan>(DeviceType::kCpu, "cpu"); }
// No other file names it. The build collects the blocks of each backend
// (src/cmake/catena_lists.cmake), and the backend's entry point runs them, in an order that does
// not matter.
#pragma once

#include "catena/core/device.h"

// Defines what registers the family, outside of any namespace. The name is unique in the backend.
#define CATENA_FAMILY(backend, name) \
  namespace catena::families {       \
  void backend##_##name();           \
  }                                  \
  void catena::families::backend##_##name()

// The same for a family of providers that are composed of other slots: with `type`, the device type
// to register for.
#define CATENA_COMPOSED_FAMILY(name)     \
  namespace catena::families {           \
  void composed_##name(DeviceType type); \
  }                                      \
  void catena::families::composed_##name(DeviceType type)
