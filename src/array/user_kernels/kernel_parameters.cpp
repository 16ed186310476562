// Parameter lists of users' kernels.
#include <set>

#include "array/user_kernels/kernel_compiler.h"

namespace catena {

namespace {

std::string trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\n"), last = text.find_last_not_of(" \t\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\n", at)) != std::string::npos) {
    const size_t end = text.find_first_of(" \t\n", at);
    words.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end;
  }
  return words;
}

void check_parameter_name(const std::string& name, const std::string& text) {
  CATENA_CHECK(ValueError, name != "i" && name != "n" && name[0] != '_', "kernel parameter '",
               trim(text), "': the names i, n and those beginning with _ are reserved");
}

Dtype dtype_named(const std::string& type, const std::string& text) {
  if (const auto dtype = find_dtype(&DtypeRow::name, type)) return *dtype;
  fail<DtypeError>("kernel parameter '", trim(text), "': '", type,
                   "' is not a type; expected the full name of a dtype, such as float32, or one "
                   "letter");
}

KernelParameter parse_parameter(const std::string& text) {
  std::vector<std::string> words = words_of(text);
  KernelParameter parameter;
  if (!words.empty() && words[0] == "raw") {
    parameter.raw = true;
    words.erase(words.begin());
  }
  CATENA_CHECK(ValueError, words.size() == 2, "kernel parameter '", trim(text),
               "': expected '[raw] type name'");
  const std::string& type = words[0];
  if (type.size() == 1 &&
      ((type[0] >= 'A' && type[0] <= 'Z') || (type[0] >= 'a' && type[0] <= 'z'))) {
    parameter.letter = type[0];
  } else {
    parameter.dtype = dtype_named(type, text);
  }
  parameter.name = words[1];
  check_parameter_name(parameter.name, text);
  return parameter;
}

// "float* y, const float* x, int64_t count" as parameters: pointers are raw.
KernelParameter parse_c_parameter(const std::string& text) {
  static const std::pair<const char*, Dtype> types[] = {{"bool", Dtype::kBool},
                                                        {"signed char", Dtype::kInt8},
                                                        {"char", Dtype::kInt8},
                                                        {"unsigned char", Dtype::kUInt8},
                                                        {"short", Dtype::kInt16},
                                                        {"unsigned short", Dtype::kUInt16},
                                                        {"int", Dtype::kInt32},
                                                        {"unsigned int", Dtype::kUInt32},
                                                        {"unsigned", Dtype::kUInt32},
                                                        {"long long", Dtype::kInt64},
                                                        {"unsigned long long", Dtype::kUInt64},
                                                        {"float", Dtype::kFloat32},
                                                        {"double", Dtype::kFloat64},
                                                        {"int8_t", Dtype::kInt8},
                                                        {"int16_t", Dtype::kInt16},
                                                        {"int32_t", Dtype::kInt32},
                                                        {"int64_t", Dtype::kInt64},
                                                        {"uint8_t", Dtype::kUInt8},
                                                        {"uint16_t", Dtype::kUInt16},
                                                        {"uint32_t", Dtype::kUInt32},
                                                        {"uint64_t", Dtype::kUInt64}};
  std::string spaced;
  for (const char c : text) spaced += c == '*' ? std::string(" * ") : std::string(1, c);
  std::string type;
  KernelParameter parameter;
  std::vector<std::string> words = words_of(spaced);
  CATENA_CHECK(ValueError, words.size() >= 2, "kernel argument '", trim(text),
               "': expected a C parameter such as 'const float* x'");
  parameter.name = words.back();
  words.pop_back();
  for (const std::string& word : words) {
    if (word == "*")
      parameter.raw = true;
    else if (word != "const")
      type += (type.empty() ? "" : " ") + word;
  }
  for (const auto& [name, dtype] : types) {
    if (type != name) continue;
    parameter.dtype = dtype;
    check_parameter_name(parameter.name, text);
    return parameter;
  }
  fail<ValueError>("kernel argument '", trim(text), "': no array has elements of type '", type,
                   "'; expected float, double, bool or an integer type, with * for an array");
}

std::vector<KernelParameter> parse_list(const std::string& text,
                                        KernelParameter (*parse)(const std::string&)) {
  std::vector<KernelParameter> result;
  if (trim(text).empty()) return result;
  for (size_t at = 0, comma = 0; comma != std::string::npos; at = comma + 1) {
    comma = text.find(',', at);
    const std::string entry = text.substr(at, comma - at);
    CATENA_CHECK(ValueError, !trim(entry).empty(), "kernel parameters '", trim(text),
                 "': a comma without a parameter on both sides");
    result.push_back(parse(entry));
  }
  return result;
}

}  // namespace

std::vector<KernelParameter> parse_kernel_parameters(const std::string& text) {
  return parse_list(text, parse_parameter);
}

std::vector<KernelParameter> parse_c_arguments(const std::string& text) {
  return parse_list(text, parse_c_parameter);
}

void check_parameters(const std::string& who, const std::vector<KernelParameter>& inputs,
                      const std::vector<KernelParameter>& outputs) {
  const auto list = [](const std::vector<KernelParameter>& parameters) {
    std::string names;
    for (const KernelParameter& p : parameters) names += (names.empty() ? "" : ", ") + p.name;
    return names;
  };
  std::set<std::string_view> names;
  for (const auto* parameters : {&inputs, &outputs}) {
    for (const KernelParameter& p : *parameters) {
      CATENA_CHECK(ValueError, names.insert(p.name).second, who, ": two parameters are named '",
                   p.name, "': inputs '", list(inputs), "', outputs '", list(outputs), "'");
    }
  }
}

}  // namespace catena
