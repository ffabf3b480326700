#pragma once
// What `moetier plan` was asked, as values. Thread: any.

#include <cstdint>
#include <string>
#include <vector>

namespace moetier::cli {

struct load_source {
  std::string counts{};  // safetensors or CSV
  std::string trace{};   // safetensors of expert ids
  std::string prefix{};
  std::string tensor{};       // empty = all of them, summed
  std::string axes{};         // "layer,sample,expert"; empty = by rank
  std::uint32_t experts = 0;  // 0 = as the file or the model says
};

// Times of one layer and micro-batch, in microseconds; 0 = not given.
struct advise_options {
  bool asked = false;
  std::string from_stats{};    // a running tier's coordinator tells what stands under it
  double attention_us = 0;     // on one attention GPU
  double experts_us = 0;       // on one worker, for one attention GPU's rows
  double leg_us = 0;           // one way between them
  double tpot_ms = 0;          // time per output token that is wanted
  std::uint32_t layers = 0;    // MoE layers
  std::uint32_t tokens = 128;  // of one attention GPU in a step
  std::uint32_t hidden_size = 0;
  std::uint32_t top_k = 0;
  double nic_gb_per_s = 45;  // of a worker, each way
};

struct plan_options {
  load_source loads;
  std::string model;
  std::uint32_t workers = 0;
  std::uint32_t slots = 0;  // over all workers; 0 = one spare per worker and evenly
  std::vector<std::uint32_t> slots_per_worker;
  std::string from;
  std::string budget;  // copies per layer, or bytes in all
  std::uint64_t expert_bytes = 0;
  std::uint32_t nodes = 1;
  std::uint32_t min_replicas = 1;
  std::string out;
  std::string export_file;  // TensorRT-LLM's form
  advise_options advise;
};

}  // namespace moetier::cli
