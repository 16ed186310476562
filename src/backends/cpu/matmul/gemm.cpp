// Cuts products into the tiles of loops/products.cpp, and into parts for threads. See gemm.h.
#include "backends/cpu/matmul/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "backends/cpu/loops/tables.h"
#include "backends/cpu/runtime/parallel.h"

namespace catena::host {

namespace {

// Numbers of multiplications and additions of floats, for a whole product and for one thread's
// part. Below them another thread costs too much (docs/decisions.md, "Products on the CPU").
constexpr int64_t kParallelProduct = int64_t{3} << 18, kPartOfProduct = int64_t{3} << 17;
// A product with a vector takes as long as it takes to read the matrix: so many times as long as
// other products of as many multiplications.
constexpr int64_t kVectorWork = 4;

// The depth of a product of floats that takes as long as one of T.
template <class T>
int64_t depth_in_floats(int64_t k) {
  return k * int64_t(sizeof(T) / sizeof(float));
}

constexpr int64_t kDepth = 384;  // of a packed block of float; half of it for double
// Rows of a that are used together: they stay in the second-level cache beside the lines that are
// fetched from b. Up to kOneBlock rows are one block, because then b need not be kept packed.
constexpr int64_t kBlockRows = 224, kOneBlock = 448;
constexpr int64_t kBlockColumns = 2048;  // of b, if several blocks of rows use them
constexpr int64_t kWriting = 160, kSecondCache = int64_t{1} << 20;  // lines; bytes
constexpr int64_t kFewDots = 12, kDotDepth = 2048;  // rows or columns; elements that stay in caches

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

const GemmLoops<float>& loops_of(float) { return tables().gemm_float; }
const GemmLoops<double>& loops_of(double) { return tables().gemm_double; }

// A thread's memory for packed blocks, kept for the next product.
class Scratch {
 public:
  template <class T>
  T* get(int64_t count) {
    const size_t bytes = (size_t(count) * sizeof(T) + 63) / 64 * 64;
    if (bytes > size_) {
      memory_.reset(std::aligned_alloc(64, bytes));
      if (!memory_) throw std::bad_alloc();
      size_ = bytes;
    }
    return static_cast<T*>(memory_.get());
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t size_ = 0;
};

// `total` in equal parts of at most `most`; part i is from begin(i) to begin(i + 1).
struct Even {
  int64_t total, parts;
  Even(int64_t total, int64_t most) : total(total), parts(ceil_div(total, most)) {}
  int64_t begin(int64_t i) const { return total * i / parts; }
};

// One thread's part of a product; c is stored by rows.
template <class T>
class Part {
 public:
  explicit Part(const Gemm<T>& g)
      : g_(g),
        loops_(loops_of(T{})),
        unit_(2 * loops_.lanes),
        a_across_(g.k > 1 && g.a_column != 1),
        b_by_lines_(g.b_column == 1 || g.n == 1),
        pack_a_(ceil_div(g.n, unit_) > (a_across_ ? kAcrossPanels : kRowPanels)),
        pack_b_(g.m > 2 * loops_.rows && g.k > loops_.shallow && g.k * g.n > kSmallMatrix) {}

  void run() {
    const int64_t depth = kDepth * int64_t(sizeof(float)) / int64_t(sizeof(T));
    const int64_t blocks = ceil_div(g_.k, depth);
    const int64_t step = ceil_div(ceil_div(g_.k, blocks), loops_.lanes) * loops_.lanes;
    for (int64_t j = 0; j < g_.n; j += kBlockColumns) {
      const int64_t columns = std::min(kBlockColumns, g_.n - j);
      for (int64_t l = 0; l < g_.k; l += step) block(j, columns, l, std::min(step, g_.k - l));
    }
  }

 private:
  // Each panel of b uses a packed row of a. With few panels a is read unpacked. So is b if it is
  // used few times, or if the first-level cache or the registers hold it.
  static constexpr int64_t kAcrossPanels = 4, kRowPanels = 48, kSmallMatrix = 8192;

  const T* a_at(int64_t i, int64_t l) const { return g_.a + i * g_.a_row + l * g_.a_column; }
  const T* b_at(int64_t l, int64_t j) const { return g_.b + l * g_.b_row + j * g_.b_column; }

