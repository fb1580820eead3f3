// One object for each thread, made at its first use there and deleted at the thread's end:
//
//   Walk& walk = PerThread<Walk>::get();  // throws std::bad_alloc
//
// A thread_local variable with a destructor does the same, but registering the destructor allocates, and glibc aborts
// the process where that fails.
#pragma once

#include <pthread.h>

#include <memory>

namespace fusec {

template <typename T>
class PerThread {
 public:
  static T& get() {
    if (!made_) [[unlikely]]
      make();
    return *made_;
  }

 private:
  static void make() {
    static pthread_key_t key{};
    static const bool has_key = pthread_key_create(&key, end_of_thread) == 0;
    auto made = std::make_unique<T>();
    if (has_key) pthread_setspecific(key, made.get());
    made_ = made.release();
  }

  static void end_of_thread(void* of_thread) {
    made_ = nullptr;
    delete static_cast<T*>(of_thread);
  }

  static inline constinit thread_local T* made_ = nullptr;
};

}  // namespace fusec
