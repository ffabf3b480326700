#include "eplb/canonical.hpp"

#include <gtest/gtest.h>

namespace moetier::eplb {
namespace {

TEST(canonical, reads_back_what_was_written) {
  canonical_writer w;
  w.u32(0xdeadbeef);
  w.text("moe");
  w.text("");
  const auto bytes = w.take();
  canonical_reader r(bytes);
  EXPECT_EQ(r.u32(), 0xdeadbeefU);
  EXPECT_EQ(r.text(3), "moe");
  EXPECT_EQ(r.text(3), "");
  EXPECT_TRUE(r.good());
  EXPECT_EQ(r.left(), 0U);
}

TEST(canonical, a_short_read_fails_and_stays_failed) {
  canonical_writer w;
  w.text("moetier");
  const auto bytes = w.take();
  canonical_reader bounded(bytes);
  EXPECT_EQ(bounded.text(6), "");
  EXPECT_FALSE(bounded.good());
  EXPECT_EQ(bounded.u32(), 0U);
  canonical_reader cut(std::span<const std::byte>(bytes).first(6));
  EXPECT_EQ(cut.text(64), "");
  EXPECT_FALSE(cut.good());
}

}  // namespace
}  // namespace moetier::eplb
