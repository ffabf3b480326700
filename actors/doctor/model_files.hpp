#pragma once
// The model directory as a start would meet it, without reading its weights: config.json, every
// shard's header beside the index, every expert tensor by name, shape and size. Then what its
// experts take of memory here. Thread: any (values, pure functions); the probes read files.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "actors/config/settings.hpp"
#include "actors/doctor/finding.hpp"
#include "schemas/model/model_description.hpp"

namespace moetier::doctor {

struct model_facts {
  std::string path;     // empty = none is set
  std::string refusal;  // empty = a start would take it
  std::optional<model_description> model{};
  duration_ns took = 0;
};

model_facts probe_model(const std::string& path);
finding judge_model(const model_facts& f);

struct bill_facts {
  std::string unknown;  // why there is no bill
  std::uint32_t workers = 1;
  std::uint32_t slots = 0;            // per layer of the fullest worker
  std::uint64_t worker_bytes = 0;     // pages and staging of that worker
  std::uint64_t allowed_bytes = 0;    // worker.memory; 0 = what the machine has
  std::uint64_t available_bytes = 0;  // to all workers together
};

// What is available: the least of the machine's and of every control group's.
std::uint64_t probe_available_memory(const std::filesystem::path& root);
bill_facts probe_bill(const model_facts& model, const config::settings& settings,
                      std::uint64_t available_bytes);
finding judge_bill(const bill_facts& f);

}  // namespace moetier::doctor
