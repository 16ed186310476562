#include "catena/training/scatter_dataset.h"

#include <memory>
#include <numeric>
#include <string>

#include "catena/array/creation.h"
#include "catena/comm/internals.h"
#include "catena/datasets/order.h"
#include "catena/datasets/scatter.h"
#include "catena/datasets/views.h"
#include "comm/agreement.h"

namespace catena::training {
namespace {

using datasets::Arrays;
using datasets::DatasetPtr;

// "5 on rank 0, none on rank 1", of numbers that are -1 where a rank has no data set.
std::string list_samples(const std::vector<int64_t>& all) {
  std::string text;
  for (size_t r = 0; r < all.size(); ++r) {
    const std::string samples = all[r] < 0 ? "none" : message(all[r]);
    text += message(r == 0 ? "" : ", ", samples, " on rank ", r);
  }
  return text;
}

// The numbers of samples of all ranks, whose options are equal.
std::vector<int64_t> samples_of_all(const char* who, int64_t samples, Communicator& comm,
                                    const ScatterOptions& options) {
  CATENA_CHECK(ValueError, options.root >= 0 && options.root < comm.size(), who, ": root ",
               options.root, " is not a rank of this communicator, expected 0 to ",
               comm.size() - 1);
  const comm::PurposeScope purpose(&comm, who);
  const auto difference = comm::Agreement()
                              .add(".root", options.root)
                              .add(".shuffle", options.shuffle)
                              .add(".seed", options.seed)
                              .add(".equal_length", options.equal_length)
                              .compare(comm);
  if (difference)
    fail<ValueError>(who, ": ", difference->text(), "; give all ranks the same options");
  return comm.all_gather_object(samples);
}

// The samples in the order that is cut.
std::vector<int64_t> scattered_order(int64_t samples, const ScatterOptions& options) {
  if (options.shuffle && samples > 0)
    return datasets::epoch_order(options.seed, 0, samples).to_vector<int64_t>();
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<int64_t> positions_of(int64_t samples, datasets::RankOf who,
                                  const ScatterOptions& options) {
  datasets::Share share = datasets::scatter(samples, who);
  if (options.equal_length) {
    CATENA_CHECK(ValueError, samples > 0,
                 "scatter_index: with equal_length there must be samples to divide, got none");
    const int64_t longest = datasets::scatter(samples, {0, who.ranks}).size();
    share.begin = samples * who.rank / who.ranks;
    share.end = share.begin + longest;
  }
  const std::vector<int64_t> order = scattered_order(samples, options);
  return {order.begin() + share.begin, order.begin() + share.end};
}

// Samples as a message ---------------------------------------------------------------------------

constexpr const char *kColumns = "columns", *kSamples = "samples";

// Rows of columns as one array each, else the arrays of each sample. The first array says how many
// there are of one sample.
NamedArrays packed(const datasets::Dataset& data) {
  if (data.has_columns()) {
    NamedArrays arrays;
    for (Array& column : data.all()) arrays.emplace_back(kColumns, std::move(column));
    return arrays;
  }
  NamedArrays arrays;
  size_t of_sample = 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    Arrays sample = data.sample(i);
    of_sample = sample.size();
    for (Array& a : sample) arrays.emplace_back(kSamples, std::move(a));
  }
  arrays.insert(arrays.begin(), {kSamples, array<int64_t>({data.size(), int64_t(of_sample)})});
  return arrays;
}

DatasetPtr unpacked(NamedArrays arrays) {
  if (!arrays.empty() && arrays[0].first == kColumns) {
    std::vector<Array> columns;
    for (auto& [name, a] : arrays) columns.push_back(std::move(a));
    return std::make_shared<datasets::TupleDataset>(std::move(columns));
  }
  const auto sizes = arrays.at(0).second.to_vector<int64_t>();
  std::vector<Arrays> samples(static_cast<size_t>(sizes[0]));
  size_t next = 1;
  for (Arrays& sample : samples)
    for (int64_t k = 0; k < sizes[1]; ++k) sample.push_back(std::move(arrays.at(next++).second));
  return std::make_shared<datasets::ListDataset>(std::move(samples));
}

DatasetPtr send_parts(const DatasetPtr& data, Communicator& comm, const ScatterOptions& options) {
  if (comm.rank() != options.root) return unpacked(comm.recv_object<NamedArrays>(options.root));
  DatasetPtr own;
  for (int r = 0; r < comm.size(); ++r) {
    const DatasetPtr part =
        datasets::subset(data, positions_of(data->size(), {r, comm.size()}, options));
    if (r == options.root)
      own = part;
    else
      comm.send_object(packed(*part), r);
  }
  return own;
}

// Samples without arrays.
class EmptyDataset final : public datasets::Dataset {
 public:
  explicit EmptyDataset(int64_t size) : Dataset(size, {}) {}
  void gather(std::span<const int64_t> positions, std::span<const Array> out) const override {
    check_gather(positions, out);
  }
};

}  // namespace

std::vector<int64_t> scatter_index(int64_t samples, const CommunicatorPtr& comm,
                                   const ScatterOptions& options) {
  constexpr const char* kWho = "scatter_index";
  CATENA_CHECK(ValueError, samples >= 0, kWho, ": expected at least 0 samples, got ", samples);
  if (comm == nullptr) return positions_of(samples, {}, options);
  const auto all = samples_of_all(kWho, samples, *comm, options);
  for (const int64_t one : all)
    CATENA_CHECK(ValueError, one == all[0], kWho, ": the ranks gave different numbers of samples (",
                 list_samples(all), ")");
  return positions_of(samples, {comm->rank(), comm->size()}, options);
}

DatasetPtr scatter_dataset(const DatasetPtr& data, const CommunicatorPtr& comm,
                           const ScatterOptions& options) {
  constexpr const char* kWho = "scatter_dataset";
  if (comm == nullptr) {
    CATENA_CHECK(ValueError, data != nullptr, kWho, ": no data set was given");
    return datasets::subset(data, positions_of(data->size(), {}, options));
  }
  const auto all = samples_of_all(kWho, data ? data->size() : -1, *comm, options);
  const int64_t of_root = all[size_t(options.root)];
  CATENA_CHECK(ValueError, of_root >= 0, kWho, ": rank ", options.root,
               ", the root, has no data set; give it one, or name the rank that has one as root");
  bool everywhere = true, nowhere_else = true;
  for (size_t r = 0; r < all.size(); ++r) {
    everywhere &= all[r] == of_root;
    nowhere_else &= int(r) == options.root || all[r] < 0;
  }
  CATENA_CHECK(ValueError, everywhere || nowhere_else, kWho,
               ": the ranks have data sets of different size (", list_samples(all),
               "); give all the same one, or null on all but the root");
  if (everywhere)
    return datasets::subset(data,
                            positions_of(data->size(), {comm->rank(), comm->size()}, options));
  const comm::PurposeScope purpose(comm.get(), kWho);
  return send_parts(data, *comm, options);
}

DatasetPtr broadcast_dataset(const DatasetPtr& data, const CommunicatorPtr& comm, int root) {
  constexpr const char* kWho = "broadcast_dataset";
  const bool has = data != nullptr;
  if (comm == nullptr) {
    CATENA_CHECK(ValueError, has, kWho, ": no data set was given");
    return data;
  }
  const auto all = samples_of_all(kWho, has ? data->size() : -1, *comm, {.root = root});
  CATENA_CHECK(ValueError, all[size_t(root)] >= 0, kWho, ": rank ", root,
               ", the root, has no data set; give it one, or name the rank that has one as root");
  const comm::PurposeScope purpose(comm.get(), kWho);
  const bool is_root = comm->rank() == root;
  NamedArrays sent = comm->broadcast_object(is_root ? packed(*data) : NamedArrays(), root);
  return is_root ? data : unpacked(std::move(sent));
}

DatasetPtr create_empty_dataset(const DatasetPtr& data) {
  CATENA_CHECK(ValueError, data != nullptr, "create_empty_dataset: no data set was given");
  return create_empty_dataset(data->size());
}

DatasetPtr create_empty_dataset(int64_t samples) { return std::make_shared<EmptyDataset>(samples); }

}  // namespace catena::training
