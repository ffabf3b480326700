#include <algorithm>
#include <random>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "kernels/self_test.hpp"
#include "schemas/base/checksum.hpp"
#include "tests/kernels/expert_case.hpp"
#include "tests/schemas/file/scratch_folder.hpp"
#include "workers/device/device_backend.hpp"
#include "workers/device/staged_pages.hpp"
#include "workers/device/worker_device.hpp"

// What only a device can show: that a queue's copies and replays do what the fakes say, and that a
// backend over a real layer gives what the processor gives.
namespace moetier::workers {
namespace {

class cuda_device_test : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    const cudaError_t found = cudaGetDeviceCount(&devices);
    if (found != cudaSuccess || devices == 0)
      GTEST_SKIP() << "NO CUDA DEVICE: " << cudaGetErrorString(found);
    auto opened = open_device({.on_lost = [this](const error& why) { lost.push_back(why); }});
    ASSERT_TRUE(opened) << opened.error().text;
    device = std::move(*opened);
    auto made = device->make_queue();
    ASSERT_TRUE(made) << made.error().text;
    queue = std::move(*made);
  }

  device_bytes on_device(std::size_t bytes) { return std::move(*queue->allocate(bytes)); }
  device_bytes pinned(std::size_t bytes) { return std::move(*queue->allocate_pinned(bytes)); }

  std::vector<error> lost;
  std::unique_ptr<worker_device> device;
  std::unique_ptr<device_queue> queue;
};

TEST_F(cuda_device_test, tells_what_it_is) {
  const device_facts& facts = device->facts();
  EXPECT_FALSE(facts.name.empty());
  EXPECT_TRUE(facts.architecture.starts_with("sm_"));
  EXPECT_FALSE(facts.driver.empty());
  EXPECT_GT(facts.multiprocessors, 0u);
  EXPECT_GT(facts.memory_bytes, device->free_bytes());
  EXPECT_TRUE(std::is_sorted(facts.kernels.begin(), facts.kernels.end()));
  const auto none = open_device({.ordinal = 63});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().why, reason::config_invalid);
}

TEST_F(cuda_device_test, copies_in_order_and_waits) {
  constexpr std::size_t k_bytes = 1 << 20;
  const device_bytes there = on_device(k_bytes);
  const device_bytes from = pinned(k_bytes);
  const device_bytes to = pinned(k_bytes);
  for (int round = 1; round < 5; ++round) {
    std::fill_n(from.get(), k_bytes, static_cast<std::byte>(round));
    ASSERT_EQ(queue->copy_in(there.get(), from.get(), k_bytes), queue_status::ok);
    const std::uint64_t mark = queue->mark();
    ASSERT_EQ(queue->copy_out(to.get(), there.get(), k_bytes), queue_status::ok);
    ASSERT_EQ(queue->wait_for(mark), queue_status::ok);
    EXPECT_TRUE(queue->done(mark));
    ASSERT_EQ(queue->wait(), queue_status::ok);
    EXPECT_EQ(to.get()[k_bytes - 1], static_cast<std::byte>(round));
  }
}

TEST_F(cuda_device_test, replays_what_it_saw_twice) {
  const device_bytes there = on_device(64);
  const device_bytes to = pinned(64);
  int asked = 0;
  const auto fill = [&](void* stream) {
    ++asked;
    return kernels::cuda::launch_status{
        static_cast<int>(cudaMemsetAsync(there.get(), 7, 64, static_cast<cudaStream_t>(stream)))};
  };
  for (int round = 0; round < 5; ++round) {
    std::fill_n(to.get(), 64, std::byte{1});
    ASSERT_EQ(queue->copy_in(there.get(), to.get(), 64), queue_status::ok);
    ASSERT_EQ(queue->run_again({.rows_cap = 1}, fill), queue_status::ok);
    ASSERT_EQ(queue->copy_out(to.get(), there.get(), 64), queue_status::ok);
    ASSERT_EQ(queue->wait(), queue_status::ok);
    EXPECT_EQ(to.get()[63], std::byte{7});
  }
  EXPECT_EQ(asked, 2) << "once as it is, once for the recording";
}

TEST_F(cuda_device_test, is_lost_once_and_for_all) {
  const device_bytes to = pinned(64);
  queue->give_up("a test says so");
  EXPECT_EQ(queue->wait(), queue_status::lost);
  EXPECT_EQ(queue->copy_out(to.get(), to.get(), 64), queue_status::lost);
  EXPECT_EQ(sentence(device->make_queue()), "the device failed: a test says so");
  queue->give_up("again");
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].text, "the device failed: a test says so");
}

TEST_F(cuda_device_test, refuses_more_memory_than_there_is_and_goes_on) {
  EXPECT_EQ(queue->allocate(std::size_t{1} << 50).error().why, reason::memory_insufficient);
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(queue->wait(), queue_status::ok);
}

