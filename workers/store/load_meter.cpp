#include "workers/store/load_meter.hpp"

namespace moetier::workers {

std::string_view load_fault_name(load_fault f) noexcept {
  switch (f) {
    case load_fault::mismatch: return "mismatch";
    case load_fault::file: return "file";
    case load_fault::other: return "other";
  }
  return "other";
}

load_fault load_fault_of(const error& why) noexcept {
  switch (why.why) {
    case reason::weight_mismatch: return load_fault::mismatch;
    case reason::file_unreadable:
    case reason::file_malformed: return load_fault::file;
    default: return load_fault::other;
  }
}

void load_meter::set_pages(const page_pool& pool) noexcept {
  page_bytes_.store(pool.page_bytes(), std::memory_order_relaxed);
  for (std::size_t s = 0; s < k_page_states; ++s)
    pages_[s].store(pool.count(static_cast<page_state>(s)), std::memory_order_relaxed);
}

load_reading load_meter::read() const {
  load_reading r{.took = took_.read(), .page_bytes = page_bytes_.load(std::memory_order_relaxed)};
  for (std::size_t f = 0; f < k_load_faults; ++f)
    r.faults[f] = faults_[f].load(std::memory_order_relaxed);
  for (std::size_t s = 0; s < k_page_states; ++s)
    r.pages[s] = pages_[s].load(std::memory_order_relaxed);
  return r;
}

}  // namespace moetier::workers
