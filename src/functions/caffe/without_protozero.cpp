// In place of import/ where protozero was not there when the library was built.
#include "functions/caffe/net.h"

namespace catena::functions::caffe {

Net import_net(const std::string& path, FunctionBag&) {
  fail<IoError>("CaffeFunction: '", path,
                "' cannot be read: this catena was built without protozero; install "
                "libprotozero-dev, or set PROTOZERO_HOME, and build again");
}

}  // namespace catena::functions::caffe
