#pragma once
// Processor time of this process's threads by their names, as the kernel counts it: for threads of
// libraries, which count nothing themselves. Thread: any.

#include <optional>
#include <string_view>

namespace moetier {

// Seconds of all threads of that name (at most 15 characters); nothing if there is none.
std::optional<double> thread_cpu_seconds(std::string_view name);

}  // namespace moetier