  void block(int64_t j, int64_t columns, int64_t l, int64_t depth) {
    if (g_.k <= loops_.shallow && !a_across_) return shallow(j, columns);
    // Tiles of little depth write more than they read, so a row of tiles is multiplied by all of b.
    if (depth <= kWriting && columns * depth * int64_t(sizeof(T)) <= kSecondCache)
      return along_rows(j, columns, l, depth);
    const Even rows(g_.m, g_.m <= kOneBlock ? kOneBlock : kBlockRows);
    // With one block of rows each panel of b is finished before the next one is packed.
    const bool one = rows.parts == 1;
    Right right = right_block(j, columns, l, depth, one ? 1 : ceil_div(columns, unit_));
    for (int64_t part = 0; part < rows.parts; ++part) {
      const int64_t first = rows.begin(part);
      const Even tiles(rows.begin(part + 1) - first, loops_.rows);
      if (pack_a_)
        for (int64_t t = 0; t < tiles.parts; ++t) pack_left(first, tiles, t, l, depth);
      for (int64_t p = 0; p * unit_ < columns; ++p) {
        const int64_t slot = one ? 0 : p;
        const bool packing = part == 0 && first_tile_packs(right, p);
        const Panel b = right_panel(right, slot, p, part == 0 && !packing);
        for (int64_t t = 0; t < tiles.parts; ++t) {
          const Ahead<T> ahead =
              next_panel(right, one ? 0 : p + 1, p + 1, part == 0, t, tiles.parts);
          if (packing && t == 0)
            first_tile(first, tiles, l, depth, right, slot, p, ahead);
          else
            tile(first, tiles, t, l, depth, b, ahead);
        }
      }
    }
  }
  // A result larger than the cache is written a few rows at a time. Writing panel by panel over all
  // rows would take five times as long.
  void shallow(int64_t j, int64_t columns) {
    const bool near = g_.m * columns * int64_t(sizeof(T)) <= kSecondCache;
    const Right right = right_block(j, columns, 0, g_.k, ceil_div(columns, unit_));
    const Even rows(g_.m, near ? g_.m : 2 * loops_.rows);
    for (int64_t part = 0; part < rows.parts; ++part) {
      const int64_t i = rows.begin(part), count = rows.begin(part + 1) - i;
      for (int64_t p = 0; p * unit_ < columns; ++p) {
        const Panel b = right_panel(right, p, p, part == 0);
        loops_.shallow_rows[b.width > loops_.lanes][g_.k - 1](count, a_at(i, 0), g_.a_row, b.data,
                                                              b.row, g_.c + i * g_.c_row + b.j,
                                                              g_.c_row, b.width, g_.accumulate);
      }
    }
  }
  void along_rows(int64_t j, int64_t columns, int64_t l, int64_t depth) {
    Right right = right_block(j, columns, l, depth, ceil_div(columns, unit_));
    const Even tiles(g_.m, loops_.rows);
    for (int64_t t = 0; t < tiles.parts; ++t) {
      if (pack_a_) pack_left(0, tiles, t, l, depth);
      for (int64_t p = 0; p * unit_ < columns; ++p)
        tile(0, tiles, t, l, depth, right_panel(right, p, p, t == 0),
             next_rows(tiles, t, p, l, depth));
    }
  }

  // Columns from j and lines from l of b. Their panels are packed into slots when they are first
  // used.
  struct Right {
    int64_t j, columns, l, depth, slot_size;
    T* slots;
  };
  Right right_block(int64_t j, int64_t columns, int64_t l, int64_t depth, int64_t slots) const {
    const int64_t size = depth * unit_ + loops_.lanes;
    return {j, columns, l, depth, size, b_scratch().template get<T>(size * slots)};
  }
  struct Panel {
    const T* data;
    int64_t row, j, width;
  };
  // The share of the rows of tile t + 1 to prefetch while tile t is multiplied by panel p. Rows
  // that fit the second-level cache need no prefetch.
  Ahead<T> next_rows(const Even& tiles, int64_t t, int64_t p, int64_t l, int64_t depth) const {
    const bool near = g_.m * g_.k * int64_t(sizeof(T)) <= kSecondCache;
    if (near || a_across_ || t + 1 == tiles.parts || p * unit_ >= depth) return {};
    const int64_t i = tiles.begin(t + 1);
    return {a_at(i, l + p * unit_), g_.a_row, tiles.begin(t + 2) - i};
  }
  // The t-th of `parts` shares of the lines from which panel p will be packed or read.
  Ahead<T> next_panel(const Right& r, int64_t slot, int64_t p, bool pack, int64_t t,
                      int64_t parts) const {
    if (p * unit_ >= r.columns) return {};
    const int64_t begin = r.depth * t / parts, count = r.depth * (t + 1) / parts - begin;
    if (pack_b_ && !pack) return {r.slots + slot * r.slot_size + begin * unit_, unit_, count};
    if (!b_by_lines_) return {};
    return {b_at(r.l + begin, r.j + p * unit_), g_.b_row, count};
  }
  Panel right_panel(const Right& r, int64_t slot, int64_t p, bool pack) const {
    const int64_t j = r.j + p * unit_, width = std::min(unit_, r.columns - p * unit_);
    const int64_t step = width > loops_.lanes ? unit_ : loops_.lanes;
    if (!pack_b_ && b_by_lines_ && width == step) return {b_at(r.l, j), g_.b_row, j, width};
    T* const to = r.slots + slot * r.slot_size;
    if (pack && b_by_lines_)
      loops_.pack_lines(b_at(r.l, j), g_.b_row, width, r.depth, to, step);
    else if (pack)
      loops_.pack_rows(b_at(r.l, j), g_.b_column, width, r.depth, to, step);
    return {to, step, j, width};
  }

