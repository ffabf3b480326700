#pragma once
// Small legal values of a resolution, each in one call: a Mixtral-like problem, two CPU workers,
// a CPU machine and a GPU machine that know everything about themselves.

#include <string>

#include "schemas/resolution/deployment.hpp"
#include "schemas/resolution/environment.hpp"
#include "schemas/resolution/problem.hpp"

namespace moetier::resolution {

inline problem small_problem() {
  return {.hidden_size = 4096,
          .intermediate_size = 14336,
          .num_experts = 8,
          .top_k = 2,
          .routing = routing_method::renormalize,
          .router_width = 4096};
}

inline deployment small_deployment() {
  return {.workers = 2, .num_slots = 8, .moe_layers = 2, .tokens_max = 128};
}

inline environment cpu_machine() {
  return {.device = device_kind::cpu,
          .architecture = "x86_64",
          .device_name = "a processor",
          .memory_bytes = 64ULL << 30,
          .host_memory_bytes = 64ULL << 30,
          .driver = "",
          .cuda = "",
          .libraries = {{"ucx", "1.13.1"}},
          .cpu_avx2 = true,
          .cpu_fma = true,
          .cpu_f16c = true,
          .cpu_avx512f = false,
          .carriers = {{"in_process", "ucx.two_sided"}},
          .kernels = {{"cpu.avx2", "cpu.ref", "reference.scalar"}},
          .layouts = {{"cpu.avx2", "panels"}, {"cpu.ref", "plain"}},
          .settings = {{"worker.threads", "1"}},
          .build_id = "0.1.0 (abc)",
          .kernel_set_hash = "1234",
          .numerics_routing = 1,
          .numerics_quantiser = 1,
          .numerics_combine = 1,
          .numeric_flags = "nearest"};
}

inline environment gpu_machine() {
  environment e = cpu_machine();
  e.device = device_kind::cuda;
  e.architecture = "sm_90";
  e.device_name = "NVIDIA H200";
  e.memory_bytes = 140ULL << 30;
  e.driver = "580.0";
  e.cuda = "13.0";
  e.kernels = {{"cpu.avx2", "cpu.ref", "cuda.ref", "cuda.sm90_bf16", "cuda.sm90_fp8"}};
  e.carriers = {{"in_process", "nvlink.one_sided", "ucx.two_sided"}};
  return e;
}

}  // namespace moetier::resolution
