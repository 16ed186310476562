// Checks whether lambdas of users' kernels, for arrays of a CPU, fit the kernel's parameters.
#include "array/user_kernels/kernel_compiler.h"

namespace catena {

namespace {

KernelParameter host_parameter(Dtype dtype, bool raw, size_t number) {
  return {raw, 0, dtype, "argument" + std::to_string(number + 1)};
}

// Whether a lambda's parameter is compatible with a parameter of the text.
void check_host_parameter(const std::string& who, const KernelParameter& parameter, Dtype dtype,
                          bool raw, bool output, bool is_output) {
  CATENA_CHECK(ValueError, raw == parameter.raw, who, ": on_cpu: parameter ", parameter.name,
               parameter.raw ? " is raw; the lambda must take a RawView"
                             : " is not raw; the lambda takes a RawView");
  CATENA_CHECK(ValueError, raw || output == is_output, who, ": on_cpu: parameter ", parameter.name,
               is_output ? " is an output; the lambda must take a reference"
                         : " is an input; the lambda must take a value");
  CATENA_CHECK(ValueError, parameter.letter != 0 || parameter.dtype == dtype, who,
               ": on_cpu: parameter ", parameter.name, " is ", parameter.dtype,
               "; the lambda takes ", dtype);
}

}  // namespace

ElementwiseKernel ElementwiseKernel::of_host(std::shared_ptr<const detail::HostElementwise> host,
                                             std::string name) {
  auto definition = std::make_shared<Definition>();
  definition->name = std::move(name);
  for (const detail::HostParameter& p : host->parameters) {
    const size_t number = definition->inputs.size() + definition->outputs.size();
    CATENA_CHECK(ValueError, p.output || definition->outputs.empty(), definition->name,
                 ": the lambda's references (outputs) must come behind its values (inputs)");
    (p.output ? definition->outputs : definition->inputs)
        .push_back(host_parameter(p.dtype, p.raw, number));
  }
  definition->host.push_back(std::move(host));
  return ElementwiseKernel(std::shared_ptr<const Definition>(std::move(definition)));
}

ElementwiseKernel ElementwiseKernel::with_host(
    std::shared_ptr<const detail::HostElementwise> host) const {
  auto definition = std::make_shared<Definition>(*definition_);
  const size_t inputs = definition->inputs.size(), all = inputs + definition->outputs.size();
  CATENA_CHECK(ValueError, host->parameters.size() == all, definition->name,
               ": on_cpu: the lambda has ", host->parameters.size(),
               " inputs and outputs, the kernel ", all);
  for (size_t k = 0; k < all; ++k) {
    const detail::HostParameter& p = host->parameters[k];
    check_host_parameter(definition->name,
                         k < inputs ? definition->inputs[k] : definition->outputs[k - inputs],
                         p.dtype, p.raw, p.output, k >= inputs);
  }
  definition->host.push_back(std::move(host));
  return ElementwiseKernel(std::shared_ptr<const Definition>(std::move(definition)));
}

ReductionKernel ReductionKernel::of_host(std::shared_ptr<const detail::HostReduction> host,
                                         std::string name) {
  auto definition = std::make_shared<Definition>();
  definition->name = std::move(name);
  definition->identity = "given";
  for (const Dtype d : host->inputs)
    definition->inputs.push_back(host_parameter(d, false, definition->inputs.size()));
  for (const Dtype d : host->outputs)
    definition->outputs.push_back(host_parameter(d, false, definition->outputs.size()));
  definition->host.push_back(std::move(host));
  return ReductionKernel(std::shared_ptr<const Definition>(std::move(definition)));
}

ReductionKernel ReductionKernel::with_host(
    std::shared_ptr<const detail::HostReduction> host) const {
  auto definition = std::make_shared<Definition>(*definition_);
  CATENA_CHECK(ValueError, !definition->old_form, definition->name,
               ": on_cpu: a reduction of one list of C parameters indexes its arrays itself and"
               " takes no lambdas; give cuda::reduce the inputs and outputs as two lists");
  CATENA_CHECK(ValueError,
               host->inputs.size() == definition->inputs.size() &&
                   host->outputs.size() == definition->outputs.size(),
               definition->name, ": on_cpu: the lambdas have ", host->inputs.size(), " inputs and ",
               host->outputs.size(), " outputs, the kernel ", definition->inputs.size(), " and ",
               definition->outputs.size());
  for (size_t k = 0; k < host->inputs.size(); ++k)
    check_host_parameter(definition->name, definition->inputs[k], host->inputs[k], false, false,
                         false);
  for (size_t k = 0; k < host->outputs.size(); ++k)
    check_host_parameter(definition->name, definition->outputs[k], host->outputs[k], false, true,
                         true);
  definition->host.push_back(std::move(host));
  return ReductionKernel(std::shared_ptr<const Definition>(std::move(definition)));
}

}  // namespace catena
