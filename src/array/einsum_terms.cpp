#include "array/einsum_terms.h"

#include <cctype>

namespace catena::einsum_terms {
namespace {

class Reader {
 public:
  Reader(std::string_view text, std::span<const Shape> shapes) : read{text, {}, {}} {
    for (char c : text) {
      if (c != ' ') compact_ += c;
    }
    const size_t arrow = compact_.find("->");
    const std::string left = compact_.substr(0, arrow);
    size_t begin = 0;
    std::vector<std::string> parts;
    for (size_t comma; (comma = left.find(',', begin)) != left.npos; begin = comma + 1)
      parts.push_back(left.substr(begin, comma - begin));
    parts.push_back(left.substr(begin));
    check(parts.size() == shapes.size(),
          message(parts.size(), " terms for ", shapes.size(), " operands"));
    for (size_t k = 0; k < parts.size(); ++k) add_operand(parts[k], shapes[k]);
    if (arrow == compact_.npos)
      implicit_output();
    else
      explicit_output(compact_.substr(arrow + 2));
  }

  Subscripts read;

 private:
  void check(bool good, const std::string& what) const {
    CATENA_CHECK(ValueError, good, "'", read.text, "': ", what);
  }

  // The labels of a term in which "..." stands for `rest` axes.
  Labels parse(const std::string& part, int rest) const {
    Labels labels;
    bool dots = false;
    for (size_t i = 0; i < part.size(); ++i) {
      if (part.compare(i, 3, "...") == 0) {
        check(!dots, message("'", part, "' has two ellipses"));
        dots = true;
        for (int r = rest; r-- > 0;) labels.push_back(kRest + r);
        i += 2;
        continue;
      }
      check(std::isalpha(static_cast<unsigned char>(part[i])) != 0,
            message("'", part.substr(i, 1), "' is not a letter"));
      labels.push_back(part[i]);
    }
    return labels;
  }

  void add_operand(const std::string& part, const Shape& shape) {
    const bool dots = part.find("...") != part.npos;
    const int letters = static_cast<int>(part.size()) - (dots ? 3 : 0);
    check(dots ? letters <= shape.ndim() : letters == shape.ndim(),
          message("'", part, "' does not name the axes of an array of shape ", shape));
    const int rest = dots ? shape.ndim() - letters : 0;
    rest_ = std::max(rest_, rest);
    const Labels labels = parse(part, rest);
    check_diagonals(labels, shape);
    occurrences_.insert(occurrences_.end(), labels.begin(), labels.end());
    read.operands.push_back(labels);
  }

  void check_diagonals(const Labels& labels, const Shape& shape) const {
    for (size_t i = 0; i < labels.size(); ++i) {
      const auto twin = std::find(labels.begin() + int64_t(i) + 1, labels.end(), labels[i]);
      if (twin == labels.end()) continue;
      const int64_t other = shape[size_t(twin - labels.begin())];
      check(shape[i] == other, message("axis '", std::string(1, char(labels[i])),
                                       "' has the extents ", shape[i], " and ", other));
    }
  }

  void implicit_output() {
    for (int r = rest_; r-- > 0;) read.output.push_back(kRest + r);
    Labels once;
    for (Label label : occurrences_) {
      if (label < kRest && std::count(occurrences_.begin(), occurrences_.end(), label) == 1)
        once.push_back(label);
    }
    std::sort(once.begin(), once.end());
    read.output.insert(read.output.end(), once.begin(), once.end());
  }

  void explicit_output(const std::string& part) {
    const Labels& output = read.output = parse(part, rest_);
    check(rest_ == 0 || part.find("...") != part.npos,
          "the output has no ellipsis for that of an operand");
    for (size_t i = 0; i < output.size(); ++i) {
      const std::string shown(1, char(output[i] < kRest ? output[i] : '.'));
      check(contains(occurrences_, output[i]), message("output axis '", shown, "' is in no term"));
      check(std::count(output.begin(), output.end(), output[i]) == 1,
            message("output axis '", shown, "' is named twice"));
    }
  }

  std::string compact_;
  Labels occurrences_;
  int rest_ = 0;
};

}  // namespace

Subscripts read_subscripts(std::string_view text, std::span<const Shape> shapes) {
  return Reader(text, shapes).read;
}

}  // namespace catena::einsum_terms
