#pragma once
// One gather on the device over the same poison as its twin's: what the twin leaves untouched the
// device leaves untouched. Thread: owner.

#include "kernels/reference/gather_rows.hpp"
#include "tests/kernels/cuda/device_array.hpp"
#include "tests/kernels/cuda/gather_case.hpp"

namespace moetier::kernels::cuda {

using gather_launcher = launch_status (*)(const gather_rows_args&, const device_size&, void*);

inline void expect_twin_gather(gather_case& c, gather_launcher launch, const device_size& size) {
  const auto rows = on_device(c.rows.copy());
  const auto x = on_device(c.x.copy());
  const auto out = on_device(c.out.copy());
  const auto ids = on_device(c.table.slot_ids);
  const auto live = on_device(std::vector{c.table.rows_live});
  const auto header = on_device(std::vector{c.table.header});
  const auto tiles = on_device(c.table.tiles);
  const auto entry_of = on_device(c.table.entry_of);
  const auto place_of = on_device(c.table.place_of);
  gather_rows_args args = c.args();
  args.rows = rows.get();
  args.x = x.get();
  args.out = out.get();
  args.slot_ids = c.shape.zero_idle ? ids.get() : nullptr;
  args.rows_live = live.get();
  args.tiles = {.header = header.get(),
                .tiles = tiles.get(),
                .entry_of = entry_of.get(),
                .place_of = c.shape.by_row ? place_of.get() : nullptr};
  ASSERT_EQ(launch(args, size, nullptr).error, 0);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_TRUE(reference::gather_rows(c.args(), c.shape.format).ok());
  EXPECT_TRUE(on_host(x, c.x.size()) == c.x.copy());
  EXPECT_TRUE(on_host(out, c.out.size()) == c.out.copy());
}

}  // namespace moetier::kernels::cuda
