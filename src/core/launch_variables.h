// Variables in which launchers give a process its rank and the size of its job.
#pragma once

#include <initializer_list>

namespace catena {

// Variables of the environment, of which the first that is set counts.
inline constexpr std::initializer_list<const char*> kSizeVariables{
    "CATENA_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE"};
inline constexpr std::initializer_list<const char*> kRankVariables{
    "CATENA_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

}  // namespace catena
