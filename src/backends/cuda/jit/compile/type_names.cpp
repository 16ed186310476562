// Names of types. See type_names.h.
#include "backends/cuda/jit/compile/type_names.h"

namespace catena::jit {

const char* type_name(Dtype d) {
  static const char* const names[kDtypeCount] = {"bool",
                                                 "signed char",
                                                 "short",
                                                 "int",
                                                 "long long",
                                                 "unsigned char",
                                                 "unsigned short",
                                                 "unsigned int",
                                                 "unsigned long long",
                                                 "Half",
                                                 "BFloat16",
                                                 "float",
                                                 "double"};
  return names[static_cast<int>(d)];
}

}  // namespace catena::jit
