// Stable sorting by unsigned keys, least significant byte first, on several threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "backends/cpu/runtime/parallel.h"

namespace catena::host {

// The next position for each byte value, of one thread.
struct RadixCounts {
  int64_t of[256];
};

// Item i of a buffer, and place i of one. Loads and stores are objects of few members that are
// passed by value, so that loops keep these in registers.
template <class Item>
struct FromBuffer {
  const Item* items;
  Item operator()(int64_t i) const { return items[i]; }
};
template <class Item>
struct ToBuffer {
  Item* items;
  void operator()(int64_t place, const Item& item) const { items[place] = item; }
};

// The pass of one byte, `shift` bits above the lowest of the keys KeyOf{}(item). totals: how many
// items have each value of that byte. Knows nothing of other passes, so that those between buffers
// are compiled once for all orders of the elements.
template <class Item, class KeyOf>
class RadixPass {
 public:
  RadixPass(int64_t n, int threads, int shift, const int64_t* totals)
      : n_(n), threads_(threads), shift_(shift), totals_(totals) {}

  template <class Load, class Put>
  [[gnu::noinline]] void run(Load load, Put put) const {
    if (threads_ == 1) {
      int64_t places[256], sum = 0;
      for (int d = 0; d < 256; ++d) {
        places[d] = sum;
        sum += totals_[d];
      }
      scatter(0, n_, load, put, places);
      return;
    }
    const std::unique_ptr<RadixCounts[]> counts(new RadixCounts[size_t(threads_)]());
    parallel_for(threads_, threads_, [&](int64_t t) {
      int64_t mine[256] = {};
      for (int64_t i = begin(t); i < begin(t + 1); ++i) ++mine[digit(load(i))];
      std::copy(mine, mine + 256, counts[size_t(t)].of);
    });
    count_to_places(counts.get());
    parallel_for(threads_, threads_, [&](int64_t t) {
      int64_t places[256];
      std::copy(counts[size_t(t)].of, counts[size_t(t)].of + 256, places);
      scatter(begin(t), begin(t + 1), load, put, places);
    });
  }

 private:
  int64_t begin(int64_t part) const { return n_ * part / threads_; }
  int digit(const Item& item) const { return int((KeyOf{}(item) >> shift_) & 255); }

  void count_to_places(RadixCounts* counts) const {
    int64_t sum = 0;
    for (int d = 0; d < 256; ++d) {
      for (int t = 0; t < threads_; ++t) {
        const int64_t count = counts[t].of[d];
        counts[t].of[d] = sum;
        sum += count;
      }
    }
  }

  template <class Load, class Put>
  [[gnu::noinline]] void scatter(int64_t first, int64_t last, Load load, Put put,
                                 int64_t* places) const {
    for (int64_t i = first; i < last; ++i) {
      const Item item = load(i);
      put(places[digit(item)]++, item);
    }
  }

  int64_t n_;
  int threads_, shift_;
  const int64_t* totals_;
};

// load(i) returns item i of the input, KeyOf{}(item) its key, of which the lowest kBytes bytes
// count, and store(place, item) writes it to its sorted position. Passes alternate between two
// buffers of n items and the last buffer is `first`, so `second` may be the memory that store()
// writes to. Bytes that are equal in all keys are skipped.
template <class Item, class KeyOf, int kBytes, class Load, class Store>
class RadixSort {
 public:
  RadixSort(int64_t n, int threads, const Load& load, const Store& store)
      : n_(n), threads_(threads), load_(load), store_(store) {}

  void run(Item* first, Item* second) {
    count_all();
    int bytes[kBytes], passes = 0;
    for (int b = 0; b < kBytes; ++b) {
      if (!constant(b)) bytes[passes++] = b;
    }
    if (passes == 0)
      store_all();
    else if (passes == 1)
      pass(bytes[0]).run(load_, store_);
    else if constexpr (kBytes > 1)
      run_passes(bytes, passes, first, second);
  }

 private:
  RadixPass<Item, KeyOf> pass(int byte) const { return {n_, threads_, byte * 8, total_[byte]}; }

  // Two passes or more: the first one loads, the last one stores, and those between alternate
  // between the buffers.
  void run_passes(const int* bytes, int passes, Item* first, Item* second) const {
    const Item* from = nullptr;
    for (int p = 0; p < passes; ++p) {
      Item* to = (passes - p) % 2 == 0 ? first : second;
      if (p == 0)
        pass(bytes[p]).run(load_, ToBuffer<Item>{to});
      else if (p == passes - 1)
        pass(bytes[p]).run(FromBuffer<Item>{from}, store_);
      else
        pass(bytes[p]).run(FromBuffer<Item>{from}, ToBuffer<Item>{to});
      from = to;
    }
  }

  void store_all() const {
    parallel_for(threads_, threads_, [&](int64_t t) {
      for (int64_t i = n_ * t / threads_; i < n_ * (t + 1) / threads_; ++i) store_(i, load_(i));
    });
  }

  // Counts every byte value of every byte of the keys over all items, with 32-bit counters.
  void count_all() {
    std::unique_ptr<uint32_t[][kBytes][256]> counts(new uint32_t[size_t(threads_)][kBytes][256]());
    for (auto& byte : total_) std::fill(byte, byte + 256, 0);
    // In ranges that cannot overflow the counters.
    constexpr int64_t kShare = int64_t{1} << 31;
    for (int64_t start = 0; start < n_; start += kShare * threads_) {
      const int64_t size = std::min(n_ - start, kShare * threads_);
      parallel_for(threads_, threads_, [&](int64_t t) {
        count(start + size * t / threads_, start + size * (t + 1) / threads_, counts[size_t(t)]);
      });
      for (int t = 0; t < threads_; ++t) {
        for (int b = 0; b < kBytes; ++b) {
          for (int d = 0; d < 256; ++d) total_[b][d] += std::exchange(counts[size_t(t)][b][d], 0);
        }
      }
    }
  }

  [[gnu::noinline]] void count(int64_t first, int64_t last, uint32_t (&counts)[kBytes][256]) const {
    for (int64_t i = first; i < last; ++i) {
      uint64_t k = KeyOf{}(load_(i));
      for (int b = 0; b < kBytes; ++b) {
        ++counts[b][k & 255];
        k >>= 8;
      }
    }
  }

  bool constant(int byte) const {
    return std::find(total_[byte], total_[byte] + 256, n_) != total_[byte] + 256;
  }

  int64_t n_;
  int threads_;
  Load load_;
  Store store_;
  int64_t total_[kBytes][256];
};

template <class Item, class KeyOf, int kBytes, class Load, class Store>
void radix_sort(int64_t n, int threads, Item* first, Item* second, const Load& load,
                const Store& store) {
  RadixSort<Item, KeyOf, kBytes, Load, Store>(n, threads, load, store).run(first, second);
}

}  // namespace catena::host