TEST_F(cuda_device_test, fills_pages_that_read_back_as_they_were_staged) {
  constexpr std::size_t k_page = 1 << 20;
  constexpr std::size_t k_pages = 9;
  auto made = staged_pages::create(std::move(*device->make_queue()), k_pages * k_page, k_page);
  ASSERT_TRUE(made) << sentence(made);
  std::vector<std::uint64_t> checksums;
  std::mt19937 random(1);
  for (std::size_t page = 0; page < k_pages; ++page) {
    const auto bytes = (*made)->stage(page * k_page, k_page);
    ASSERT_TRUE(bytes) << sentence(bytes);
    std::ranges::generate(*bytes, [&] { return static_cast<std::byte>(random()); });
    checksums.push_back(xxh3_64(*bytes));
    ASSERT_TRUE((*made)->send());
  }
  ASSERT_TRUE((*made)->settle());
  const device_bytes to = pinned(k_page);
  for (std::size_t page = 0; page < k_pages; ++page) {
    ASSERT_EQ(queue->copy_out(to.get(), (*made)->base() + page * k_page, k_page), queue_status::ok);
    ASSERT_EQ(queue->wait(), queue_status::ok);
    EXPECT_EQ(xxh3_64(std::span<const std::byte>(to.get(), k_page)), checksums[page]) << page;
  }
}

// Rows in registered memory and in the device's own give the bits that staged ones give.
TEST_F(cuda_device_test, takes_rows_from_wherever_its_copies_reach) {
  const kernels::expert_shape shape{
      .hidden_size = 260, .intermediate_size = 64, .format = {.stored = dtype::f32}};
  auto layer = device->make_layer("moetier.cuda.ref.none", shape);
  ASSERT_TRUE(layer) << layer.error().text;
  auto made = device_backend::create(std::move(layer->layer), layer->operands,
                                     {.rows_max = 16, .k_max = 1, .slots_max = 1},
                                     std::move(*device->make_queue()));
  ASSERT_TRUE(made) << sentence(made);
  device_backend& backend = **made;
  std::mt19937 random(5);
  kernels::aligned_bytes page(backend.page_bytes());
  backend.pack_page(kernels::random_expert(shape, random).tensors(), page.span());
  const device_bytes placed = std::move(*backend.place_page(page.span()));
  const std::byte* const pages[] = {placed.get()};
  constexpr std::uint32_t k_rows = 40;  // three chunks
  constexpr std::size_t k_pitch = 264 * sizeof(float);
  constexpr std::size_t k_bytes = k_rows * k_pitch;
  std::vector<kernels::expert_entry> entries;
  for (std::uint32_t r = 0; r < k_rows; ++r) entries.push_back({.row = r, .weight = 0.5F});
  const auto run = [&](const std::byte* from, std::byte* to) {
    const kernels::row_region in{from, k_pitch, k_rows};
    const kernels::out_region out{to, k_pitch};
    return backend.run({.in = {&in, 1},
                        .out = {&out, 1},
                        .entries = entries,
                        .pages = pages,
                        .k_in = 1,
                        .workspace = {}});
  };
  const auto x = kernels::random_rows(k_bytes / sizeof(float), random);
  const auto* const bytes = reinterpret_cast<const std::byte*>(x.data());
  std::vector<std::byte> staged(k_bytes);
  ASSERT_EQ(run(bytes, staged.data()), kernels::compute_status::ok);

  std::vector<std::byte> in(k_bytes);
  std::vector<std::byte> out(k_bytes);
  std::copy_n(bytes, k_bytes, in.data());
  const auto watch = device->row_memory();
  watch->made(in);
  watch->made(out);
  EXPECT_TRUE(queue->reaches(in));
  EXPECT_FALSE(queue->reaches(staged));
  EXPECT_EQ(run(in.data(), out.data()), kernels::compute_status::ok);
  EXPECT_EQ(out, staged);
  watch->going(in);
  watch->going(out);
  EXPECT_FALSE(queue->reaches(in));

  const device_bytes there = on_device(k_bytes);
  const device_bytes back = on_device(k_bytes);
  const device_bytes host = pinned(k_bytes);
  EXPECT_TRUE(queue->reaches({there.get(), k_bytes}));
  std::copy_n(bytes, k_bytes, host.get());
  ASSERT_EQ(queue->copy_in(there.get(), host.get(), k_bytes), queue_status::ok);
  ASSERT_EQ(queue->wait(), queue_status::ok);
  std::fill_n(host.get(), k_bytes, std::byte{0});
  ASSERT_EQ(queue->copy_in(back.get(), host.get(), k_bytes), queue_status::ok);
  ASSERT_EQ(queue->wait(), queue_status::ok);
  EXPECT_EQ(run(there.get(), back.get()), kernels::compute_status::ok);
  ASSERT_EQ(queue->copy_out(host.get(), back.get(), k_bytes), queue_status::ok);
  ASSERT_EQ(queue->wait(), queue_status::ok);
  EXPECT_TRUE(std::equal(staged.begin(), staged.end(), host.get()));
  EXPECT_TRUE(lost.empty());
}

