#pragma once
// While one lives no thread of this process starts: each asks for a stack that no address space
// has, which pthread_create answers as it answers a spent limit, with EAGAIN. Thread: owner.

#include <pthread.h>

#include <cstddef>
#include <cstdlib>

namespace moetier::coordinator {

class no_threads final {
 public:
  no_threads() {
    if (pthread_getattr_default_np(&before_) != 0) std::abort();
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    if (pthread_setattr_default_np(&huge) != 0) std::abort();
    pthread_attr_destroy(&huge);
  }
  ~no_threads() {
    if (pthread_setattr_default_np(&before_) != 0) std::abort();
    pthread_attr_destroy(&before_);
  }
  no_threads(const no_threads&) = delete;
  no_threads& operator=(const no_threads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace moetier::coordinator
