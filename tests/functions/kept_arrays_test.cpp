// Arrays that a step of a small GPT-2 keeps from its forward pass for its backward pass: each one
// is a row of a table here. One more, one less, a wider dtype, another maker and another reader are
// failures.
#include <algorithm>
#include <map>
#include <memory>

#include "catena/autograd/autocast.h"
#include "catena/autograd/function_call.h"
#include "catena/core/memory_profile.h"
#include "functions/functions_test_util.h"
#include "small_gpt2.h"

namespace catena {
namespace {

using testing::SmallGpt2;

// Sizes of which every larger array fills whole blocks of the pools.
constexpr int64_t kBatch = 2, kLength = 64, kWidth = 64, kHeads = 4, kInner = 256,
                  kVocabulary = 128;
constexpr int64_t kTokens = kBatch * kLength;
constexpr const char* kParts[] = {"in front", "layer 0", "layer 1", "behind"};

// Pools may give more than so few bytes: such arrays are counted alone.
constexpr size_t kSmall = 512;
constexpr const char* kNobody = "nobody";

// The table --------------------------------------------------------------------------------------

// An array that is kept, by the call that made it. What is no result of a call belongs to the node
// of the call, and has no shape when the pass is over: its bytes are compared alone.
struct Kept {
  std::string call;
  const char* reader;  // the function whose backward is the first to need it
  Shape shape;
  Dtype dtype;
  bool is_result = true;
  size_t bytes() const {
    const size_t all = size_t(element_count(shape)) * size_t(itemsize(dtype));
    return all > kSmall ? all : 0;
  }
};
using Table = std::vector<Kept>;

// Of a step in `low`, with or without dropout.
class TableOf {
 public:
  TableOf(Dtype low, bool drops) : low_(low), drops_(drops) {
    in("in front");
    add("arange", "EmbedID", {kLength}, Dtype::kInt32, false);
    add(drops ? "Dropout" : "add", "LayerNormalization", kStream, low);
    in("layer 0");
    normalization("LayerNormalization", "Linear");
    layer();
    in("layer 1");
    normalization("AddLayerNormalization", "Linear");
    layer();
    in("behind");
    normalization("AddLayerNormalization", kNobody);  // LinearCrossEntropy, under create_graph
    // Has made the gradients, that of the table in float32.
    const char* loss = "LinearCrossEntropy";
    add(loss, loss, {kTokens, kWidth}, low, false);
    add(loss, loss, {kVocabulary, kWidth}, Dtype::kFloat32, false);
    add(loss, kNobody, {}, Dtype::kFloat32);                        // the loss itself
    add(loss, "the mean of the loss", {}, Dtype::kFloat32, false);  // how many labels count
    add(loss, loss, {}, Dtype::kFloat32, false);                    // the divisor
  }
  const Table& table() const { return table_; }

 private:
  static inline const Shape kStream{kBatch, kLength, kWidth};

  void in(const char* part) { part_ = part; }
  void add(const std::string& call, const char* reader, const Shape& shape, Dtype dtype,
           bool is_result = true) {
    table_.push_back({part_ + "/" + call, reader, shape, dtype, is_result});
  }
  // One that adds keeps the sum; the stream in front of the others is in the table already. A mean
  // of two parts and a deviation of each row stay in float32.
  void normalization(const std::string& call, const char* reader) {
    add(call, reader, kStream, low_);
    if (call.starts_with("Add")) add(call, "AddLayerNormalization", kStream, low_);
    add(call, "LayerNormalization", {3 * kTokens}, Dtype::kFloat32, false);
  }
  // Behind its first normalization.
  void layer() {
    const char* attention = "ScaledDotProductAttention";
    add("Linear", attention, {kBatch, kLength, 3 * kWidth}, low_);
    add(attention, "Linear", {kBatch, kHeads, kLength, kWidth / kHeads}, low_);
    add(attention, attention, {2, kBatch, kHeads, kLength}, Dtype::kFloat32, false);
    normalization("AddLayerNormalization", drops_ ? "Linear" : "FeedForward");
    if (drops_) {
      add("Linear", "GELUTanh", {kBatch, kLength, kInner}, low_);
      add("Dropout", "Linear", {kBatch, kLength, kInner}, low_);
    } else {
      add("FeedForward", "FeedForward", {kTokens, kInner}, low_, false);  // in front of GELU
      add("FeedForward", "FeedForward", {kTokens, kInner}, low_, false);  // behind it
    }
  }

  const Dtype low_;
  const bool drops_;
  std::string part_;
  Table table_;
};

// What there is ----------------------------------------------------------------------------------

// "layer 0/Linear" of a path within it.
std::string call_of(const std::string& path) {
  return path.substr(0, path.find('/', path.find('/') + 1));
}

// Arrays and bytes that calls keep.
struct Sums {
  struct Sum {
    size_t arrays = 0, bytes = 0;
  };
  std::map<std::string, Sum> by_call;

