// Control messages as bytes: every message survives the trip, and nothing that is not one does
// harm.

#include "schemas/control/codec.hpp"

#include <bit>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "schemas/base/checksum.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/control/message_body.hpp"
#include "tests/schemas/message_author.hpp"

namespace moetier::control {
namespace {

constexpr std::size_t k_header_bytes = 32;

// What the assembler says after the last frame; every frame before it must only be collected.
expected<std::optional<message>> deliver(assembler& to, const std::vector<frame>& frames) {
  for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
    auto step = to.accept(frames[i]);
    if (!step || step->has_value()) return step;
  }
  return to.accept(frames.back());
}

// Makes a changed envelope pass its own check again, so that what lies behind the check is tested.
void seal(frame& f) {
  std::uint32_t check = 0;
  std::memcpy(f.data() + 24, &check, 4);
  check = crc32c(std::as_bytes(std::span(f)));
  std::memcpy(f.data() + 24, &check, 4);
}

TEST(control_codec, every_message_survives_the_trip) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    author a(seed);
    const message m = a.make(seed % std::variant_size_v<message>);
    assembler to;
    const auto frames = encode(m);
    for (const frame& f : frames) EXPECT_LE(f.size(), k_envelope_bytes_max);
    const auto got = deliver(to, frames);
    ASSERT_TRUE(got.has_value()) << "seed " << seed << ": " << got.error().text;
    ASSERT_TRUE(got->has_value()) << "seed " << seed;
    EXPECT_TRUE(**got == m) << "seed " << seed << " kind " << m.index() + 1;
  }
}

TEST(control_codec, one_assembler_takes_message_after_message) {
  author a(7);
  assembler to;
  for (std::size_t i = 0; i < 200; ++i) {
    const message m = a.make(i % std::variant_size_v<message>);
    const auto got = deliver(to, encode(m));
    ASSERT_TRUE(got && got->has_value());
    EXPECT_TRUE(**got == m);
  }
}

TEST(control_codec, a_large_message_travels_in_full_fragments_of_sixty_kibibytes) {
  prepare m;
  m.placement.assign(200 * 1024, 7);
  const auto frames = encode(m);
  ASSERT_EQ(frames.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(frames[i].size(), 32u + 60 * 1024);
  assembler to;
  const auto got = deliver(to, frames);
  ASSERT_TRUE(got && got->has_value());
  EXPECT_TRUE(**got == message(m));
}

TEST(control_codec, a_flipped_bit_anywhere_is_refused) {
  author a(3);
  for (std::size_t kind = 0; kind < std::variant_size_v<message>; ++kind) {
    const frame good = encode(a.make(kind)).front();
    for (std::size_t i = 0; i < 200; ++i) {
      frame bad = good;
      bad[a.below(static_cast<std::uint32_t>(bad.size()))] ^=
          static_cast<std::uint8_t>(1u << a.below(8));
      assembler to;
      EXPECT_FALSE(to.accept(bad).has_value());
    }
  }
}

TEST(control_codec, a_frame_cut_anywhere_is_refused) {
  const frame good = encode(author(5).make(0)).front();
  for (std::size_t bytes = 0; bytes < good.size(); bytes += 1 + bytes / 16) {
    assembler to;
    EXPECT_FALSE(to.accept(std::span(good).first(bytes)).has_value()) << bytes;
  }
}

TEST(control_codec, a_message_with_sealed_garbage_inside_is_a_value_or_an_error_never_a_crash) {
  std::size_t refused_count = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    author a(seed);
    const message m = a.make(seed % std::variant_size_v<message>);
    std::vector<std::uint8_t> body = to_segment(m);
    for (std::uint32_t i = 1 + a.below(8); i > 0; --i) {
      // Pointers, which lie near the front, are the interesting bytes.
      const auto reach = static_cast<std::uint32_t>(
          a.coin() ? std::min<std::size_t>(body.size(), 128) : body.size());
      body[a.below(reach)] = static_cast<std::uint8_t>(a.number());
    }
    const auto kind = static_cast<std::uint16_t>(a.coin() ? m.index() + 1 : a.below(21));
    const auto got = from_segment(kind, body);
    if (!got) {
      ++refused_count;
      EXPECT_EQ(got.error().why, reason::frame_malformed);
      continue;
    }
    // What is accepted is legal: it survives a trip of its own.
    const auto again = from_segment(kind, to_segment(*got));
    ASSERT_TRUE(again.has_value()) << "seed " << seed << ": " << again.error().text;
    EXPECT_TRUE(*again == *got) << "seed " << seed;
  }
  EXPECT_GT(refused_count, 400u);
}

TEST(control_codec, random_bytes_as_a_message_are_a_value_or_an_error_never_a_crash) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint8_t> body(8 * (1 + random() % 40));
    for (auto& b : body) b = static_cast<std::uint8_t>(random() >> (random() % 3 * 28));
    (void)from_segment(static_cast<std::uint16_t>(random() % 20), body);
  }
}

TEST(control_codec, a_claimed_size_beyond_the_limit_is_refused_before_anything_is_kept) {
  frame f = encode(leaving{incarnation_id(1)}).front();
  const std::uint32_t total = 64 * 1024 * 1024 + 8;
  const std::uint16_t count = 1093;
  std::memcpy(f.data() + 10, &count, 2);
  std::memcpy(f.data() + 16, &total, 4);
  seal(f);
  assembler to;
  const auto got = to.accept(f);
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().text, "malformed message: lengths");
}

