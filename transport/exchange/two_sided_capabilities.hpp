#pragma once
// What every carrier can do whose halves are the two-sided ones over a link of its own. Thread:
// any.

#include "transport/communication.hpp"

namespace moetier::transport {

inline constexpr comm_capabilities k_two_sided_capabilities{.in_place = true,
                                                            .dedup = true,
                                                            .any_roles = true,
                                                            .independent = true,
                                                            .mask = true,
                                                            .elastic = true,
                                                            .survives_kill = true,
                                                            .host_memory = true,
                                                            .ordered_rows = true,
                                                            .fixed_sum = true,
                                                            .shared_device = true,
                                                            .non_uniform_slots = true};

}  // namespace moetier::transport
