// Entry function and ABI tag of a plug-in. Every change of a public header changes the ABI tag, and
// so compiles again what includes this file: plug-ins alone should.
#pragma once

#include "catena/core/abi_tag.h"

// Defines a plug-in's entry point:  CATENA_PLUGIN(cuda) { register everything }
// The body may throw; the text becomes the reason that users see.
#define CATENA_PLUGIN(plugin_name)                                                        \
  static void catena_plugin_body();                                                       \
  extern "C" __attribute__((visibility("default"))) const char* catena_plugin_abi_tag() { \
    return CATENA_ABI_TAG;                                                                \
  }                                                                                       \
  extern "C" __attribute__((visibility("default"))) void catena_plugin_entry() {          \
    catena_plugin_body();                                                                 \
  }                                                                                       \
  static void catena_plugin_body()
