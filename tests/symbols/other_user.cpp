// Another library of the process, with versions of its own of what libcatena is made of.
#include <cstdio>
#include <cstdlib>

extern "C" void conflicting_function() {
  std::fputs("libcatena called a function of another library's Boost or nlohmann::json\n", stderr);
  std::abort();
}

namespace google::protobuf {
int ShutdownProtobufLibrary() { return 42; }
}  // namespace google::protobuf
