#include "kernels/cuda/sm90_i32_slot_count.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "schemas/base/mix.hpp"

namespace moetier::kernels {
namespace {

template <class T>
struct device_free {
  void operator()(T* p) const { cudaFree(p); }
};
template <class T>
using device_array = std::unique_ptr<T[], device_free<T>>;

template <class T>
device_array<T> on_device(const std::vector<T>& values) {
  void* p = nullptr;
  const std::size_t bytes = values.size() * sizeof(T);
  EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(p, values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  return device_array<T>(static_cast<T*>(p));
}

template <class T>
std::vector<T> on_host(const device_array<T>& values, std::size_t count) {
  std::vector<T> out(count);
  EXPECT_EQ(cudaMemcpy(out.data(), values.get(), count * sizeof(T), cudaMemcpyDeviceToHost),
            cudaSuccess);
  return out;
}

// Slots from -2 (bad) over -1 (skipped) to slot_count (bad), the first slot hot.
std::vector<std::int32_t> entries_of(std::uint64_t seed, std::uint32_t entry_count,
                                     std::uint32_t slot_count) {
  std::vector<std::int32_t> slots(entry_count);
  for (std::uint32_t i = 0; i < entry_count; ++i) {
    const std::uint64_t draw = mix(seed ^ i);
    slots[i] = draw % 3 == 0 ? 0 : static_cast<std::int32_t>((draw >> 8) % (slot_count + 3)) - 2;
  }
  return slots;
}

class sm90_i32_slot_count : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    const cudaError_t found = cudaGetDeviceCount(&devices);
    if (found != cudaSuccess || devices == 0) {
      GTEST_SKIP() << "NO CUDA DEVICE, the kernel was compiled but not run: "
                   << cudaGetErrorString(found);
    }
  }
};

TEST_F(sm90_i32_slot_count, equals_its_twin) {
  for (const std::uint32_t slot_count : {1u, 2u, 63u, 256u, k_count_slots_max}) {
    for (const std::uint32_t entry_count : {1u, 31u, 256u, 4097u, 1'000'003u}) {
      SCOPED_TRACE(testing::Message() << slot_count << " slots, " << entry_count << " entries");
      const auto slots = entries_of(slot_count, entry_count, slot_count);
      std::vector<std::uint32_t> counts(slot_count, 99);
      std::uint32_t bad_entries = 77;
      slot_count_args args{.slots = slots.data(),
                           .entry_count = entry_count,
                           .counts = counts.data(),
                           .slot_count = slot_count,
                           .bad_entries = &bad_entries};

      const auto device_slots = on_device(slots);
      const auto device_counts = on_device(counts);
      const auto device_bad = on_device(std::vector<std::uint32_t>{77});
      slot_count_args device_args = args;
      device_args.slots = device_slots.get();
      device_args.counts = device_counts.get();
      device_args.bad_entries = device_bad.get();

      ASSERT_EQ(reference::count_slots(args), slot_count_status::ok);
      ASSERT_EQ(cuda::count_slots(device_args), slot_count_status::ok);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      EXPECT_EQ(on_host(device_counts, slot_count), counts);
      EXPECT_EQ(on_host(device_bad, 1).front(), bad_entries);
    }
  }
}

TEST_F(sm90_i32_slot_count, counts_nothing_when_there_is_no_entry) {
  const auto counts = on_device(std::vector<std::uint32_t>{5, 6, 7});
  const auto bad = on_device(std::vector<std::uint32_t>{8});
  ASSERT_EQ(cuda::count_slots({.counts = counts.get(), .slot_count = 3, .bad_entries = bad.get()}),
            slot_count_status::ok);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(on_host(counts, 3), (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_EQ(on_host(bad, 1).front(), 0u);
}

}  // namespace
}  // namespace moetier::kernels
