// Texts of users' kernels. See user_source.h.
#include "backends/cuda/jit/compile/user_source.h"

#include "backends/cuda/jit/compile/source.h"

namespace catena::jit {

namespace {

// The type user code sees: 16-bit floats compute in float.
std::string seen_type(Dtype d) { return is_float(d) && itemsize(d) == 2 ? "float" : type_name(d); }
std::string stored_type(Dtype d) {
  return is_float(d) && itemsize(d) == 2 ? std::string("catena::jit::") + type_name(d)
                                         : type_name(d);
}
bool is_narrow(Dtype d) { return is_float(d) && itemsize(d) == 2; }

// Common texts, the placeholder types and the preamble. #line makes the compiler name the user's
// own lines.
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

std::string load(const UserParameter& p, size_t number, const char* args,
                 const std::string& offset) {
  return "catena::jit::widen(catena::jit::user_load<" + stored_type(p.dtype) + ">(" + args + ", " +
         std::to_string(number) + ", " + offset + "))";
}

}  // namespace

std::string user_elementwise_source(const ElementwiseKernel::Definition& kernel,
                                    const std::vector<UserParameter>& outputs,
                                    const std::vector<UserParameter>& inputs, UserLetters letters) {
  std::string raws, loads, stores;
  size_t operands = 0, raw_count = 0;
  const auto add = [&](const UserParameter& p, bool is_output) {
    const std::string number = std::to_string(operands);
    if (p.raw) {
      raws += "  const catena::jit::RawArray<" + stored_type(p.dtype) + "> " + p.name +
              "(_raws.array[" + std::to_string(raw_count++) + "]);\n";
      return;
    }
    const std::string place = "catena::jit::user_place<" + stored_type(p.dtype) + ">(_args, " +
                              number + ", _offset[" + number + "])";
    if (!is_output) {
      loads += "    const " + seen_type(p.dtype) + " " + p.name + " = " +
               load(p, operands, "_args", "_offset[" + number + "]") + ";\n";
    } else if (is_narrow(p.dtype)) {
      loads += "    float " + p.name + " = catena::jit::widen(" + place + ");\n";
      stores += "    " + place + " = catena::jit::convert<" + stored_type(p.dtype) + ">(" + p.name +
                ");\n";
    } else {
      loads += "    " + seen_type(p.dtype) + "& " + p.name + " = " + place + ";\n";
    }
    ++operands;
  };
  for (const UserParameter& p : outputs) add(p, true);
  for (const UserParameter& p : inputs) add(p, false);
  const std::string count = std::to_string(std::max<size_t>(operands, 1)),
                    raw_array = std::to_string(std::max<size_t>(raw_count, 1));
  std::string text = head(letters, kernel.options.preamble);
  text +=
      "extern \"C\" __global__ void __launch_bounds__(128) catena_user(const __grid_constant__ "
      "catena::jit::UserArgs<" +
      count + "> _args, const __grid_constant__ catena::jit::UserRaws<" + raw_array +
      "> _raws) {\n" +
      "  const long long n = _args.size;\n  const catena::jit::UserIndex _ind = {n};\n" + raws;
  if (!kernel.options.loop_prep.empty())
    text += user_code("loop_prep", kernel.options.loop_prep + ";");
  text +=
      "  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long "
      "long)gridDim.x * blockDim.x) {\n"
      "    catena::int64_t _offset[" +
      count + "];\n    catena::jit::user_offsets(_args, i, _offset);\n" + loads;
  text += user_code(kernel.name, kernel.operation + ";") + stores + "  }\n";
  if (!kernel.options.after_loop.empty())
    text += user_code("after_loop", kernel.options.after_loop + ";");
  return text + "}\n";
}

std::string user_reduction_source(const ReductionKernel::Definition& kernel,
                                  const UserParameter& output,
                                  const std::vector<UserParameter>& inputs, UserLetters letters) {
  const std::string count = std::to_string(1 + inputs.size());
  const std::string type =
      kernel.reduce_type.empty() ? seen_type(output.dtype) : kernel.reduce_type;
  std::string loads;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::string number = std::to_string(k + 1);
    loads += "      const " + seen_type(inputs[k].dtype) + " " + inputs[k].name + " = " +
             load(inputs[k], k + 1, "_kept", "_at[" + number + "] + _offset[" + number + "]") +
             ";\n";
  }
  const bool start = !kernel.identity.empty();
  std::string text = head(letters, kernel.preamble);
  text += "typedef " + type +
          " _Reduced;\n__device__ __forceinline__ _Reduced _fold(_Reduced a, _Reduced b) { return "
          "(_Reduced)(\n" +
          user_code(kernel.name + " reduce", kernel.reduce) + "); }\n";
  text +=
      "extern \"C\" __global__ void __launch_bounds__(256) catena_user_reduce(const "
      "__grid_constant__ catena::jit::UserArgs<" +
      count + "> _kept, const __grid_constant__ catena::jit::UserArgs<" + count +
      "> _reduced) {\n"
      "  __shared__ _Reduced _values[256];\n  __shared__ bool _filled[256];\n"
      "  for (long long _i = blockIdx.x; _i < _kept.size; _i += gridDim.x) {\n"
      "    catena::int64_t _at[" +
      count + "], _offset[" + count +
      "];\n    catena::jit::user_offsets(_kept, _i, _at);\n"
      "    _Reduced _value" +
      (start ? " = (_Reduced)(" + kernel.identity + ")" : std::string()) +
      ";\n    bool _any = " + (start ? "true" : "false") +
      ";\n"
      "    for (long long _j = threadIdx.x; _j < _reduced.size; _j += blockDim.x) {\n"
      "      catena::jit::user_offsets(_reduced, _j, _offset);\n" +
      loads + "      const _Reduced _mapped = (_Reduced)(\n" +
      user_code(kernel.name + " map", kernel.map) +
      ");\n"
      "      if (_any) _value = _fold(_value, _mapped);\n      else { _value = _mapped; _any = "
      "true; }\n    }\n"
      "    _values[threadIdx.x] = _value;\n    _filled[threadIdx.x] = _any;\n    __syncthreads();\n"
      "    for (int _distance = blockDim.x / 2; _distance > 0; _distance /= 2) {\n"
      "      if (threadIdx.x < _distance && _filled[threadIdx.x + _distance]) {\n"
      "        _values[threadIdx.x] = _fold(_values[threadIdx.x], _values[threadIdx.x + "
      "_distance]);\n      }\n"
      "      __syncthreads();\n    }\n"
      "    if (threadIdx.x == 0) {\n      const _Reduced a = _values[0];\n      " +
      seen_type(output.dtype) + " " + output.name + ";\n" +
      user_code(kernel.name + " post-map", kernel.post_map + ";") +
      "      catena::jit::user_place<" + stored_type(output.dtype) +
      ">(_kept, 0, _at[0]) = catena::jit::convert<" + stored_type(output.dtype) + ">(" +
      output.name + ");\n    }\n    __syncthreads();\n  }\n}\n";
  return text;
}

}  // namespace catena::jit
