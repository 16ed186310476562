// Texts of users' kernels. See user_source.h.
#include "backends/cuda/jit/compile/user_source.h"

#include "backends/cuda/jit/compile/source.h"

namespace catena::jit {

namespace {

// The type that user code sees; 16-bit floats compute in float.
std::string seen_type(Dtype d) { return is_narrow_float(d) ? "float" : type_name(d); }
std::string stored_type(Dtype d) {
  return is_narrow_float(d) ? std::string("catena::jit::") + type_name(d) : type_name(d);
}

// The first statement of a kernel that launch_program() launches.
constexpr const char* kWait = "  catena::jit::wait_for_previous_kernel();\n";

// The number of elements that a thread processes together.
constexpr const char* kBatch = "4";

// Common texts, the placeholder types and the preamble. #line makes the compiler report the lines
// of the user's code.
std::string head(UserLetters letters, const std::string& preamble) {
  std::string text;
  for (const char* file : {"prelude.cuh", "index.h", "args.h", "user.cuh"})
    text += strip_text(kernel_text(file));
  for (const auto& [letter, dtype] : letters)
    text += "typedef " + seen_type(dtype) + " " + std::string(1, letter) + ";\n";
  if (!preamble.empty()) text += "#line 1 \"preamble\"\n" + preamble + "\n";
  return text + "#line 1 \"generated\"\n";
}

std::string user_code(const std::string& name, const std::string& code) {
  return "#line 1 \"" + name + "\"\n" + code + "\n#line 1 \"generated\"\n";
}

// The last parameter of a kernel with raw arguments.
std::string raws_parameter(size_t raws) {
  if (raws == 0) return {};
  return ", const __grid_constant__ catena::jit::UserRaws<" + std::to_string(raws) + "> _raws";
}

std::string load(const UserParameter& p, size_t number, const char* args,
                 const std::string& offset) {
  return "catena::jit::widen(catena::jit::user_load<" + stored_type(p.dtype) + ">(" + args + ", " +
         std::to_string(number) + ", " + offset + "))";
}

}  // namespace

std::string user_elementwise_source(const ElementwiseKernel::Definition& kernel,
                                    const std::vector<UserParameter>& outputs,
                                    const std::vector<UserParameter>& inputs, UserLetters letters,
                                    int dims) {
  std::string raws, batches, loads, names, stores;
  size_t operands = 0, raw_count = 0;
  const auto add = [&](const UserParameter& p, bool is_output) {
    const std::string number = std::to_string(operands);
    if (p.raw) {
      raws += "  const catena::jit::RawArray<" + stored_type(p.dtype) + "> " + p.name +
              "(_raws.array[" + std::to_string(raw_count++) + "]);\n";
      return;
    }
    const std::string place = "catena::jit::user_place<" + stored_type(p.dtype) + ">(_args, " +
                              number + ", _offset[_u][" + number + "])";
    if (!is_output) {
      batches += "    " + seen_type(p.dtype) + " _batch" + number + "[" + kBatch + "];\n";
      loads += "      _batch" + number +
               "[_u] = " + load(p, operands, "_args", "_offset[_u][" + number + "]") + ";\n";
      names +=
          "      const " + seen_type(p.dtype) + " " + p.name + " = _batch" + number + "[_u];\n";
    } else if (is_narrow_float(p.dtype)) {
      names += "      float " + p.name + " = catena::jit::widen(" + place + ");\n";
      stores += "      " + place + " = catena::jit::convert<" + stored_type(p.dtype) + ">(" +
                p.name + ");\n";
    } else {
      names += "      " + seen_type(p.dtype) + "& " + p.name + " = " + place + ";\n";
    }
    ++operands;
  };
  for (const UserParameter& p : outputs) add(p, true);
  for (const UserParameter& p : inputs) add(p, false);
  const std::string count = std::to_string(std::max<size_t>(operands, 1));
  std::string text = head(letters, kernel.options.preamble);
  text +=
      "extern \"C\" __global__ void __launch_bounds__(128) catena_user(const __grid_constant__ "
      "catena::jit::UserArgs<" +
      count + ", " + std::to_string(dims) + "> _args" + raws_parameter(raw_count) + ") {\n" +
      kWait + "  const long long n = _args.size;\n  const catena::jit::UserIndex _ind = {n};\n" +
      raws;
  if (!kernel.options.loop_prep.empty())
    text += user_code("loop_prep", kernel.options.loop_prep + ";");
  // Inputs of several elements, one grid apart, are read before any of them is computed, so that
  // more reads are in flight.
  const std::string each = std::string("#pragma unroll\n    for (int _u = 0; _u < ") + kBatch +
                           "; ++_u) {\n      const long long i = _first + _u * _step;\n"
                           "      if (i >= n) break;\n";
  text +=
      std::string(
          "  const long long _step = (long long)gridDim.x * blockDim.x;\n"
          "  for (long long _first = (long long)blockIdx.x * blockDim.x + threadIdx.x; _first < "
          "n; _first += _step * ") +
      kBatch + ") {\n    catena::int64_t _offset[" + kBatch + "][" + count + "];\n" + batches +
      each + "      catena::jit::user_offsets(_args, i, _offset[_u]);\n" + loads + "    }\n" +
      each + names;
  text += user_code(kernel.name, kernel.operation + ";") + stores + "    }\n  }\n";
  if (!kernel.options.after_loop.empty())
    text += user_code("after_loop", kernel.options.after_loop + ";");
  return text + "}\n";
}

namespace {

std::string reduced_type(const ReductionKernel::Definition& kernel, Dtype first_output) {
  return kernel.reduce_type.empty() ? seen_type(first_output) : kernel.reduce_type;
}

// Parameters and the kernel's first lines: raw arguments.
std::string reduction_head(const char* name, const std::string& count, size_t raw_count,
                           const std::string& raws, const char* more) {
  return std::string("extern \"C\" __global__ void __launch_bounds__(256) ") + name +
         "(const __grid_constant__ catena::jit::UserArgs<" + count +
         "> _kept, const __grid_constant__ catena::jit::UserArgs<" + count +
         "> _reduced, _Reduced* _partial, " + more + raws_parameter(raw_count) + ") {\n" + kWait +
         "  __shared__ _Reduced _values[256];\n  __shared__ bool _filled[256];\n" + raws;
}

// Folds the values of the threads that share a result; they are the threads _column + _lane *
// _width.
const char* fold_block() {
  return "    _values[threadIdx.x] = _value;\n    _filled[threadIdx.x] = _any;\n"
         "    __syncthreads();\n"
         "    for (int _distance = _lanes / 2; _distance > 0; _distance /= 2) {\n"
         "      const int _other = threadIdx.x + _distance * _width;\n"
         "      if (_lane < _distance && _filled[_other]) _values[threadIdx.x] = "
         "_fold(_values[threadIdx.x], _values[_other]);\n"
         "      __syncthreads();\n    }\n";
}

// The post-map of result _i: its outputs are declared before it and stored after it.
std::string finish(const ReductionKernel::Definition& kernel,
                   const std::vector<UserParameter>& outputs) {
  std::string text =
      "      catena::int64_t _at[sizeof(_kept.value) / 8];\n"
      "      catena::jit::user_offsets(_kept, _i, _at);\n"
      "      const _Reduced a = _values[threadIdx.x];\n";
  for (const UserParameter& p : outputs)
    text += "      " + seen_type(p.dtype) + " " + p.name + ";\n";
  text += user_code(kernel.name + " post-map", kernel.post_map + ";");
  for (size_t k = 0; k < outputs.size(); ++k) {
    const std::string stored = stored_type(outputs[k].dtype), number = std::to_string(k);
    text += "      catena::jit::user_place<" + stored + ">(_kept, " + number + ", _at[" + number +
            "]) = catena::jit::convert<" + stored + ">(" + outputs[k].name + ");\n";
  }
  return text;
}

}  // namespace

int reduced_bytes(const ReductionKernel::Definition& kernel, Dtype first_output) {
  const std::string type = reduced_type(kernel, first_output);
  const auto dtype = find_dtype(&DtypeRow::kernel_type, type);
  return dtype ? static_cast<int>(itemsize(*dtype)) : 0;
}

namespace {

// The parts of a reduction's text that come from its arguments and rules.
struct ReductionParts {
  std::string raws;      // declarations of raw arguments
  std::string batches;   // arrays of eight elements of each input
  std::string loads;     // element _e into place _u of the batches
  std::string fours;     // the run of four from element _e on, of each input
  std::string unpacked;  // these into the batches
  std::string names;     // element _u of the batches under the user's names
  std::string count;     // of operands
  size_t raw_count = 0;
  std::string begin;  // _value and _any before the first element
  std::string add;    // _mapped to _value
};

ReductionParts reduction_parts(const ReductionKernel::Definition& kernel, size_t outputs,
                               const std::vector<UserParameter>& inputs) {
  ReductionParts parts;
  size_t operands = outputs;
  for (const UserParameter& p : inputs) {
    const std::string stored = stored_type(p.dtype), number = std::to_string(operands);
    if (p.raw) {
      parts.raws += "  const catena::jit::RawArray<" + stored + "> " + p.name + "(_raws.array[" +
                    std::to_string(parts.raw_count++) + "]);\n";
      continue;
    }
    parts.batches += "        " + seen_type(p.dtype) + " _batch" + number + "[8];\n";
    parts.loads += "            _batch" + number + "[_u] = " +
                   load(p, operands, "_kept", "_at[" + number + "] + _offset[" + number + "]") +
                   ";\n";
    parts.fours += "            const auto _four" + number + " = catena::jit::user_load_four<" +
                   stored + ">(_kept, " + number + ", _at[" + number + "], _e);\n";
    parts.unpacked += "#pragma unroll\n            for (int _w = 0; _w < 4; ++_w) _batch" + number +
                      "[_v * 4 + _w] = catena::jit::widen(_four" + number + ".value[_w]);\n";
    parts.names +=
        "            const " + seen_type(p.dtype) + " " + p.name + " = _batch" + number + "[_u];\n";
    ++operands;
  }
  parts.count = std::to_string(operands);
  const bool start = !kernel.identity.empty();
  parts.begin = "    _Reduced _value" +
                (start ? " = (_Reduced)(" + kernel.identity + ")" : std::string()) +
                ";\n    bool _any = " + (start ? "true" : "false") + ";\n";
  parts.add = start ? "_value = _fold(_value, _mapped);\n"
                    : "if (_any) _value = _fold(_value, _mapped);\n"
                      "            else { _value = _mapped; _any = true; }\n";
  return parts;
}

// Element _u of the batches, _o elements after _r, to _value.
std::string element_text(const ReductionKernel::Definition& kernel, const ReductionParts& parts) {
  return "            const long long _j = (_r + _o) * _kept.size + _i;\n" +
         (kernel.old_form ? "            const long long i = _j;\n" : std::string()) + parts.names +
         "            const _Reduced _mapped = (_Reduced)(\n" +
         user_code(kernel.name + " map", kernel.map) + ");\n            " + parts.add;
}

// A thread's elements from _begin to _end of the result at _at, eight at a time. With _wide it
// reads runs of four while the tile is whole, otherwise single elements. Whole tiles have a
// separate loop, because a bounds check for each element costs more than what most maps do with it.
std::string tile_loop(const ReductionKernel::Definition& kernel, const ReductionParts& parts) {
  const std::string element = element_text(kernel, parts);
  return "      for (long long _r = _begin; _r < _end; _r += 8 * _lanes) {\n" + parts.batches +
         "        const int _left = _end - _r < 8 * _lanes ? (int)(_end - _r) : 8 * _lanes;\n"
         "        if (_wide && _left == 8 * _lanes) {\n"
         "#pragma unroll\n          for (int _v = 0; _v < 2; ++_v) {\n"
         "            const long long _e = _r + (_v * _lanes + _lane) * 4;\n" +
         parts.fours + parts.unpacked +
         "          }\n"
         "#pragma unroll\n          for (int _u = 0; _u < 8; ++_u) {\n"
         "            const int _o = ((_u / 4) * _lanes + _lane) * 4 + _u % 4;\n" +
         element +
         "          }\n        } else {\n"
         "#pragma unroll\n          for (int _u = 0; _u < 8; ++_u) {\n"
         "            const long long _e = _r + _u * _lanes + _lane;\n"
         "            if (_e >= _end) break;\n            catena::int64_t _offset[" +
         parts.count + "];\n            catena::jit::user_offsets(_reduced, _e, _offset);\n" +
         parts.loads +
         "          }\n"
         "#pragma unroll\n          for (int _u = 0; _u < 8; ++_u) {\n"
         "            const int _o = _u * _lanes + _lane;\n"
         "            if (_o >= _left) break;\n" +
         element + "          }\n        }\n      }\n";
}

std::string reduce_kernel(const ReductionKernel::Definition& kernel,
                          const std::vector<UserParameter>& outputs, const ReductionParts& parts) {
  return reduction_head("catena_user_reduce", parts.count, parts.raw_count, parts.raws,
                        "long long _per_split, int _width, bool _wide") +
         "  const int _lanes = blockDim.x / _width, _lane = threadIdx.x / _width;\n"
         "  const int _column = threadIdx.x % _width;\n"
         "  const long long _begin = blockIdx.y * _per_split;\n"
         "  const long long _end = _begin + _per_split < _reduced.size ? _begin + _per_split : "
         "_reduced.size;\n"
         "  for (long long _base = (long long)blockIdx.x * _width; _base < _kept.size; _base += "
         "(long long)gridDim.x * _width) {\n"
         "    const long long _i = _base + _column;\n" +
         parts.begin + "    if (_i < _kept.size) {\n      catena::int64_t _at[" + parts.count +
         "];\n"
         "      catena::jit::user_offsets(_kept, _i, _at);\n" +
         tile_loop(kernel, parts) + "    }\n" + fold_block() +
         "    if (_lane == 0 && _i < _kept.size) {\n"
         "      if (gridDim.y > 1) {\n"
         "        _partial[(long long)blockIdx.y * _kept.size + _i] = _values[threadIdx.x];\n"
         "      } else {\n" +
         finish(kernel, outputs) + "      }\n    }\n    __syncthreads();\n  }\n}\n";
}

// Combines the partial results of all splits.
std::string finish_kernel(const ReductionKernel::Definition& kernel,
                          const std::vector<UserParameter>& outputs, const ReductionParts& parts) {
  return reduction_head("catena_user_finish", parts.count, parts.raw_count, parts.raws,
                        "int _splits") +
         "  const int _width = 1, _lanes = blockDim.x, _lane = threadIdx.x;\n"
         "  for (long long _i = blockIdx.x; _i < _kept.size; _i += gridDim.x) {\n" +
         parts.begin +
         "    for (int _s = _lane; _s < _splits; _s += _lanes) {\n"
         "      const _Reduced _mapped = _partial[(long long)_s * _kept.size + _i];\n            " +
         parts.add + "    }\n" + fold_block() + "    if (_lane == 0) {\n" +
         finish(kernel, outputs) + "    }\n    __syncthreads();\n  }\n}\n";
}

}  // namespace

std::string user_reduction_source(const ReductionKernel::Definition& kernel,
                                  const std::vector<UserParameter>& outputs,
                                  const std::vector<UserParameter>& inputs, UserLetters letters) {
  const ReductionParts parts = reduction_parts(kernel, outputs.size(), inputs);
  return head(letters, kernel.preamble) + "typedef " + reduced_type(kernel, outputs[0].dtype) +
         " _Reduced;\n__device__ __forceinline__ _Reduced _fold(_Reduced a, _Reduced b) { return "
         "(_Reduced)(\n" +
         user_code(kernel.name + " reduce", kernel.reduce) + "); }\n" +
         reduce_kernel(kernel, outputs, parts) + finish_kernel(kernel, outputs, parts);
}

}  // namespace catena::jit
