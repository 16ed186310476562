// Checkpoint: everything a training run needs to go on, in one file; or in a folder that all ranks
// write and read together (training/checkpoint_folder.h).
//
//   serializers::Checkpoint checkpoint;
//   checkpoint.add("model", model);
//   checkpoint.add("optimizer", optimizer);
//   checkpoint.add("epoch", epoch);                          // int64_t epoch
//   checkpoint.add(
//       "iterator", [&] { return iterator.state(); }, [&](auto s) { iterator.set_state(s); });
//   checkpoint.add("random", random::default_state(cpu(0)));
//   if (resume) checkpoint.load("run/checkpoint.npz");
//   ...
//   checkpoint.save("run/checkpoint.npz");
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/random.h"
#include "catena/serializers/npz.h"
#include "catena/serializers/tensor_part.h"

namespace catena::serializers {

// Names what is saved once, so that saving and loading cannot differ. Referred objects must outlive
// the checkpoint. Names are unique and without '/' (ValueError).
class Checkpoint {
 public:
  void add(const std::string& name, Parameterized& model);
  void add(const std::string& name, Optimizer& optimizer);
  void add(const std::string& name, RandomState& state);
  void add(const std::string& name, std::string& text);
  // Loading writes into the array, on its device; shape and dtype must be those saved (IoError).
  void add(const std::string& name, Array& array);
  // Loading replaces the whole map, by arrays on cpu:0. It may be empty.
  void add(const std::string& name, std::map<std::string, Array>& arrays);
  // Numbers are saved as 0-d arrays of their dtype, vectors of numbers as 1-d ones; loading wants
  // the same dtype (IoError). Other trivially copyable values, and vectors of them, are saved as
  // their bytes and want the same size. Numbers that earlier versions saved as bytes are read too.
  template <class T>
  requires(std::is_trivially_copyable_v<T> &&
           !std::is_pointer_v<T>) void add(const std::string& name, T& value) {
    add(
        name, [&value] { return value; }, [&value](const T& loaded) { value = loaded; });
  }
  template <class T>
  requires(std::is_trivially_copyable_v<T> &&
           !std::is_same_v<T, bool>) void add(const std::string& name, std::vector<T>& values) {
    add_value(
        name, [&values] { return array_of(values.data(), {int64_t(values.size())}); },
        [&values](const Array& saved) {
          const auto bytes = static_cast<size_t>(saved.nbytes());
          values.resize(bytes / sizeof(T));
          if (bytes > 0) std::memcpy(static_cast<void*>(values.data()), saved.raw_data(), bytes);
        },
        [name](const SavedForm& saved) { check_value(name, saved, form_of<T>(), true); });
  }
  // A value that is asked for at save() and handed over at load().
  template <class Get, class Set>
  requires std::is_invocable_v<Get>
  void add(const std::string& name, Get get, Set set) {
    using T = std::remove_cvref_t<std::invoke_result_t<Get>>;
    static_assert(std::is_trivially_copyable_v<T>,
                  "a value must be trivially copyable; convert it to such a struct");
    add_value(
        name,
        [get] {
          const T value = get();
          return array_of(&value, Shape{});
        },
        [set](const Array& saved) {
          T value;
          std::memcpy(static_cast<void*>(&value), saved.raw_data(), sizeof(T));
          set(value);
        },
        [name](const SavedForm& saved) { check_value(name, saved, form_of<T>(), false); });
  }

  // What an array is, without its values.
  struct SavedForm {
    Dtype dtype;
    Shape shape;
  };
  // Throws what loading values of these forms, by names below the entry's, would throw because of
  // them. Changes nothing.
  using Check = std::function<void(const std::map<std::string, SavedForm>&)>;

  // An object whose tensors may be spread over processes; names are below the entry's.
  struct Spread {
    std::function<TensorParts()> parts;  // what this process has of the tensors: views
    // The rest, which every process that has the object has too, and what takes it, after the
    // elements of the parts were written.
    std::function<NamedArrays()> values = {};
    std::function<void(const std::map<std::string, Array>&)> load_values = {};
    Parameterized* model = nullptr;  // whose parameters these are, for layers that have slices
    Check check_values = {};         // whether load_values() takes them; null: it takes all
  };
  // Such an object. save() and load() of one file need all elements in this process (ValueError).
  void add(const std::string& name, Spread spread);
  // The path under which files have a parameter, of which the optimizer has another.
  using SavedPath = std::function<std::string(const std::string& path, const Parameter&)>;
  // What add(name, optimizer) adds for files that processes share: states of parameters as parts,
  // those of stages included (UpdateStage::parameter_states), and the rest as values.
  static Spread spread_of(Optimizer& optimizer, const SavedPath& saved_path = {});

  // Which of `count` equal slices, along an axis of the whole tensor, a process has.
  struct AxisSlice {
    size_t axis = 0;
    int64_t index = 0, count = 1;
  };
  // Places a parameter, or a persistent array such as a running mean over a slice of the channels,
  // as such a slice (Parameter::place, Persistent::place), where its layer has not done so.
  // ValueError for an axis that it lacks, unless 0 <= index < count, and for an array that is
  // declared OverRanks::kPerRank.
  void declare_slice(const Parameter& parameter, const AxisSlice& slice);
  void declare_slice(const Persistent& persistent, const AxisSlice& slice);

  // Waits for the devices. Written by rename; IoError with the path and the system's reason.
  void save(const std::string& path) const;
  // IoError naming the entry that is missing, unknown, or does not fit. Entries are restored in the
  // order they were added; after an error some may have been.
  void load(const std::string& path) const;
  // The same with arrays that `share` returns, which gets a function that reads the file: for ranks
  // that one of them reads for, see parallel::from_rank_0.
  using Share = std::function<NamedArrays(const std::function<NamedArrays()>& read)>;
  void load(const std::string& path, const Share& share) const;
  // The same without a file: every entry's arrays by "entry" or "entry/name", and back; `source`
  // begins the errors.
  NamedArrays to_arrays() const;
  void from_arrays(const NamedArrays& saved, const std::string& source) const;

  // What was added, in that order: for those who write files of another form.
  struct Entry {
    std::string name;
    std::function<NamedArrays()> save;  // names below the entry's
    std::function<void(const std::map<std::string, Array>&)> load;
    Spread spread = {};  // of models, optimizers and what was added as such; else without parts
    Check check = {};    // of entries without parts: whether load() takes them; null: it takes all
  };
  // All of them.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  // How values of a type are saved: as elements of a dtype, or as bytes.
  struct Form {
    bool is_number;
    Dtype dtype;
    size_t bytes;  // of one value
  };
  template <class T>
  static constexpr Form form_of() {
    if constexpr (kIsDtypeStorage<T>)
      return {true, dtype_of<T>, sizeof(T)};
    else
      return {false, Dtype::kUInt8, sizeof(T)};
  }
  template <class T>
  static Array array_of(const T* values, const Shape& shape) {
    return saved_form(values, shape, form_of<T>());
  }
  void add_entry(Entry entry);
  void add_value(const std::string& name, std::function<Array()> get,
                 std::function<void(const Array&)> set,
                 std::function<void(const SavedForm&)> check);
  static Array saved_form(const void* values, const Shape& shape, const Form& form);
  // IoError unless these are the bytes of one value, or of `several`, of that form.
  static void check_value(const std::string& name, const SavedForm& saved, const Form& form,
                          bool several);

  std::vector<Entry> entries_;
};

}  // namespace catena::serializers
