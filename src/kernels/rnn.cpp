#include "catena/kernels/rnn.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(lstm_cell)
CATENA_DEFINE_SLOT(lstm_cell_grad)
CATENA_DEFINE_SLOT(lstm)
CATENA_DEFINE_SLOT(lstm_grad)

}  // namespace catena::kernels
