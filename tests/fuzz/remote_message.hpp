#pragma once
// Control messages of a peer that nobody can trust: any segment that the codec lets pass, or any
// legal value; both with the incarnation of whom they are about, where that is wished. Thread: any.

#include <algorithm>
#include <cstring>
#include <optional>

#include "schemas/control/message_body.hpp"
#include "tests/fuzz/byte_source.hpp"
#include "tests/schemas/message_author.hpp"

namespace moetier::fuzz {

inline std::optional<control::message> segment_message(byte_source& from) {
  const auto kind =
      static_cast<std::uint16_t>(1 + from.u8() % std::variant_size_v<control::message>);
  const auto bytes = from.take(from.u8() * std::size_t{8});
  std::vector<std::uint64_t> words(bytes.size() / 8);
  if (words.empty()) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), words.size() * 8);
  auto read = control::from_segment(
      kind, {reinterpret_cast<const std::uint8_t*>(words.data()), words.size() * 8});
  if (!read) return std::nullopt;
  return std::move(*read);
}

// Long lists are cut: sizes are the codec's matter, and thousands of acts a second are ours.
inline control::message authored_message(byte_source& from) {
  const std::size_t kind = from.u8() % std::variant_size_v<control::message>;
  control::message m = control::author(from.u8()).make(kind);
  const auto cut = [](auto& list) { list.resize(std::min<std::size_t>(list.size(), 24)); };
  std::visit(
      [&](auto& body) {
        if constexpr (requires { body.held_checksums; }) cut(body.held_checksums);
        if constexpr (requires { body.sources; }) cut(body.sources);
        if constexpr (requires { body.adapters; }) cut(body.adapters);
        if constexpr (requires { body.placement; }) cut(body.placement);
        if constexpr (requires { body.checksums; }) cut(body.checksums);
        if constexpr (requires { body.counts; }) cut(body.counts);
      },
      m);
  return m;
}

inline void set_incarnation(control::message& m, incarnation_id incarnation) {
  std::visit(
      [&](auto& body) {
        if constexpr (requires { body.worker_incarnation; }) {
          body.worker_incarnation = incarnation;
        } else if constexpr (requires { body.incarnation; }) {
          body.incarnation = incarnation;
        }
      },
      m);
}

// Numbers that a protocol counts with: near what is in force, or any.
template <class Number>
Number near(byte_source& from, Number in_force) {
  const std::uint8_t how = from.u8();
  return Number(how < 0xf0 ? in_force.value + how % 4 - 1 : from.any());
}

inline void set_epoch(control::message& m, byte_source& from, epoch_number in_force) {
  const epoch_number epoch = near(from, in_force);
  std::visit(
      [&](auto& body) {
        if constexpr (requires { body.highest_epoch; }) {
          body.highest_epoch = epoch;
        } else if constexpr (requires { body.epoch; }) {
          body.epoch = epoch;
        }
      },
      m);
}

}  // namespace moetier::fuzz
