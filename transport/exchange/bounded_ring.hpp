#pragma once
// A first-in, first-out ring of values in one allocation. Whoever owns it reserves room on the
// control path, by counting what can be in it at once; push() and pop() then never allocate.
// Thread: owner.

#include <cstddef>
#include <utility>
#include <vector>

#include "schemas/base/assert.hpp"

namespace moetier::transport {

template <class T>
class bounded_ring final {
 public:
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  // Makes room for `capacity` values in all; keeps what is in it.
  void reserve(std::size_t capacity) {
    if (capacity <= cells_.size()) return;
    std::vector<T> cells(capacity);
    for (std::size_t i = 0; i < size_; ++i) cells[i] = at(i);
    cells_ = std::move(cells);
    first_ = 0;
  }

  // Requires: size() < the reserved capacity.
  void push(const T& value) {
    MOETIER_ASSERT(size_ < cells_.size());
    cells_[(first_ + size_) % cells_.size()] = value;
    ++size_;
  }

  bool pop(T& value) {
    if (size_ == 0) return false;
    value = cells_[first_];
    first_ = (first_ + 1) % cells_.size();
    --size_;
    return true;
  }

  template <class Wanted>
  void remove_if(Wanted wanted) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i)
      if (!wanted(at(i))) at(kept++) = at(i);
    size_ = kept;
  }

  // The i-th oldest value. Requires: i < size().
  T& at(std::size_t i) { return cells_[(first_ + i) % cells_.size()]; }

 private:
  std::vector<T> cells_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace moetier::transport
