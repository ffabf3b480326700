// The header's image is the protocol: it is compared with Cap'n Proto's own idea of the struct, and
// each byte of it is damaged once.

#include "schemas/wire/wire_header.hpp"

#include <cstring>
#include <vector>

#include <capnp/message.h>
#include <gtest/gtest.h>

#include "schemas/base/checksum.hpp"
#include "schemas/wire.capnp.h"

namespace moetier {
namespace {

// Every field differs from every other and from zero, in every byte.
wire_header distinct_header() {
  wire_header h;
  h.kind = wire_kind::give_back;
  h.flags = 0x11;
  h.return_mode = 0x12;
  h.attempt = 0x13;
  h.source = 0x2122;
  h.worker = 0x2324;
  h.epoch = 0x3132333435363738;
  h.generation = 0x4142434445464748;
  h.resolution_id = 0x5152535455565758;
  h.plan_hash = 0x6162636465666768;
  h.step = 0x7172737475767778;
  h.session = 0x81828384;
  h.sender_incarnation = 0x85868788;
  h.layer = 0x9192;
  h.micro_batch = 0x9394;
  h.chunk = 0x9596;
  h.chunk_count = 0x9798;
  h.repeat_idx = 0xa1a2;
  h.repeat_count = 0xa3a4;
  h.stamp = 0xa5a6a7a8;
  h.rows = 0xb1b2b3b4;
  h.row_bytes = 0xb5b6b7b8;
  h.payload_bytes = 0xc1c2c3c4c5c6c7c8;
  h.payload_check = 0xd1d2d3d4;
  h.budget_us = 0xd5d6d7d8;
  h.extension_bytes = 0;
  h.extension_tag = 0x0102;
  return h;
}

// The image with one changed field and a check that matches again: a forger's frame.
template <class T>
std::vector<std::byte> forged(const wire_header& h, std::size_t offset, T value) {
  const wire_image image = encode_header(h);
  std::vector<std::byte> frame(image.begin(), image.end());
  std::memcpy(frame.data() + offset, &value, sizeof value);
  std::memset(frame.data() + 8, 0, 8);
  const std::uint64_t check = crc32c(frame);
  std::memcpy(frame.data() + 8, &check, 8);
  return frame;
}

TEST(wire_header, is_the_data_section_of_its_schema) {
  const wire_header h = distinct_header();
  const wire_image image = encode_header(h);
  std::uint64_t check = 0;
  std::memcpy(&check, image.data() + 8, 8);

  capnp::MallocMessageBuilder message;
  auto schema = message.initRoot<messages::WireHeader>();
  schema.setMagic(k_wire_magic);
  schema.setMajor(k_wire_major);
  schema.setMinor(k_wire_minor);
  schema.setHeaderBytes(k_wire_header_bytes);
  schema.setCheck(check);
  schema.setKind(static_cast<std::uint8_t>(h.kind));
  schema.setFlags(h.flags);
  schema.setReturnMode(h.return_mode);
  schema.setAttempt(h.attempt);
  schema.setSource(h.source);
  schema.setWorker(h.worker);
  schema.setEpoch(h.epoch);
  schema.setGeneration(h.generation);
  schema.setResolutionId(h.resolution_id);
  schema.setPlanHash(h.plan_hash);
  schema.setStep(h.step);
  schema.setSession(h.session);
  schema.setSenderIncarnation(h.sender_incarnation);
  schema.setLayer(h.layer);
  schema.setMicroBatch(h.micro_batch);
  schema.setChunk(h.chunk);
  schema.setChunkCount(h.chunk_count);
  schema.setRepeatIdx(h.repeat_idx);
  schema.setRepeatCount(h.repeat_count);
  schema.setStamp(h.stamp);
  schema.setRows(h.rows);
  schema.setRowBytes(h.row_bytes);
  schema.setPayloadBytes(h.payload_bytes);
  schema.setPayloadCheck(h.payload_check);
  schema.setBudgetUs(h.budget_us);
  schema.setExtensionBytes(h.extension_bytes);
  schema.setExtensionTag(h.extension_tag);
  schema.setZero(0);

  const capnp::AnyStruct::Reader any = schema.asReader();
  const auto section = any.getDataSection();
  ASSERT_EQ(section.size(), k_wire_header_bytes);
  for (std::size_t i = 0; i < section.size(); ++i)
    EXPECT_EQ(static_cast<std::byte>(section[i]), image[i]) << "at offset " << i;
  EXPECT_EQ(any.getPointerSection().size(), 0u);
}

TEST(wire_header, comes_back_as_it_was_sent) {
  const wire_header h = distinct_header();
  wire_header back;
  ASSERT_EQ(decode_header(encode_header(h), back), wire_fault::none);
  EXPECT_EQ(back, h);
}

TEST(wire_header, refuses_each_flipped_bit_and_leaves_the_output_alone) {
  const wire_image image = encode_header(distinct_header());
  for (std::size_t bit = 0; bit < image.size() * 8; ++bit) {
    wire_image damaged = image;
    damaged[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    wire_header out;
    const wire_fault fault = decode_header(damaged, out);
    EXPECT_EQ(fault, bit < 32   ? wire_fault::bad_magic
                     : bit < 40 ? wire_fault::bad_major
                     : bit < 48 ? wire_fault::bad_check
                     : bit < 64 ? wire_fault::bad_header_bytes
                                : wire_fault::bad_check)
        << "bit " << bit << ": " << wire_fault_name(fault);
    EXPECT_EQ(out, wire_header{}) << "bit " << bit;
  }
}

TEST(wire_header, refuses_forged_fields_in_the_fixed_order) {
  const wire_header h = distinct_header();
  wire_header out;
  EXPECT_EQ(decode_header(forged(h, 0, std::uint32_t{0}), out), wire_fault::bad_magic);
  EXPECT_EQ(decode_header(forged(h, 4, std::uint8_t{2}), out), wire_fault::bad_major);
  EXPECT_EQ(decode_header(forged(h, 5, std::uint8_t{9}), out), wire_fault::none) << "minor";
  EXPECT_EQ(decode_header(forged(h, 6, std::uint16_t{127}), out), wire_fault::bad_header_bytes);
  EXPECT_EQ(decode_header(forged(h, 6, std::uint16_t{129}), out), wire_fault::bad_header_bytes);
  EXPECT_EQ(decode_header(forged(h, 16, std::uint8_t{0}), out), wire_fault::bad_kind);
  EXPECT_EQ(decode_header(forged(h, 16, std::uint8_t{6}), out), wire_fault::bad_kind);
  EXPECT_EQ(decode_header(forged(h, 112, std::uint32_t{8}), out), wire_fault::bad_extension);
  EXPECT_EQ(decode_header(forged(h, 116, std::uint32_t{0x80000001}), out),
            wire_fault::bad_extension);
  EXPECT_EQ(decode_header(forged(h, 120, std::uint64_t{1}), out), wire_fault::bad_zero);
}

TEST(wire_header, refuses_every_length_but_its_own) {
  const wire_image image = encode_header(distinct_header());
  std::vector<std::byte> frame(image.begin(), image.end());
  wire_header out;
  for (std::size_t length = 0; length < frame.size(); ++length)
    EXPECT_EQ(decode_header(std::span(frame).first(length), out), wire_fault::short_frame);
  frame.push_back(std::byte{0});
  EXPECT_EQ(decode_header(frame, out), wire_fault::bad_header_bytes);
}

TEST(wire_header, carries_an_extension_under_its_check) {
  wire_header h = distinct_header();
  std::vector<std::byte> extension(k_wire_extension_bytes_max);
  for (std::size_t i = 0; i < extension.size(); ++i) extension[i] = static_cast<std::byte>(i * 7);
  h.extension_bytes = static_cast<std::uint32_t>(extension.size());
  const wire_image image = encode_header(h, extension);
  std::vector<std::byte> frame(image.begin(), image.end());
  frame.insert(frame.end(), extension.begin(), extension.end());
  wire_header back;
  ASSERT_EQ(decode_header(frame, back), wire_fault::none);
  EXPECT_EQ(back, h);
  frame.back() ^= std::byte{1};
  EXPECT_EQ(decode_header(frame, back), wire_fault::bad_check);
}

TEST(wire_header, survives_garbage_of_any_length) {
  std::uint32_t x = 1;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> frame(static_cast<std::size_t>(round) % 300);
    for (auto& b : frame) {
      x = x * 1664525u + 1013904223u;
      b = static_cast<std::byte>(x >> 24);
    }
    wire_header out;
    EXPECT_NE(decode_header(frame, out), wire_fault::none);
  }
}

}  // namespace
}  // namespace moetier
