// The table of test_oracle: all array routines.
#include "oracle/oracle.h"

namespace catena::oracle {

Routines all_routines() {
  Routines routines;
  add_creation(routines);
  add_elementwise(routines);
  add_everyday(routines);
  add_narrow(routines);
  add_numerics(routines);
  add_float_parts(routines);
  add_indexing(routines);
  add_linalg(routines);
  add_manipulation(routines);
  add_reduction(routines);
  add_sorting(routines);
  add_views(routines);
  return routines;
}

}  // namespace catena::oracle
