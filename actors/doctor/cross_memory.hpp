#pragma once
// Whether one process of this user may read another's memory: UCX copies large rows once instead of
// twice then, and maps shared segments by links below /proc. Thread: any (values, pure functions);
// the probe forks.

#include <optional>

#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

struct cross_memory_facts {
  std::optional<int> ptrace_scope;  // kernel.yama.ptrace_scope; nullopt = no Yama
  int read_error = 0;               // errno of a child that read its parent; 0 = it could
  int link_error = 0;               // errno of the child that opened a descriptor of its parent
};

cross_memory_facts probe_cross_memory();
finding judge_cross_memory(const cross_memory_facts& f);
finding judge_proc_links(const cross_memory_facts& f);

}  // namespace moetier::doctor
