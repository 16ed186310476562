// Copies for other families of the CPU.
#pragma once

namespace catena {

struct CopyCall;
struct FillCall;

namespace host {

// As catena/kernels/copy.h says of the slots.
void copy(const CopyCall& call);
void fill(const FillCall& call);

}  // namespace host
}  // namespace catena