  void add(const std::string& call, size_t arrays, size_t bytes) {
    by_call[call].arrays += arrays;
    by_call[call].bytes += bytes;
  }
  // Of the calls in a part of the model; of all for "".
  size_t bytes_of(const std::string& part) const {
    size_t bytes = 0;
    for (const auto& [call, sum] : by_call)
      if (call.starts_with(part)) bytes += sum.bytes;
    return bytes;
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& [call, sum] : by_call)
      lines.push_back(message(call, ": ", sum.arrays, " arrays, ", sum.bytes, " bytes"));
    return lines;
  }
};

Sums sums_of(const MemoryProfile& profile) {
  Sums sums;
  for (const MemoryProfile::Entry& entry : profile.entries()) {
    const bool is_small = entry.held <= kSmall * entry.blocks;
    if (entry.blocks > 0) sums.add(call_of(entry.call), entry.blocks, is_small ? 0 : entry.held);
  }
  return sums;
}

// What a call gave, without keeping it: the observer of a profile lives as long as the memory.
struct Given {
  std::string path;
  Dtype dtype;
  Shape shape;
  std::weak_ptr<void> observer;
  Storage* memory;
};

class Results : public FunctionHook {
 public:
  void forward_ends(const FunctionCall& call) override {
    for (const Array& y : call.outputs()) {
      const std::shared_ptr<void>& observer = y.storage()->observer;
      const auto same = [&](const Given& other) { return other.observer.lock() == observer; };
      if (observer && std::none_of(given_.begin(), given_.end(), same))
        given_.push_back({detail::call_path(), y.dtype(), y.shape(), observer, y.storage().get()});
    }
  }
  std::vector<Given> kept() const {
    std::vector<Given> result;
    for (const Given& one : given_)
      if (!one.observer.expired()) result.push_back(one);
    return result;
  }

 private:
  std::vector<Given> given_;
};

// Backward refuses what was written to since the forward pass, and says who needs it.
std::string reader_of(const Given& one, const Variable& loss) {
  one.memory->version.fetch_add(1);
  const std::string error = error_of<GradientError>([&] { loss.backward(); });
  return error == "no error" ? kNobody : error.substr(0, error.find(':'));
}

std::string line_of(const std::string& call, Dtype dtype, const Shape& shape,
                    const std::string& reader) {
  return message(call, ": ", dtype, " ", shape, " for ", reader);
}

// A forward pass with the names of its parts.
Variable forward(const SmallGpt2& net, const Array& ids, const Array& next) {
  const auto in_part = [](const char* name, const auto& f) {
    const CallScope part(name);
    return f();
  };
  F::ResidualStream stream(in_part(kParts[0], [&] { return net.embedded(ids); }));
  for (size_t i = 0; i < net.layers.size(); ++i)
    in_part(kParts[1 + i], [&] {
      net.layers[i].add_to(stream, {.causal = true});
      return 0;
    });
  return in_part(kParts[3], [&] { return net.loss_of(stream, next); });
}

struct Found {
  Sums sums;
  std::vector<std::string> results;
};

class KeptArrays : public OnDevice {
 protected:
  Array ids(uint64_t seed) const {
    return random_array({kBatch, kLength}, 0, kVocabulary, Dtype::kInt32, device(), seed);
  }
  // What is alive while the loss is: a pass for each result, which is then written to.
  Found step(Dtype low, double dropout) const {
    const DeviceScope scope(device());
    const AutocastScope autocast(low);
    const SmallGpt2 net({.vocabulary = kVocabulary,
                         .length = kLength,
                         .width = kWidth,
                         .heads = kHeads,
                         .inner = kInner,
                         .dropout = dropout});
    const Array from = ids(1), to = ids(2);
    forward(net, from, to);  // 16-bit copies of parameters are made once
    Found found;
    for (size_t i = 0;; ++i) {
      const MemoryProfile profile;
      Results results;
      Variable loss;
      {
        const FunctionHookScope hook(results);
        loss = forward(net, from, to);
      }
      found.sums = sums_of(profile);
      const std::vector<Given> kept = results.kept();
      if (i >= kept.size()) break;
      const Given& one = kept[i];
      found.results.push_back(
          line_of(call_of(one.path), one.dtype, one.shape, reader_of(one, loss)));
    }
    std::sort(found.results.begin(), found.results.end());
    return found;
  }
  template <class F>
  void each_step(const F& f) const {
    for (const Dtype low : {Dtype::kFloat32, Dtype::kBFloat16, Dtype::kFloat16})
      for (const double dropout : {0.0, 0.1}) {
        SCOPED_TRACE(message(low, ", dropout ", dropout));
        f(low, dropout);
      }
  }
};

TEST_P(KeptArrays, AreThoseOfTheTable) {
  each_step([&](Dtype low, double dropout) {
    const Found found = step(low, dropout);
    Sums sums;
    std::vector<std::string> results;
    const TableOf expected(low, dropout > 0);
    for (const Kept& kept : expected.table()) {
      sums.add(kept.call, 1, kept.bytes());
      if (kept.is_result)
        results.push_back(line_of(kept.call, kept.dtype, kept.shape, kept.reader));
    }
    std::sort(results.begin(), results.end());
    EXPECT_EQ(found.sums.lines(), sums.lines());
    EXPECT_EQ(found.results, results);
  });
}

TEST_P(KeptArrays, AreSoManyBytes) {
  each_step([&](Dtype low, double dropout) {
    const bool wide = low == Dtype::kFloat32;
    const Sums sums = step(low, dropout).sums;
    EXPECT_EQ(sums.bytes_of("layer 0"), wide ? 498'688U : 252'928U);
    EXPECT_EQ(sums.bytes_of("layer 1"), wide ? 531'456U : 269'312U);
    EXPECT_EQ(sums.bytes_of(""), wide ? 1'195'520U : 622'080U);
  });
}

CATENA_ON_DEVICES(KeptArrays);

}  // namespace
}  // namespace catena
