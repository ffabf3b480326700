#pragma once
// A device_queue that is a CUDA stream. Work with a key runs as it is the first time, so that code
// is loaded outside a capture and one-off sizes cost none; the second time it is captured into a
// graph, which is replayed from then on. At most k_graphs_max are kept, others run as they are.
// Thread: as device_queue.

#include <cstdint>
#include <memory>

#include "schemas/base/time.hpp"
#include "workers/device/device_queue.hpp"
#include "workers/device/lost_once.hpp"

namespace moetier::workers {

inline constexpr std::size_t k_graphs_max = 64;

// `spin`: how long a wait polls before it sleeps. reason::device_lost.
expected<std::unique_ptr<device_queue>> make_cuda_queue(std::uint32_t ordinal, duration_ns spin,
                                                        std::shared_ptr<lost_once> lost);

}  // namespace moetier::workers