TEST(control_codec, fragments_out_of_order_or_of_two_messages_are_refused) {
  prepare one;
  one.placement.assign(130 * 1024, 1);
  prepare two = one;
  two.placement.back() = 2;
  const auto a = encode(one);
  const auto b = encode(two);
  ASSERT_EQ(a.size(), 3u);

  assembler skipped;
  EXPECT_FALSE(skipped.accept(a[1]).has_value());
  ASSERT_TRUE(skipped.accept(a[0]).has_value());
  EXPECT_FALSE(skipped.accept(a[2]).has_value());

  assembler mixed;
  ASSERT_TRUE(mixed.accept(a[0]).has_value());
  const auto foreign = mixed.accept(b[1]);
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(foreign.error().text, "malformed message: order of fragments");
  // What was collected is gone: the rest of the first message completes nothing.
  EXPECT_FALSE(mixed.accept(a[1]).has_value());
}

TEST(control_codec, a_new_message_replaces_a_half_one) {
  prepare large;
  large.placement.assign(130 * 1024, 1);
  assembler to;
  ASSERT_TRUE(to.accept(encode(large).front()).has_value());
  const auto got = deliver(to, encode(leaving{incarnation_id(4)}));
  ASSERT_TRUE(got && got->has_value());
  EXPECT_TRUE(**got == message(leaving{incarnation_id(4)}));
}

TEST(control_codec, another_version_is_named_with_both_numbers) {
  frame f = encode(leaving{incarnation_id(1)}).front();
  const std::uint16_t version = 2;
  std::memcpy(f.data() + 4, &version, 2);
  seal(f);
  assembler to;
  const auto got = to.accept(f);
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().text, "protocol version 2 is not supported; supported: 1");
}

TEST(control_codec, names_enumerations_and_counts_out_of_range_are_refused_by_field) {
  const auto refusal = [](const message& m) {
    const auto got = from_segment(static_cast<std::uint16_t>(m.index() + 1), to_segment(m));
    return got ? std::string("accepted") : got.error().text;
  };
  author a(1);
  hello h = std::get<hello>(a.make(0));
  h.name = "";
  EXPECT_EQ(refusal(h), "malformed message: hello.name");
  h.name = "line\nbreak";
  EXPECT_EQ(refusal(h), "malformed message: hello.name");
  h.name = std::string(65, 'x');
  EXPECT_EQ(refusal(h), "malformed message: hello.name");
  h.name = std::string(64, 'x');
  EXPECT_EQ(refusal(h), "accepted");
  h.held.assign(5, {});
  EXPECT_EQ(refusal(h), "malformed message: hello.held");
  h.held.assign(1, {generation_number(1), plan_hash(1), static_cast<generation_state>(4)});
  EXPECT_EQ(refusal(h), "malformed message: hello.held.state");
  h.held.clear();
  h.address.assign(k_address_bytes_max + 1, 0);
  EXPECT_EQ(refusal(h), "malformed message: hello.address");
  h.address.clear();
  h.environment.assign(k_environment_bytes_max + 1, 0);
  EXPECT_EQ(refusal(h), "malformed message: hello.environment");
  prepare plan;
  plan.resolution.assign(k_resolution_bytes_max + 1, 0);
  EXPECT_EQ(refusal(plan), "malformed message: prepare.resolution");
  plan.resolution.clear();
  plan.shared_experts = k_top_k_max + 1;
  EXPECT_EQ(refusal(plan), "malformed message: prepare.sharedExperts");
  refused r;
  r.cause = static_cast<refused::why>(7);
  EXPECT_EQ(refusal(r), "malformed message: refused.cause");
  h.environment.clear();
  h.adapters.assign(k_adapters_max, a.adapter());
  EXPECT_EQ(refusal(h), "accepted");
  h.adapters.push_back(a.adapter());
  EXPECT_EQ(refusal(h), "malformed message: hello.adapters");
  load_adapter load{epoch_number(1), a.adapter()};
  load.adapter.path = "relative";
  EXPECT_EQ(refusal(load), "malformed message: adapter.path");
  load.adapter.path = "/" + std::string(k_adapter_path_bytes_max, 'x');
  EXPECT_EQ(refusal(load), "malformed message: adapter.path");
  load.adapter = a.adapter();
  load.adapter.name = "";
  EXPECT_EQ(refusal(load), "malformed message: adapter.name");
  load.adapter = a.adapter();
  load.adapter.adapter = k_adapter_ids_max;
  EXPECT_EQ(refusal(load), "malformed message: adapter.adapter");
  attach_source s{epoch_number(1), a.attachment()};
  s.source.session = session_id(0);
  EXPECT_EQ(refusal(s), "malformed message: source.session");
}

TEST(control_codec, free_text_is_cut_and_masked_rather_than_refused) {
  refused r;
  r.text = std::string(3000, 'x');
  r.text[1] = '\n';
  const auto got = from_segment(3, to_segment(r));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(std::get<refused>(*got).text, "x?" + std::string(1022, 'x'));
}

TEST(control_codec, the_envelope_has_these_bytes) {
  const frame f = encode(leaving{incarnation_id(0x1122334455667788u)}).front();
  const std::vector<std::uint8_t> head(f.begin(), f.begin() + 20);
  EXPECT_EQ(head, (std::vector<std::uint8_t>{'M', 'T', 'C', 'E', 1,  0, 17, 0, 0, 0, 1, 0,  //
                                             16,  0,   0,   0,   16, 0, 0,  0}));
  const std::vector<std::uint8_t> body(f.begin() + k_header_bytes, f.end());
  EXPECT_EQ(body, (std::vector<std::uint8_t>{0, 0, 0, 0, 1, 0, 0, 0,  // root: one data word
                                             0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}));
}

}  // namespace
}  // namespace moetier::control
