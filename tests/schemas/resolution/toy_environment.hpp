#pragma once
// Environments and reports for tests of the control plane: a CPU machine that runs every CPU
// backend, as documents that messages carry.

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/resolution/documents.hpp"
#include "schemas/resolution/report.hpp"

namespace moetier::toy {

inline resolution::environment cpu_environment() {
  resolution::environment e;
  e.device = resolution::device_kind::cpu;
  e.architecture = "x86_64";
  e.memory_bytes = std::uint64_t{1} << 40;
  e.host_memory_bytes = std::uint64_t{1} << 40;
  e.cpu_avx2 = e.cpu_fma = e.cpu_f16c = true;
  e.cpu_avx512f = false;
  e.carriers = std::vector<std::string>{"ucx.two_sided"};
  e.kernels = std::vector<std::string>{"cpu.avx2", "cpu.ref"};
  e.numerics_routing = e.numerics_quantiser = e.numerics_combine = 1;
  e.numeric_flags = "";
  e.build_id = "toy";
  e.kernel_set_hash = "toy";
  return e;
}

inline std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

inline std::vector<std::uint8_t> environment_document(
    const resolution::environment& e = cpu_environment()) {
  return bytes_of(resolution::document_of(e));
}

// A report as a worker needs it: who won, and its id.
inline std::vector<std::uint8_t> resolution_document(std::uint64_t id = 5) {
  resolution::resolution_report r;
  r.winner = "moetier.cpu.ref.none";
  r.requested = "AUTO";
  r.selected = resolution::selected_by::pinned;
  r.resolution_id = id;
  r.what.hidden_size = r.what.intermediate_size = 4;
  r.what.num_experts = 4;
  r.what.top_k = 1;
  r.what.routing = routing_method::renormalize;
  r.what.router_width = 4;
  r.where.num_slots = 4;
  return bytes_of(resolution::canonical_json(r));
}

}  // namespace moetier::toy
