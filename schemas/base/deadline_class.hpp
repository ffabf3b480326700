#pragma once
// How urgent the calls of a session are. Workers serve the classes in this order, strictly between
// calls, and keep a small share of their time for the lower ones. Numbers are part of the
// protocol. Thread: any.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace moetier {

enum class deadline_class : std::uint8_t { decode = 0, prefill = 1, batch = 2 };

inline constexpr std::size_t k_deadline_classes = 3;
inline constexpr std::array<deadline_class, k_deadline_classes> k_all_deadline_classes{
    deadline_class::decode, deadline_class::prefill, deadline_class::batch};

constexpr std::size_t index_of(deadline_class c) noexcept { return static_cast<std::size_t>(c); }

std::string_view deadline_class_name(deadline_class c) noexcept;  // "decode", ...
std::optional<deadline_class> deadline_class_of(std::string_view name) noexcept;

}  // namespace moetier
