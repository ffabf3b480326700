#pragma once
// What `bench tier` sets beside the round trip, measured in the same run: the backend's compute
// alone, and a bare UCX echo of the same bytes. Thread: owner.

#include <cstdint>
#include <vector>

#include "actors/config/settings.hpp"
#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "transport/communication.hpp"

namespace moetier::cli {

struct bench_shape {
  std::uint32_t tokens = 1;
  std::uint32_t warmup = 0;
  std::uint32_t calls = 1;
};

// Times of the backend alone: the same shapes, weights that are not the model's, other experts with
// each call so that weights come from where a layer finds them. One of a GPU is measured on the GPU
// that worker.device names, its copies included; none where it names none.
expected<std::vector<std::uint64_t>> compute_times(const model_description& model,
                                                   const std::string& identity,
                                                   const config::settings& settings,
                                                   const bench_shape& shape);

// Times of an echo with the sizes that one exchange of `tokens` rows has.
expected<std::vector<std::uint64_t>> echo_times(const transport::source_shape& source,
                                                const config::settings& settings,
                                                const bench_shape& shape);

}  // namespace moetier::cli
