#pragma once
// Which control groups this process is in, as folders, own first and then those above it: limits of
// any of them hold. Version 2, or version 1 by controller. Thread: any (pure but for reading below
// `root`).

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moetier::doctor {

// `controller` is "cpu" or "memory".
std::vector<std::filesystem::path> group_folders(const std::filesystem::path& root,
                                                 std::string_view controller);

// The first line of a small file; nullopt if it cannot be read.
std::optional<std::string> first_line(const std::filesystem::path& file);
// A whole number alone on it.
std::optional<std::int64_t> number_in(const std::filesystem::path& file);

}  // namespace moetier::doctor