// Every layer of this build, on a shape that all take: the self-test, then a batch beside the
// processor's, several times so that recordings are replayed.
TEST_F(cuda_device_test, computes_as_the_processor_does_within_what_its_operands_cost) {
  for (const auto& [kernel, layout] : device->facts().kernels) {
    for (const quant_kind quant : {quant_kind::none, quant_kind::fp8_block}) {
      const std::string identity = "moetier." + kernel + "." + std::string(quant_name(quant));
      const kernels::expert_shape shape{.hidden_size = 256,
                                        .intermediate_size = 128,
                                        .format = {.quant = quant, .stored = dtype::bf16}};
      auto layer = device->make_layer(identity, shape);
      if (!layer) continue;  // a layer of another format
      SCOPED_TRACE(identity);
      EXPECT_TRUE(layer->layer->layout_id().starts_with(layout + "."));
      auto made = device_backend::create(std::move(layer->layer), layer->operands,
                                         {.rows_max = 64, .k_max = 2, .slots_max = 4},
                                         std::move(*device->make_queue()));
      ASSERT_TRUE(made) << sentence(made);
      device_backend& backend = **made;
      std::vector<device_bytes> placed;
      const auto place = [&](std::span<const std::byte> page) -> expected<const std::byte*> {
        placed.push_back(std::move(*backend.place_page(page)));
        return placed.back().get();
      };
      EXPECT_EQ(sentence(kernels::self_test(backend, {}, place)), "ok");

      const auto truth = kernels::backend_of("cpu_ref", shape);
      kernels::page_table pages(*truth);
      std::vector<const std::byte*> there;
      std::mt19937 random(5);
      for (int slot = 0; slot < 4; ++slot) {
        const auto expert = kernels::random_expert(shape, random);
        pages.add(expert);
        kernels::aligned_bytes page(backend.page_bytes());
        backend.pack_page(expert.tensors(), page.span());
        there.push_back(*place(page.span()));
      }
      for (const std::uint32_t rows : {1u, 3u, 40u, 37u, 64u, 33u, 3u}) {
        for (const auto mode : {kernels::return_mode::partial, kernels::return_mode::exact}) {
          const std::size_t outputs = mode == kernels::return_mode::exact ? 2 : 1;
          const auto x = kernels::random_rows(std::size_t{rows} * 256, random);
          std::vector<float> wanted(x.size() * outputs);
          std::vector<float> given(x.size() * outputs);
          std::vector<kernels::expert_entry> entries;
          for (std::uint32_t r = 0; r < rows; ++r) {
            for (std::uint16_t j = 0; j < 2; ++j)
              entries.push_back({.row = r,
                                 .position = j,
                                 .slot = static_cast<std::uint16_t>(random() % 4),
                                 .weight = 0.5F});
          }
          std::vector<kernels::expert_entry> scratch(entries.size());
          std::vector<std::uint32_t> counts(4);
          kernels::group_entries(entries, scratch, counts);
          const auto in = kernels::rows_in(x, 256);
          const auto run = [&](kernels::Backend& by, std::span<const std::byte* const> table,
                               std::vector<float>& into) {
            const auto out = kernels::rows_out(into, 256);
            return kernels::run_on(by, {.in = {&in, 1},
                                        .out = {&out, 1},
                                        .entries = entries,
                                        .pages = table,
                                        .k_in = 2,
                                        .mode = mode,
                                        .workspace = {}});
          };
          ASSERT_EQ(run(*truth, pages.table(), wanted), kernels::compute_status::ok);
          ASSERT_EQ(run(backend, there, given), kernels::compute_status::ok);
          double squares = 0;
          double due = 0;
          for (std::size_t i = 0; i < given.size(); ++i) {
            squares += std::pow(double{given[i]} - double{wanted[i]}, 2);
            due += std::pow(double{wanted[i]}, 2);
          }
          const double bound = backend.operands() == kernels::operand_form::f32
                                   ? 1e-6
                                   : kernels::self_test_norm(backend.operands());
          EXPECT_LE(std::sqrt(squares / due), bound) << rows << " rows";
          std::vector<float> again(given.size());
          ASSERT_EQ(run(backend, there, again), kernels::compute_status::ok);
          EXPECT_TRUE(kernels::equal_bits(again, given));
        }
      }
    }
  }
  EXPECT_TRUE(lost.empty());
}

}  // namespace
}  // namespace moetier::workers
