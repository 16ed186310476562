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

// load(i) returns item i of the input, key(item) its key, and store(place, item) writes it to its
// sorted position. Passes alternate between two buffers of n items and the last buffer is `first`,
// so `second` may be the memory that store() writes to. Bytes that are equal in all keys are
// skipped.
template <class Item, class Key, class Load, class KeyOf, class Store>
class RadixSort {
 public:
  static constexpr int kBytes = sizeof(Key);

  RadixSort(int64_t n, int threads, const Load& load, const KeyOf& key, const Store& store)
      : n_(n), threads_(threads), load_(load), key_(key), store_(store) {}

  void run(Item* first, Item* second) {
    count_all();
    int shifts[kBytes], passes = 0;
    for (int b = 0; b < kBytes; ++b) {
      if (!constant(b)) shifts[passes++] = b;
    }
    if (passes == 0)
      each([&](int64_t i, const Item& item) { store_(i, item); });
    else if (passes == 1)
      pass(shifts[0], load_, store_);
    else if constexpr (kBytes > 1)
      run_passes(shifts, passes, first, second);
  }

 private:
  // Two passes or more: the first one loads, the last one stores, and those between alternate
  // between the buffers.
  void run_passes(const int* shifts, int passes, Item* first, Item* second) {
    const Item* from = nullptr;
    for (int p = 0; p < passes; ++p) {
      Item* to = (passes - p) % 2 == 0 ? first : second;
      const auto load = [&](int64_t i) { return from[i]; };
      const auto put = [&](int64_t place, const Item& item) { to[place] = item; };
      if (p == 0)
        pass(shifts[p], load_, put);
      else if (p == passes - 1)
        pass(shifts[p], load, store_);
      else
        pass(shifts[p], load, put);
      from = to;
    }
  }

  int64_t begin(int64_t part) const { return n_ * part / threads_; }

  template <class F>
  void each(const F& f) const {
    parallel_for(threads_, threads_, [&](int64_t t) {
      for (int64_t i = begin(t); i < begin(t + 1); ++i) f(i, load_(i));
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
        auto& mine = counts[size_t(t)];
        for (int64_t i = start + size * t / threads_; i < start + size * (t + 1) / threads_; ++i) {
          Key k = key_(load_(i));
          for (int b = 0; b < kBytes; ++b) {
            ++mine[b][k & 255];
            k = Key(uint64_t(k) >> 8);
          }
        }
      });
      for (int t = 0; t < threads_; ++t) {
        for (int b = 0; b < kBytes; ++b) {
          for (int d = 0; d < 256; ++d) total_[b][d] += std::exchange(counts[size_t(t)][b][d], 0);
        }
      }
    }
  }

  bool constant(int byte) const {
    return std::find(total_[byte], total_[byte] + 256, n_) != total_[byte] + 256;
  }

  template <class LoadItem, class Put>
  void pass(int byte, const LoadItem& load, const Put& put) const {
    const int shift = byte * 8;
    if (threads_ == 1) {
      int64_t places[256], sum = 0;
      for (int d = 0; d < 256; ++d) {
        places[d] = sum;
        sum += total_[byte][d];
      }
      scatter(0, n_, shift, load, put, places);
      return;
    }
    const std::unique_ptr<RadixCounts[]> counts(new RadixCounts[size_t(threads_)]());
    parallel_for(threads_, threads_, [&](int64_t t) {
      int64_t mine[256] = {};
      for (int64_t i = begin(t); i < begin(t + 1); ++i) ++mine[(key_(load(i)) >> shift) & 255];
      std::copy(mine, mine + 256, counts[size_t(t)].of);
    });
    int64_t sum = 0;
    for (int d = 0; d < 256; ++d) {
      for (int t = 0; t < threads_; ++t) {
        const int64_t count = counts[size_t(t)].of[d];
        counts[size_t(t)].of[d] = sum;
        sum += count;
      }
    }
    parallel_for(threads_, threads_, [&](int64_t t) {
      int64_t places[256];
      std::copy(counts[size_t(t)].of, counts[size_t(t)].of + 256, places);
      scatter(begin(t), begin(t + 1), shift, load, put, places);
    });
  }

  template <class LoadItem, class Put>
  void scatter(int64_t first, int64_t last, int shift, const LoadItem& load, const Put& put,
               int64_t* places) const {
    for (int64_t i = first; i < last; ++i) {
      const Item item = load(i);
      put(places[(key_(item) >> shift) & 255]++, item);
    }
  }

  int64_t n_;
  int threads_;
  const Load& load_;
  const KeyOf& key_;
  const Store& store_;
  int64_t total_[kBytes][256];
};

template <class Item, class Load, class KeyOf, class Store>
void radix_sort(int64_t n, int threads, Item* first, Item* second, const Load& load,
                const KeyOf& key, const Store& store) {
  using Key = decltype(key(std::declval<const Item&>()));
  RadixSort<Item, Key, Load, KeyOf, Store>(n, threads, load, key, store).run(first, second);
}

}  // namespace catena::host
