// Tables of loops that belong to one family alone, beside the common ones of tables.h: a change to
// them compiles the objects of the family. Like tables.h it must not bring in any inline function.
//
// A family declares its table in a header of this folder,
//   struct PoolingLoops { ... };
//   using PoolingTables = LoopsOfFloats<PoolingLoops>;
//   CATENA_DECLARE_LOOPS(PoolingTables)
// makes it in a source of this folder, which is compiled for each level,
//   template <>
//   PoolingTables CATENA_ISA::make_loops() { return {...}; }
// and finds that of the processor by common/loops_of.h.
#pragma once

namespace catena::host {

// The level of tables() in tables.h: 2, 3 or 4. DeviceError if this build has none for the
// processor.
int level_of_tables();

// Loops over numbers of the types in which floats are computed.
template <template <class> class Loops>
struct LoopsByType {
  Loops<float> of_float;
  Loops<double> of_double;
};
// Loops over floats as they are stored.
template <class Loops>
struct LoopsOfFloats {
  Loops of_half, of_brain, of_float, of_double;
};

namespace v2 {
template <class Tables>
Tables make_loops();
}
namespace v3 {
template <class Tables>
Tables make_loops();
}
namespace v4 {
template <class Tables>
Tables make_loops();
}
#define CATENA_DECLARE_LOOPS(Tables) \
  template <>                        \
  Tables v2::make_loops();           \
  template <>                        \
  Tables v3::make_loops();           \
  template <>                        \
  Tables v4::make_loops();

}  // namespace catena::host
