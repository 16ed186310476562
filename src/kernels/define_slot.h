// CATENA_DEFINE_SLOT(copy) defines the slot that a header of catena/kernels declares.
#pragma once

#define CATENA_DEFINE_SLOT(slot_name) decltype(slot_name) slot_name(#slot_name);
