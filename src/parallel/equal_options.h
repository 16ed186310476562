// Whether all ranks give an optimizer the same options.
#pragma once

#include "catena/comm/communicator.h"
#include "catena/parallel/bucket_options.h"

namespace catena::parallel {

// Collective over host memory: ValueError on all ranks, with the first option that differs and who
// gave what, unless the options are equal; the communicator has then failed, as the job's report
// says with the rank that differs from all others, if there is one. `who` begins the text.
void check_equal_options(Communicator& comm, const BucketOptions& options, const char* who);

}  // namespace catena::parallel
