#pragma once
// The coordinator's state directory: ours alone, and on a disk whose flush returns. A plan is
// decided by a flush of file and directory, so its latency is a decision's. Thread: any (values,
// pure functions); the probe writes, flushes and removes one small file.

#include <cstdint>
#include <string>

#include "actors/doctor/finding.hpp"
#include "schemas/base/time.hpp"

namespace moetier::doctor {

struct state_facts {
  std::string path;
  bool given = false;  // by a setting, not the default
  bool there = false;
  bool directory = false;
  bool own = false;  // belongs to this user
  std::uint32_t mode = 0;
  bool parent_writable = false;  // of one that is not there: it can be made
  int write_error = 0;           // errno of write, fsync or rename
  duration_ns flush = 0;         // the slowest of a few
};

state_facts probe_state(const std::string& path, bool given);
finding judge_state(const state_facts& f);

}  // namespace moetier::doctor