  void pack_left(int64_t first, const Even& tiles, int64_t t, int64_t l, int64_t depth) {
    packed_a_ = a_scratch().template get<T>(tiles.total * depth + 2 * unit_);
    const int64_t i = tiles.begin(t), count = tiles.begin(t + 1) - i;
    T* const to = packed_a_ + i * depth;
    if (a_across_)
      loops_.pack_lines(a_at(first + i, l), g_.a_column, count, depth, to, count);
    else
      loops_.pack_rows(a_at(first + i, l), g_.a_row, count, depth, to, count);
  }

  struct Rows {
    const T* data;
    int64_t stride, count;
  };
  Rows left_rows(int64_t first, const Even& tiles, int64_t t, int64_t l, int64_t depth) const {
    const int64_t i = tiles.begin(t), count = tiles.begin(t + 1) - i;
    if (pack_a_) return {packed_a_ + i * depth, count, count};
    return {a_at(first + i, l), a_across_ ? g_.a_column : g_.a_row, count};
  }

  void tile(int64_t first, const Even& tiles, int64_t t, int64_t l, int64_t depth, const Panel& b,
            const Ahead<T>& ahead) const {
    const Rows a = left_rows(first, tiles, t, l, depth);
    loops_.tile[b.width > loops_.lanes][pack_a_ || a_across_][a.count - 1](
        depth, a.data, a.stride, b.data, b.row, g_.c + (first + tiles.begin(t)) * g_.c_row + b.j,
        g_.c_row, b.width, g_.accumulate || l > 0, ahead);
  }
  // Whether the first tile can pack panel p: the panel is whole, and b lies by lines. Only tiles of
  // more than half of loops_.rows rows can do so. All tiles are, for pack_b_ requires more than two
  // full tiles of rows, and Even shares them out evenly.
  bool first_tile_packs(const Right& r, int64_t p) const {
    return pack_b_ && b_by_lines_ && r.columns - p * unit_ >= unit_;
  }
  void first_tile(int64_t first, const Even& tiles, int64_t l, int64_t depth, const Right& r,
                  int64_t slot, int64_t p, const Ahead<T>& ahead) const {
    const Rows a = left_rows(first, tiles, 0, l, depth);
    const int64_t j = r.j + p * unit_;
    loops_.packing_tile[pack_a_ || a_across_][a.count - 1](
        depth, a.data, a.stride, b_at(l, j), g_.b_row, g_.c + first * g_.c_row + j, g_.c_row, unit_,
        g_.accumulate || l > 0, ahead, r.slots + slot * r.slot_size);
  }

  static Scratch& a_scratch() {
    thread_local Scratch scratch;
    return scratch;
  }
  static Scratch& b_scratch() {
    thread_local Scratch scratch;
    return scratch;
  }

