// The networks that evaluate_caffe_net knows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace modelzoo {

// What is the same in all models of a network: they read the blob "data".
struct ModelType {
  std::string name;    // of the command line
  int64_t insize;      // height and width of its pictures
  std::string scores;  // the blob with the scores of the classes
  std::string mean;    // what --mean is by default, see load_mean
  std::string file;    // the published model, and where to find it
  std::string source;
};
const std::vector<ModelType>& model_types();
std::vector<std::string> names_of_model_types();
// ValueError for a name that is not in the table.
const ModelType& model_type(const std::string& name);

}  // namespace modelzoo
