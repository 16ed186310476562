// Tables of loops that belong to one family alone, beside the common ones of tables.h: a change to
// them compiles the objects of the family. Like tables.h it must not bring in any inline function.
//
// A family declares its table in a header of this folder, with the function that fills it,
//   struct PoolingLoops { ... };
//   const PoolingLoops& pooling_loops();
//   CATENA_DECLARE_LOOPS(PoolingLoops, fill_pooling)
// defines fill_pooling in a source of this folder, which is compiled for each level, in the
// namespace catena::host::CATENA_ISA, and chooses the table where it uses it:
//   const PoolingLoops& pooling_loops() {
//     static const PoolingLoops table = CATENA_LOOPS_OF_PROCESSOR(PoolingLoops, fill_pooling);
//     return table;
//   }
#pragma once

namespace catena::host {

// The level of tables() in tables.h: 2, 3 or 4. DeviceError if this build has none for the
// processor.
int level_of_tables();

#define CATENA_DECLARE_LOOPS(Table, fill) \
  namespace v2 {                          \
  void fill(Table& table);                \
  }                                       \
  namespace v3 {                          \
  void fill(Table& table);                \
  }                                       \
  namespace v4 {                          \
  void fill(Table& table);                \
  }

// The levels that this build has.
#ifdef CATENA_HAVE_ISA_v2
#define CATENA_IF_V2(...) __VA_ARGS__
#else
#define CATENA_IF_V2(...)
#endif
#ifdef CATENA_HAVE_ISA_v3
#define CATENA_IF_V3(...) __VA_ARGS__
#else
#define CATENA_IF_V3(...)
#endif
#ifdef CATENA_HAVE_ISA_v4
#define CATENA_IF_V4(...) __VA_ARGS__
#else
#define CATENA_IF_V4(...)
#endif

#define CATENA_LOOPS_OF_PROCESSOR(Table, fill)     \
  [] {                                             \
    Table table{};                                 \
    const int level = level_of_tables();           \
    CATENA_IF_V2(if (level == 2) v2::fill(table);) \
    CATENA_IF_V3(if (level == 3) v3::fill(table);) \
    CATENA_IF_V4(if (level == 4) v4::fill(table);) \
    return table;                                  \
  }()

}  // namespace catena::host
