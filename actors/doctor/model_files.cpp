#include "actors/doctor/model_files.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/core.h>

#include "actors/config/device_name.hpp"
#include "actors/doctor/control_groups.hpp"
#include "eplb/placement.hpp"
#include "kernels/backend.hpp"
#include "workers/store/expert_store.hpp"
#include "workers/weights/checkpoint.hpp"

namespace moetier::doctor {
namespace {

// Left free beside the weights: the processes themselves, rows, the page cache of loading.
constexpr std::uint64_t k_headroom = std::uint64_t{512} << 20;

std::uint64_t available_of_machine(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("MemAvailable:")) continue;
    std::istringstream words(line.substr(13));
    std::uint64_t kib = 0;
    words >> kib;
    return kib * 1024;
  }
  return 0;
}

// What one control group leaves, by either version's files; nullopt = no limit.
std::optional<std::uint64_t> left_in(const std::filesystem::path& group) {
  auto limit = number_in(group / "memory.max");
  auto used = number_in(group / "memory.current");
  if (!used) {
    limit = number_in(group / "memory.limit_in_bytes");
    used = number_in(group / "memory.usage_in_bytes");
  }
  if (!limit || !used) return std::nullopt;  // "max"
  return *limit > *used ? static_cast<std::uint64_t>(*limit - *used) : 0;
}

}  // namespace

model_facts probe_model(const std::string& path) {
  model_facts f{.path = path, .refusal = {}};
  if (path.empty()) return f;
  const time_ns began = monotonic_now();
  const auto files = workers::checkpoint::open(path);
  f.took = monotonic_now() - began;
  if (!files) {
    f.refusal = files.error().text;
  } else {
    f.model = (*files)->model();
  }
  return f;
}

finding judge_model(const model_facts& f) {
  if (f.path.empty()) return skip("model", "none is given (--model DIR)");
  if (!f.refusal.empty()) {
    return failure("model", f.refusal,
                   "fetch the named file again and compare its size; only config.json, the index "
                   "and expert tensors matter here");
  }
  const model_description& m = *f.model;
  return pass("model", fmt::format("{}: {} experts in {} layers, {}, all tensors there ({:.1f} s)",
                                   m.model_type, m.experts, m.moe_layers.size(),
                                   m.format.quant == quant_kind::none ? dtype_name(m.format.stored)
                                                                      : quant_name(m.format.quant),
                                   static_cast<double>(f.took) / k_second));
}

std::uint64_t probe_available_memory(const std::filesystem::path& root) {
  std::uint64_t available = available_of_machine(root);
  for (const auto& group : group_folders(root, "memory")) {
    if (const auto left = left_in(group)) available = std::min(available, *left);
  }
  return available;
}

bill_facts probe_bill(const model_facts& model, const config::settings& s,
                      std::uint64_t available_bytes) {
  bill_facts f{.unknown = {}};
  f.workers = s.coordinator.workers;
  f.allowed_bytes = s.worker.memory;
  f.available_bytes = available_bytes;
  if (!model.model) {
    f.unknown = "no model that could be billed";
    return f;
  }
  if (const auto device = config::parse_device(s.worker.device); device && device->cuda) {
    f.unknown = "a GPU worker bills its device when it starts";
    return f;
  }
  const model_description& m = *model.model;
  f.slots = s.worker.slots;
  if (f.slots == 0) {
    const auto even = eplb::even_partition(m.experts, f.workers);
    f.slots = even.empty() ? m.experts : *std::max_element(even.begin(), even.end());
  }
  weight_format format = m.format;
  quant_kind wish = quant_kind::none;
  if (format.quant == quant_kind::none && quant_of(s.model.quantise, wish) &&
      wish != quant_kind::none) {
    format = {.quant = wish, .stored = dtype::bf16};
  }
  const auto backend = kernels::make_cpu_backend("auto",
                                                 {.hidden_size = m.hidden_size,
                                                  .intermediate_size = m.intermediate_size,
                                                  .format = format,
                                                  .activation = m.activation.kind,
                                                  .bias = m.expert_bias},
                                                 {.threads = 1}, kernels::detect_cpu_features());
  if (!backend) {
    f.unknown = backend.error().text;
    return f;
  }
  const auto bill =
      workers::expert_store::bill({.slots = f.slots,
                                   .spare_pages = s.worker.spare_pages,
                                   .shared = s.moe.shared_experts == "auto" ? m.shared.count : 0,
                                   .memory_max_bytes = 0},
                                  m, (*backend)->page_bytes());
  if (!bill) {
    f.unknown = bill.error().text;
    return f;
  }
  f.worker_bytes = std::uint64_t{bill->pages} + bill->staging;
  return f;
}

finding judge_bill(const bill_facts& f) {
  if (!f.unknown.empty()) return skip("memory", f.unknown);
  const std::string seen =
      fmt::format("{} workers of {} slots a layer take {} each; {} are available", f.workers,
                  f.slots, rough_size(f.worker_bytes), rough_size(f.available_bytes));
  const std::string remedy =
      "more machines (moetier worker on each), fewer slots, or --quantise for unquantised experts";
  if (f.allowed_bytes != 0 && f.worker_bytes > f.allowed_bytes) {
    return failure("memory",
                   fmt::format("{}; worker.memory allows {}", seen, rough_size(f.allowed_bytes)),
                   "raise worker.memory, or " + remedy);
  }
  const std::uint64_t all = f.workers * f.worker_bytes;
  if (all > f.available_bytes) return failure("memory", seen, remedy);
  if (all + k_headroom > f.available_bytes) {
    return warn("memory", seen + ": less than 512 MiB would be left", remedy);
  }
  return pass("memory", seen);
}

}  // namespace moetier::doctor