  const Gemm<T>& g_;
  const GemmLoops<T>& loops_;
  const int64_t unit_;  // columns of a panel
  const bool a_across_, b_by_lines_, pack_a_, pack_b_;
  T* packed_a_ = nullptr;
};

// The same product, written as c^T = b^T a^T.
template <class T>
Gemm<T> transposed(const Gemm<T>& g) {
  return {g.n,        g.m,     g.k, g.b,        g.b_column, g.b_row,     g.a,
          g.a_column, g.a_row, g.c, g.c_column, g.c_row,    g.accumulate};
}

// A row of the result. Memory is read once, b in its storage order.
template <class T>
void vector_product(const Gemm<T>& g) {
  std::unique_ptr<T[]> copy;
  const T* x = g.a;
  if (g.a_column != 1 && g.k > 1) {
    copy.reset(new T[size_t(g.k)]);
    for (int64_t l = 0; l < g.k; ++l) copy[size_t(l)] = g.a[l * g.a_column];
    x = copy.get();
  }
  const GemmLoops<T>& loops = loops_of(T{});
  const int64_t depth = kVectorWork * depth_in_floats<T>(g.k);
  const int threads =
      parts_of_product(1, g.n, depth, loops.lanes, threads_for(g.n * depth)).columns;
  parallel_ranges(g.n, loops.lanes, threads, [&](int64_t begin, int64_t end) {
    if (g.b_column == 1)
      loops.combine(g.k, end - begin, g.b + begin, g.b_row, x, g.c + begin, g.accumulate);
    else
      loops.dots(end - begin, g.k, g.b + begin * g.b_column, g.b_column, x, g.c + begin,
                 g.accumulate);
  });
}

// Whether to compute the product as dot products of rows of a and columns of b, which are both
// contiguous along the depth. With so few rows or columns tiles would leave parts of their vectors
// empty.
template <class T>
bool few_dots(const Gemm<T>& g) {
  return g.a_column == 1 && g.b_row == 1 && std::min(g.m, g.n) <= kFewDots &&
         g.k >= 16 * loops_of(T{}).lanes;
}

// Rows [begin, end) of c, which has more rows than columns.
template <class T>
void dot_tiles(const Gemm<T>& g, int64_t begin, int64_t end) {
  const GemmLoops<T>& loops = loops_of(T{});
  const Even rows(end - begin, loops.dot_side), columns(g.n, loops.dot_side);
  for (int64_t l = 0; l < g.k; l += kDotDepth)
    for (int64_t r = 0; r < rows.parts; ++r)
      for (int64_t s = 0; s < columns.parts; ++s) {
        const int64_t i = begin + rows.begin(r), j = columns.begin(s);
        const int64_t m = begin + rows.begin(r + 1) - i, n = columns.begin(s + 1) - j;
        loops.dot_tile[m - 1][n - 1](std::min(kDotDepth, g.k - l), g.a + i * g.a_row + l, g.a_row,
                                     g.b + j * g.b_column + l, g.b_column,
                                     g.c + i * g.c_row + j * g.c_column, g.c_row, g.c_column,
                                     g.accumulate || l > 0);
      }
}

template <class T>
void dot_product(const Gemm<T>& g) {
  if (g.m < g.n) return dot_product(transposed(g));
  const int64_t depth = depth_in_floats<T>(g.k);
  const int threads = parts_of_product(g.m, g.n, depth, g.n, threads_for(g.m * g.n * depth)).rows;
  parallel_ranges(g.m, loops_of(T{}).dot_side, threads,
                  [&](int64_t begin, int64_t end) { dot_tiles(g, begin, end); });
}

template <class T>
void parallel_product(const Gemm<T>& g) {
  const int64_t unit = 2 * loops_of(T{}).lanes;
  const int64_t depth = depth_in_floats<T>(g.k);
  const Parts parts = parts_of_product(g.m, g.n, depth, unit, threads_for(g.m * g.n * depth));
  const int64_t panels = ceil_div(g.n, unit);
  parallel_for(parts.count(), parts.count(), [&](int64_t part) {
    const int64_t i = part / parts.columns, j = part % parts.columns;
    const int64_t top = g.m * i / parts.rows, bottom = g.m * (i + 1) / parts.rows;
    const int64_t left = panels * j / parts.columns * unit,
                  right = std::min(g.n, panels * (j + 1) / parts.columns * unit);
    if (top == bottom || left >= right) return;
    Gemm<T> own = g;
    own.m = bottom - top;
    own.n = right - left;
    own.a += top * g.a_row;
    own.b += left * g.b_column;
    own.c += top * g.c_row + left;
    Part<T>(own).run();
  });
}

template <class T>
void run(const Gemm<T>& g) {
  const bool by_rows = g.c_column == 1 || g.n == 1;
  if (g.n == 1 && g.m > 1 && g.c_row == 1) return vector_product(transposed(g));
  if (!by_rows) return run(transposed(g));
  if (g.m == 1 && (g.b_column == 1 || g.b_row == 1 || g.k == 1)) return vector_product(g);
  if (few_dots(g)) return dot_product(g);
  parallel_product(g);
}

}  // namespace

Parts parts_of_product(int64_t m, int64_t n, int64_t k, int64_t unit, int threads) {
  const double work = double(m) * double(n) * double(k);
  if (threads <= 1 || work < double(kParallelProduct)) return {1, 1};
  threads = int(std::min<double>(threads, work / double(kPartOfProduct)));
  // The largest part decides. Each part packs its panels of b, which costs as much as several
  // multiplications for each element; its rows of a often stay as they are. Threads that write to
  // the same rows cost some per cent. (Constants from two threads of a Xeon.)
  constexpr double kPackB = 10, kReadA = 2, kSharedRows = 1.03;
  Parts best{1, 1};
  double least = 0;
  for (int rows = 1; rows <= threads; ++rows) {
    const Parts parts{rows, threads / rows};
    const double height = double(ceil_div(m, parts.rows)),
                 width = double(ceil_div(ceil_div(n, unit), parts.columns) * unit);
    const double cost =
        height * width * (parts.columns > 1 ? kSharedRows : 1) + kPackB * width + kReadA * height;
    if (rows > 1 && cost >= least) continue;
    least = cost;
    best = parts;
  }
  return best;
}

void gemm(const Gemm<float>& g) { run(g); }
void gemm(const Gemm<double>& g) { run(g); }

}  // namespace catena::host
