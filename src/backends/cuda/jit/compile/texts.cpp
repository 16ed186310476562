// Selects and trims the embedded kernel texts. See source.h.
#include "backends/cuda/jit/compile/texts.h"

#include <cctype>
#include <map>
#include <vector>

#include "backends/cuda/jit/compile/source.h"

namespace catena::jit {

std::string_view kernel_text(std::string_view file) {
  for (int i = 0; i < kEmbeddedTextCount; ++i) {
    if (file == kEmbeddedTexts[i].name) return kEmbeddedTexts[i].text;
  }
  throw Error("jit: no kernel text named " + std::string(file) + " was embedded in this build");
}

std::string strip_text(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) continue;
    line.remove_prefix(start);
    if (line.starts_with("//") || line.starts_with("#pragma once") ||
        line.starts_with("#include \""))
      continue;
    const size_t comment = line.find("  //");
    if (comment != std::string_view::npos) line = line.substr(0, comment);
    result.append(line).push_back('\n');
  }
  return result;
}

namespace {

// The texts of the files that scalar_ops.h includes and of scalar_narrow.h, trimmed.
std::string scalar_ops_text() {
  constexpr std::string_view kInclude = "#include \"device/";
  const std::string_view list = kernel_text("scalar_ops.h");
  std::string text;
  for (size_t at = list.find(kInclude); at != std::string_view::npos;
       at = list.find(kInclude, at)) {
    at += kInclude.size();
    text += strip_text(kernel_text(list.substr(at, list.find('"', at) - at)));
  }
  return text + strip_text(kernel_text("scalar_narrow.h"));
}

// The struct definitions of a text by name, each from its first line to its closing brace.
struct Functors {
  std::string traits;  // IsFloat, IsBool, IsSigned
  std::map<std::string, std::string, std::less<>> by_name;
};

const Functors& functors() {
  static const Functors all = [] {
    Functors result;
    const std::string text = scalar_ops_text();
    size_t at = 0;
    while (true) {
      const size_t start = text.find("struct ", at);
      if (start == std::string::npos) break;
      size_t name = start + 7, name_end = name;
      while (std::isalnum(static_cast<unsigned char>(text[name_end]))) ++name_end;
      int depth = 0;
      size_t end = name_end;
      do {
        if (text[end] == '{') ++depth;
        if (text[end] == '}') --depth;
        ++end;
      } while (depth > 0 || text[end - 1] != '}');
      const std::string id = text.substr(name, name_end - name);
      if (id.starts_with("Is") && id != "Isnan" && id != "Isinf" && id != "Isfinite") {
        const size_t head = text.rfind("template", start);  // template <class T>, template <>
        result.traits += text.substr(head, end - head) + ";\n";
      } else {
        result.by_name[id] = text.substr(start, end - start) + ";\n";
      }
      at = end;
    }
    return result;
  }();
  return all;
}

void append_functor(std::string_view functor, std::vector<std::string>& done, std::string& out) {
  for (const std::string& name : done) {
    if (name == functor) return;
  }
  const auto found = functors().by_name.find(functor);
  if (found == functors().by_name.end()) {
    throw Error("jit: the files of functors have no " + std::string(functor));
  }
  done.emplace_back(functor);
  // The functors that it calls come first: they appear as Name::apply.
  const std::string& text = found->second;
  for (size_t at = text.find("::apply"); at != std::string::npos;
       at = text.find("::apply", at + 1)) {
    size_t start = at;
    while (start > 0 && std::isalnum(static_cast<unsigned char>(text[start - 1]))) --start;
    append_functor(std::string_view(text).substr(start, at - start), done, out);
  }
  out += text;
}

}  // namespace

std::string functor_of(const ElementwiseInfo& row, Dtype compute) {
  const std::string narrow = std::string(row.functor) + "16";
  const bool own =
      is_narrow_float(compute) && functors().by_name.find(narrow) != functors().by_name.end();
  return own ? narrow : row.functor;
}

std::string functor_text(std::string_view functor) {
  const std::string one(functor);
  return functor_texts(std::span(&one, 1));
}

std::string functor_texts(std::span<const std::string> list) {
  std::string out = "namespace catena { namespace ops {\n" + functors().traits;
  std::vector<std::string> done;
  for (const std::string& functor : list) append_functor(functor, done, out);
  return out + "} }\n";
}

}  // namespace catena::jit
