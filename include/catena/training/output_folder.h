// The folder in which a run leaves its files.
#pragma once

#include <string>

namespace catena::training {

// Creates the folder with its parents and makes sure that files can be written there, so that a run
// fails before it trains and not after. Throws IoError with the path and the system's reason.
void prepare_output_folder(const std::string& path);

}  // namespace catena::training
