#pragma once
// The durable record on disk: two files in turn in one state directory, so that a torn write costs
// the newest copy and never the truth. A file is written whole, flushed with its directory, and
// counts only if its checksum holds; of two whole ones the one with the higher sequence counts. A
// lock file is held for life: two coordinators never share a directory. The folder is ours alone
// (mode 0700), as what it holds decides what workers load. Owned by the coordinator's shell; blocks
// on the disk, so never called from a loop that must turn. Thread: owner.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/core/record.hpp"

namespace moetier::coordinator {

class record_store final {
 public:
  // Creates the directory if it is missing, takes the lock, reads what is there.
  // reason::state_unusable: not a directory of ours, "another coordinator runs on this state", or
  // files are there and none is whole.
  static expected<std::unique_ptr<record_store>> open(const std::string& directory);
  ~record_store();
  record_store(const record_store&) = delete;
  record_store& operator=(const record_store&) = delete;

  const std::optional<record>& stored() const noexcept { return stored_; }
  // What is wrong with a file that was left out when it was read; empty = nothing. It may have been
  // the newest: then an older record is served.
  const std::string& damage() const noexcept { return damage_; }

  // Compare-and-set: durable when it returns without an error; else what was stored still is.
  // reason::sequence: another epoch is stored. reason::state_unusable: the disk failed, and the
  // same write may be tried again.
  expected<void> write(epoch_number expected_epoch, const record& value);

 private:
  record_store(std::string directory, int lock);
  expected<void> read();

  std::string directory_;
  int lock_ = -1;
  std::uint64_t sequence_ = 0;  // of the newest whole file; its place is sequence_ % 2
  std::optional<record> stored_;
  std::string damage_;
};

}  // namespace moetier::coordinator
