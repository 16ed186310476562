// Reductions for other families of the CPU.
#pragma once

namespace catena {

struct ArgReduceCall;
struct ReduceCall;

namespace host {

// As catena/kernels/reduce.h says of the slots.
void reduce(const ReduceCall& call);
void arg_reduce(const ArgReduceCall& call);

}  // namespace host
}  // namespace catena
