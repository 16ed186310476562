// Per-thread free lists of graph objects: a recorded operation makes and drops several of them.
#pragma once

#include <new>
#include <vector>

namespace catena {

template <class T>
class FreeList {
 public:
  static T* create() {
    if (gone_ || cache_.free.empty()) return new T;
    void* memory = cache_.free.back();
    cache_.free.pop_back();
    return new (memory) T;
  }
  static void destroy(T* object) {
    object->~T();
#if !defined(__SANITIZE_ADDRESS__)
    if (!gone_ && cache_.free.size() < kKept) {
      cache_.free.push_back(object);
      return;
    }
#endif
    ::operator delete(object);
  }

 private:
  static constexpr size_t kKept = 512;
  struct Cache {
    std::vector<void*> free;
    ~Cache() {
      gone_ = true;
      for (void* memory : free) ::operator delete(memory);
    }
  };
  static thread_local bool gone_;
  static thread_local Cache cache_;
};

template <class T>
thread_local bool FreeList<T>::gone_ = false;
template <class T>
thread_local typename FreeList<T>::Cache FreeList<T>::cache_;

}  // namespace catena
