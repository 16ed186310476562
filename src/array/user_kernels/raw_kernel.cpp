// Kernels written whole, modules, and kernels found again by their texts.
#include "catena/array/raw_kernel.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>

#include "array/user_kernels/kernel_compiler.h"
#include "catena/array/memoize.h"
#include "catena/core/fork_mutex.h"
#include "core/read_file.h"

namespace catena {

// ---- RawKernel ----------------------------------------------------------------------------------

RawKernel::RawKernel(std::string code, std::string name, std::vector<std::string> options)
    : source_{std::move(code), nullptr, std::move(name), std::move(options)} {}

void RawKernel::operator()(Grid grid, Grid block, const std::vector<Argument>& arguments,
                           unsigned shared_memory) const {
  const std::string& who = source_.name;
  std::vector<const void*> addresses;
  const Array* first = nullptr;
  for (const Argument& argument : arguments) {
    addresses.push_back(argument.address());
    if (!argument.array().defined()) continue;
    if (first) check_same_device(who.c_str(), *first, argument.array());
    if (first == nullptr) first = &argument.array();
  }
  const Device device = first ? first->device() : current_device();
  KernelCompiler& compiler = compiler_of(who, device);
  CATENA_CHECK(ValueError,
               grid.x > 0 && grid.y > 0 && grid.z > 0 && block.x > 0 && block.y > 0 && block.z > 0,
               who, ": a launch of ", grid.x, " x ", grid.y, " x ", grid.z, " blocks of ", block.x,
               " x ", block.y, " x ", block.z, " threads; every extent must be at least 1");
  CATENA_CHECK(ValueError, uint64_t(block.x) * block.y * block.z <= 1024, who, ": a block of ",
               block.x, " x ", block.y, " x ", block.z, " threads; at most 1024 in all");
  compiler.raw(source_, grid, block, addresses, shared_memory, device);
  for (const Argument& argument : arguments) {
    if (argument.array().defined()) argument.array().note_write();
  }
}

void RawKernel::linear_launch(int64_t size, const std::vector<Argument>& arguments,
                              unsigned shared_memory, unsigned block_max_size) const {
  CATENA_CHECK(ValueError, size >= 0 && block_max_size > 0, source_.name, ": linear_launch of ",
               size, " elements in blocks of at most ", block_max_size, " threads");
  if (size == 0) return;
  const int64_t threads = std::min<int64_t>(block_max_size, size);
  const int64_t blocks = std::min<int64_t>((size + threads - 1) / threads, 65536);
  (*this)({unsigned(blocks)}, {unsigned(threads)}, arguments, shared_memory);
}

// ---- Module -------------------------------------------------------------------------------------

Module Module::compile(std::string source, std::vector<std::string> options) {
  Module module;
  module.source_.code = std::move(source);
  module.source_.options = std::move(options);
  return module;
}

Module Module::load(std::string image) {
  CATENA_CHECK(ValueError, !image.empty(), "Module::load: an empty image");
  Module module;
  module.source_.image = std::make_shared<const std::string>(std::move(image));
  return module;
}

Module Module::load_file(const std::string& path) {
  std::string bytes;
  CATENA_CHECK(IoError, read_file(path, bytes), "Module::load_file: cannot read ", path, ": ",
               std::strerror(errno));
  return load(std::move(bytes));
}

RawKernel Module::get_function(const std::string& name) const {
  RawKernel::Source source = source_;
  source.name = name;
  return RawKernel(std::move(source));
}

Array Module::get_global_var(const std::string& name, const Shape& shape, Dtype dtype,
                             Device device) const {
  const auto [data, bytes] = compiler_of(name, device).global(source_, name, device);
  const size_t wanted = size_t(element_count(shape)) * itemsize(dtype);
  CATENA_CHECK(ShapeError, wanted <= bytes, name, ": the variable has ", bytes,
               " bytes; an array of shape ", shape, " and dtype ", dtype, " needs ", wanted);
  return Array::from_storage(borrow(device, data, bytes), 0, shape,
                             contiguous_strides(shape, int64_t(itemsize(dtype))), dtype);
}

// ---- what is remembered -------------------------------------------------------------------------

namespace {

struct Memos {
  ForkMutex mutex;
  std::vector<std::pair<std::weak_ptr<void>, std::function<void()>>> list;
};
Memos& memos() {
  static Memos* const all = new Memos;
  return *all;
}

// One kernel for each list of texts.
template <class Kernel, class Make>
Kernel memoised(const std::vector<std::string>& texts, const Make& make) {
  struct Table {
    ForkMutex mutex;
    std::map<std::vector<std::string>, Kernel> kernels;
  };
  static const std::shared_ptr<Table> table = [] {
    auto made = std::make_shared<Table>();
    detail::register_memo(made, [raw = made.get()] {
      const std::lock_guard lock(raw->mutex);
      raw->kernels.clear();
    });
    return made;
  }();
  const std::lock_guard lock(table->mutex);
  const auto found = table->kernels.find(texts);
  return found != table->kernels.end() ? found->second
                                       : table->kernels.emplace(texts, make()).first->second;
}

std::vector<std::string> with_options(std::vector<std::string> texts,
                                      const std::vector<std::string>& options) {
  texts.insert(texts.end(), options.begin(), options.end());
  return texts;
}

}  // namespace

void detail::register_memo(std::weak_ptr<void> owner, std::function<void()> clear) {
  const std::lock_guard lock(memos().mutex);
  std::erase_if(memos().list, [](const auto& memo) { return memo.first.expired(); });
  memos().list.emplace_back(std::move(owner), std::move(clear));
}

void clear_memo() {
  std::vector<std::pair<std::weak_ptr<void>, std::function<void()>>> list;
  {
    const std::lock_guard lock(memos().mutex);
    list = memos().list;
  }
  for (const auto& [owner, clear] : list) {
    if (const auto alive = owner.lock()) clear();
  }
}

namespace cuda {

ElementwiseKernel elementwise(const std::string& in_params, const std::string& out_params,
                              const std::string& operation, const std::string& name,
                              const KernelOptions& options) {
  return memoised<ElementwiseKernel>(
      with_options({in_params, out_params, operation, name, options.preamble, options.loop_prep,
                    options.after_loop, options.reduce_dims ? "1" : "0"},
                   options.options),
      [&] { return ElementwiseKernel(in_params, out_params, operation, name, options); });
}

ElementwiseKernel elementwise(const std::string& arguments, const std::string& operation,
                              const std::string& name, const KernelOptions& options) {
  return memoised<ElementwiseKernel>(
      with_options({arguments, operation, name, options.preamble, options.loop_prep,
                    options.after_loop, options.reduce_dims ? "1" : "0"},
                   options.options),
      [&] { return ElementwiseKernel::of_c_arguments(arguments, operation, name, options); });
}

ReductionKernel reduce(const std::string& in_params, const std::string& out_params,
                       const std::string& map_expr, const std::string& reduce_expr,
                       const std::string& post_map_expr, const std::string& identity,
                       const std::string& name, const ReductionKernelOptions& options) {
  return memoised<ReductionKernel>(
      with_options({in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name,
                    options.reduce_type, options.preamble, options.reduce_dims ? "1" : "0"},
                   options.options),
      [&] {
        return ReductionKernel(in_params, out_params, map_expr, reduce_expr, post_map_expr,
                               identity, name, options);
      });
}

ReductionKernel reduce(const std::string& arguments, const std::string& map_expr,
                       const std::string& reduce_expr, const std::string& neutral,
                       const std::string& name, Dtype dtype,
                       const ReductionKernelOptions& options) {
  return memoised<ReductionKernel>(
      with_options({arguments, map_expr, reduce_expr, neutral, name, to_string(dtype),
                    options.reduce_type, options.preamble, options.reduce_dims ? "1" : "0"},
                   options.options),
      [&] {
        return ReductionKernel::of_c_arguments(arguments, map_expr, reduce_expr, neutral, name,
                                               dtype, options);
      });
}

RawKernel raw(const std::string& code, const std::string& name,
              const std::vector<std::string>& options) {
  return memoised<RawKernel>(with_options({code, name}, options),
                             [&] { return RawKernel(code, name, options); });
}

}  // namespace cuda

KernelCacheStatistics kernel_cache_statistics(int device) {
  return compiler_of("kernel_cache_statistics", cuda_device(device)).statistics(device);
}

}  // namespace catena
