#include "catena/autograd/function_set.h"

#include <algorithm>

namespace catena {

std::vector<std::pair<std::string, Parameter>> Parameterized::named_parameters() const {
  std::vector<std::pair<std::string, Parameter>> result;
  const_cast<Parameterized*>(this)->visit_parameters(
      [&](const std::string& path, Parameter& p) {
        if (!p.defined()) return;  // an absent bias
        p.state()->listed.store(true, std::memory_order_relaxed);
        note_path(*p.state(), path);
        result.emplace_back(path, p);
      },
      "");
  return result;
}

namespace {

// Sorts "l1/W" member by member, so that "l10" and "l1/W" do not mix.
bool path_less(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (true) {
    const size_t a_end = std::min(a.find('/', i), a.size()),
                 b_end = std::min(b.find('/', j), b.size());
    const int order = a.compare(i, a_end - i, b, j, b_end - j);
    if (order != 0) return order < 0;
    if (a_end == a.size() || b_end == b.size()) return a_end == a.size() && b_end != b.size();
    i = a_end + 1;
    j = b_end + 1;
  }
}

}  // namespace

Parameters Parameterized::parameters() const {
  auto named = named_parameters();
  std::stable_sort(named.begin(), named.end(),
                   [](const auto& a, const auto& b) { return path_less(a.first, b.first); });
  Parameters result;
  for (auto& entry : named) result.push_back(std::move(entry.second));
  return result;
}

Arrays Parameterized::gradients() const {
  Arrays result;
  for (const Parameter& p : parameters()) result.push_back(p.grad());
  return result;
}

std::pair<Parameters, Arrays> Parameterized::collect_parameters() const {
  return {parameters(), gradients()};
}

void Parameterized::copy_parameters_from(const Parameters& source) {
  const Parameters own = parameters();
  CATENA_CHECK(ValueError, own.size() == source.size(), "copy_parameters_from: the model has ",
               own.size(), " parameters, the source ", source.size());
  for (size_t i = 0; i < own.size(); ++i) {
    CATENA_CHECK(ValueError, source[i].defined(), "copy_parameters_from: parameter ", i,
                 " of the source is undefined");
    CATENA_CHECK(ShapeError, own[i].shape() == source[i].shape(),
                 "copy_parameters_from: parameter ", i, " ('", path_of(*own[i].state()),
                 "') has shape ", own[i].shape(), ", that of the source ", source[i].shape());
  }
  for (size_t i = 0; i < own.size(); ++i) own[i].copy_from(source[i].data());
}

void Parameterized::zero_grads() {
  for (const auto& [path, p] : named_parameters()) p.zero_grad();
}

void Parameterized::to(Device device) {
  for (const auto& [path, p] : named_parameters()) p.to(device);
}

void Parameterized::to_cpu() {
  for (const auto& [path, p] : named_parameters()) {
    if (!p.device().is_cpu()) p.to(cpu(0));
  }
}

Device Parameterized::device() const {
  const auto named = named_parameters();
  if (named.empty()) return cpu(0);
  const Device first = named.front().second.device();
  for (const auto& [path, p] : named) {
    CATENA_CHECK(DeviceError, p.device() == first,
                 "device: the parameters are on several devices: '", named.front().first, "' on ",
                 first, ", '", path, "' on ", p.device());
  }
  return first;
}

int64_t Parameterized::parameter_count() const {
  int64_t count = 0;
  for (const auto& [path, p] : named_parameters()) count += p.size();
  return count;
}

namespace detail {

std::vector<std::string> split_names(std::string_view names) {
  std::vector<std::string> result;
  while (true) {
    const size_t comma = names.find(',');
    std::string_view one = names.substr(0, comma);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && (one.back() == ' ' || one.back() == '_'))
      one.remove_suffix(1);  // member_ is shown as "member"
    result.emplace_back(one);
    if (comma == std::string_view::npos) return result;
    names.remove_prefix(comma + 1);
  }
}

}  // namespace detail

FunctionBag::FunctionBag(const FunctionBag& other) : Parameterized(other) {
  for (const auto& [name, entry] : other.entries_) entries_.emplace_back(name, entry->clone());
}

FunctionBag& FunctionBag::operator=(const FunctionBag& other) {
  if (this == &other) return *this;
  if (entries_.empty()) {
    FunctionBag copy(other);
    entries_ = std::move(copy.entries_);
  } else {
    copy_parameters_from(other);
  }
  return *this;
}

Parameterized& FunctionBag::operator[](const std::string& name) const {
  std::string known;
  for (const auto& [key, entry] : entries_) {
    if (key == name) return entry->get();
    known += (known.empty() ? "" : ", ") + key;
  }
  fail<IndexError>("FunctionBag: no function named '", name, "'; there are: ", known);
}

bool FunctionBag::contains(const std::string& name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const auto& e) { return e.first == name; });
}

void FunctionBag::insert(const std::string& name, std::unique_ptr<EntryBase> entry) {
  CATENA_CHECK(ValueError, !contains(name), "FunctionBag: '", name, "' is there already");
  entries_.emplace_back(name, std::move(entry));
}

void FunctionBag::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  for (auto& [name, entry] : entries_) entry->get().visit_parameters(visitor, prefix + name + "/");
}

}  // namespace catena
