// Definitions of the slots that the headers of catena/kernels declare, as the build lists them.
#define CATENA_ITEM(slot) decltype(catena::kernels::slot) catena::kernels::slot(#slot);
#include "lists/slots.inc"
#undef CATENA_ITEM
