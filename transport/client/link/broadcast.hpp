#pragma once
// "Something changed; look again": any number of promises wait for the next fire(). Waiters whose
// promise was dropped are forgotten when the next one comes. Thread: kj (the loop's).

#include <algorithm>
#include <vector>

#include <kj/async.h>

namespace moetier::client {

class broadcast final {
 public:
  kj::Promise<void> next() {
    waiting_.erase(
        std::remove_if(waiting_.begin(), waiting_.end(), [](auto& w) { return !w->isWaiting(); }),
        waiting_.end());
    auto pair = kj::newPromiseAndFulfiller<void>();
    waiting_.push_back(kj::mv(pair.fulfiller));
    return kj::mv(pair.promise);
  }

  void fire() {
    auto due = std::move(waiting_);
    waiting_.clear();
    for (auto& w : due) w->fulfill();
  }

 private:
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
};

}  // namespace moetier::client
