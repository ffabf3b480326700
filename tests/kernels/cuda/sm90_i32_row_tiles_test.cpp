#include "kernels/cuda/sm90_i32_row_tiles.hpp"

#include "tests/kernels/cuda/device_array.hpp"
#include "tests/kernels/cuda/tiles_case.hpp"

namespace moetier::kernels::cuda {
namespace {

// The device's table of the same problem, over the same poison, against the twin's: what the twin
// leaves untouched the device leaves untouched.
void expect_twin(tiles_case& c) {
  const std::uint32_t slots = c.slots();
  const std::size_t scratch_bytes = row_tiles_scratch_bytes(c.slot_ids.size(), slots);
  const auto ids = on_device(c.slot_ids);
  const auto live = on_device(std::vector{c.rows_live});
  const auto pages = on_device(c.pages);
  const auto header = on_device(std::vector{c.header});
  const auto tiles = on_device(c.tiles);
  const auto segment_tile = on_device(c.segment_tile);
  const auto tile_segment = on_device(c.tile_segment);
  const auto entry_of = on_device(c.entry_of);
  const auto place_of = on_device(c.place_of);
  const auto scratch = on_device(std::vector<std::byte>(scratch_bytes, std::byte{0xcc}));
  const auto status = on_device(std::vector<std::uint32_t>{0});
  row_tiles_args args = c.args();
  args.slot_ids = ids.get();
  args.rows_live = live.get();
  args.pages = pages.get();
  args.tiles = {header.get(),       tiles.get(),    segment_tile.get(),
                tile_segment.get(), entry_of.get(), place_of.get()};
  args.scratch = scratch.get();
  args.scratch_bytes = scratch_bytes;
  args.status = status.get();
  ASSERT_EQ(make_row_tiles(args, nullptr).error, 0);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);

  c.group();
  EXPECT_TRUE(on_host(header, 1).front() == c.header);
  EXPECT_TRUE(on_host(tiles, c.tiles.size()) == c.tiles);
  EXPECT_TRUE(on_host(segment_tile, c.segment_tile.size()) == c.segment_tile);
  EXPECT_TRUE(on_host(tile_segment, c.tile_segment.size()) == c.tile_segment);
  EXPECT_TRUE(on_host(entry_of, c.entry_of.size()) == c.entry_of);
  EXPECT_TRUE(on_host(place_of, c.place_of.size()) == c.place_of);
  EXPECT_EQ(on_host(status, 1).front() & 0xffu, c.status & 0xffu);
}

class sm90_i32_row_tiles : public device_test {};

TEST_F(sm90_i32_row_tiles, equals_its_twin_with_one_launch) {
  for (const std::uint32_t slots : {1u, 2u, 32u, 100u, 1024u}) {
    for (const std::uint32_t entries : {1u, 31u, 64u, 1000u, 1024u, 1025u, 4097u, 8192u}) {
      for (const std::uint32_t tile_rows : {8u, 16u, 32u, 64u, 128u}) {
        SCOPED_TRACE(testing::Message() << slots << " slots, " << entries << " entries");
        tiles_case c(random_slots(entries + slots, entries, slots, entries % 4), 1, slots,
                     tile_rows);
        expect_twin(c);
      }
    }
  }
}

TEST_F(sm90_i32_row_tiles, equals_its_twin_with_two_launches) {
  for (const std::uint32_t slots : {1u, 7u, 32u, 256u, 1024u}) {
    for (const std::uint32_t rows : {4097u, 16384u, 65537u}) {
      SCOPED_TRACE(testing::Message() << slots << " slots, " << rows << " rows of two");
      tiles_case c(random_slots(rows + slots, rows * 2, slots, slots % 3), 2, slots, 128);
      c.rows_live = rows - rows / 5;
      expect_twin(c);
    }
  }
  tiles_case most(random_slots(3, k_row_tiles_entries_max, 17), 8, 17, 64);
  expect_twin(most);
}

TEST_F(sm90_i32_row_tiles, leaves_an_empty_table_when_nothing_is_live) {
  for (const std::uint32_t rows : {5u, 9000u}) {
    tiles_case c(random_slots(rows, rows, 4), 1, 4, 64);
    c.rows_live = 0;
    expect_twin(c);
    EXPECT_EQ(c.header.tiles, 0u);
  }
  tiles_case none({}, 1, 4, 64);
  expect_twin(none);
}

TEST_F(sm90_i32_row_tiles, reports_a_bad_slot_and_drops_its_entries) {
  for (const std::uint32_t rows : {6u, 9000u}) {
    tiles_case outside(random_slots(rows, rows, 4), 1, 4, 64);
    outside.slot_ids[rows - 2] = 4;
    expect_twin(outside);
    EXPECT_EQ(outside.status, static_cast<std::uint32_t>(device_failure::bad_slot) | 4u << 8);
    tiles_case unheld(random_slots(rows, rows, 4), 1, 4, 64);
    unheld.slot_ids[0] = 2;
    unheld.pages[2] = nullptr;
    expect_twin(unheld);
    EXPECT_EQ(unheld.status, static_cast<std::uint32_t>(device_failure::bad_slot) | 2u << 8);
  }
}

}  // namespace
}  // namespace moetier::kernels::cuda
