// Texts of generated kernels. Pure functions from a specification to CUDA C++ for NVRTC. The bundle
// tool and the running library call the same ones, so a bundled kernel is found by the hash of its
// text.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "catena/core/dtype.h"
#include "catena/kernels/elementwise.h"
#include "catena/kernels/reduce.h"

namespace catena::jit {

// Whether kernel texts have a C++ type for elements of the dtype, and its name; DtypeError for
// others.
inline bool has_type(Dtype d) { return *row_of(d).kernel_type != '\0'; }
inline const char* type_name(Dtype d) {
  CATENA_CHECK(DtypeError, has_type(d), "no kernel that is compiled at run time takes ", d);
  return row_of(d).kernel_type;
}

// An element-wise operation of the table: the dtype in which it computes, and the dtypes in memory
// (operand 0 is the output). Host numbers have the operand's own dtype.
struct MapSpec {
  ElementwiseOp op;
  Dtype compute;
  Dtype memory[1 + kMaxElementwiseInputs];
};
// Every operand has the dtype that the operation gives it when it computes in d.
MapSpec same_dtype_spec(ElementwiseOp op, Dtype d);

// Kernels catena_flat, catena_rows, catena_tiled, catena_strided.
std::string map_source(const MapSpec& spec);
// Kernels catena_reduce_rows, catena_reduce_columns, catena_reduce_finish, catena_reduce_short.
std::string reduce_source(ReduceOp op, Dtype input, Dtype output);
// What a reduction does with two values, as an expression of a and b.
const char* combine_text(ReduceOp op);
// The initial value of the reduction. Null for extremes, which begin with the first element or the
// type's last value.
const char* identity_text(ReduceOp op);
// Kernels catena_arg_reduce, catena_arg_reduce_columns, catena_arg_reduce_finish.
std::string arg_reduce_source(Dtype input);
// Kernel catena_arange.
std::string arange_source(Dtype output);
// Kernel catena_concatenate, moving words of 1, 2, 4, 8 or 16 bytes.
std::string concatenate_source(int word_bytes);

// Options every kernel is compiled with, besides --gpu-architecture.
const std::vector<std::string>& compile_options();

// Texts of src/device, embedded by the build: "map.cuh", "scalar_ops.h", ...
std::string_view kernel_text(std::string_view file);
// The functor of an operation that computes in a dtype: for 16-bit floats it may be one of its own.
std::string functor_of(const ElementwiseInfo& row, Dtype compute);
// One functor of the files of scalar_ops.h and of scalar_narrow.h, with everything that it refers
// to.
std::string functor_text(std::string_view functor);
// Several functors, each once.
std::string functor_texts(std::span<const std::string> list);
// Whether an operation is a function call and not inlined into every unrolled element; see its cost
// column.
bool is_heavy(const ElementwiseInfo& row, Dtype compute);
// The macros of map.cuh that list the operands, and the parts of the element-wise kernels' texts
// before and after the part of a single program.
std::string operand_macros(int outputs, int operands);
const std::string& common_text();
std::string map_kernels_text();
// The text without includes, pragmas and comments, which compiles faster.
std::string strip_text(std::string_view text);

}  // namespace catena::jit
