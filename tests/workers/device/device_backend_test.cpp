#include "workers/device/device_backend.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "kernels/self_test.hpp"
#include "tests/kernels/expert_case.hpp"
#include "tests/schemas/file/scratch_folder.hpp"
#include "tests/workers/device/host_layer.hpp"

namespace moetier::workers {
namespace {

using kernels::compute_status;
using kernels::expert_entry;
using kernels::return_mode;

constexpr std::uint32_t k_hidden = 20;  // rows are padded on the way
const kernels::expert_shape k_shape{.hidden_size = k_hidden,
                                    .intermediate_size = 12,
                                    .format = {.stored = dtype::f32},
                                    .bias = true};

// A call whose regions lie apart and whose rows ask random slots, some none; by both backends.
class device_backend_test : public testing::Test {
 protected:
  device_backend_test() { open({.rows_max = 64, .k_max = 3, .slots_max = 5}); }

  void open(const device_capacity& capacity) {
    auto layer = std::make_unique<host_layer>(kernels::backend_of("cpu_ref", k_shape));
    auto queue = std::make_unique<late_queue>();
    layer_ = layer.get();
    queue_ = queue.get();
    auto made = device_backend::create(std::move(layer), kernels::operand_form::f32, capacity,
                                       std::move(queue));
    if (!made) throw std::runtime_error(made.error().text);
    device_ = std::move(*made);
  }

  struct answers {
    compute_status status = compute_status::ok;
    std::vector<std::vector<float>> rows;  // by region
  };

  answers run(kernels::Backend& backend, const std::vector<std::uint32_t>& regions,
              return_mode mode, std::uint32_t k = 3, std::uint64_t seed = 1) {
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    constexpr std::size_t k_pitch = k_hidden + 3;  // floats
    answers out;
    std::vector<std::vector<float>> rows;
    std::vector<kernels::row_region> in;
    std::vector<kernels::out_region> to;
    std::vector<expert_entry> entries;
    const std::size_t outputs = mode == return_mode::exact ? k : 1;
    for (std::uint32_t region = 0; region < regions.size(); ++region) {
      rows.push_back(kernels::random_rows(regions[region] * k_pitch, random));
      out.rows.emplace_back(regions[region] * outputs * k_pitch, -77.0F);
      for (std::uint32_t r = 0; r < regions[region]; ++r) {
        for (std::uint16_t j = 0; j < k; ++j) {
          const auto slot = random() % (pages_.table().size() + 1);
          if (slot == pages_.table().size()) continue;
          entries.push_back({.region = region,
                             .row = r,
                             .position = j,
                             .slot = static_cast<std::uint16_t>(slot),
                             .weight = 0.25F + 0.125F * static_cast<float>(random() % 8)});
        }
      }
    }
    for (std::uint32_t region = 0; region < regions.size(); ++region) {
      in.push_back({reinterpret_cast<const std::byte*>(rows[region].data()),
                    k_pitch * sizeof(float), regions[region]});
      to.push_back(
          {reinterpret_cast<std::byte*>(out.rows[region].data()), k_pitch * sizeof(float)});
    }
    std::vector<expert_entry> scratch(entries.size());
    std::vector<std::uint32_t> counts(pages_.table().size());
    kernels::group_entries(entries, scratch, counts);
    out.status = kernels::run_on(backend, {.in = in,
                                           .out = to,
                                           .entries = entries,
                                           .pages = pages_.table(),
                                           .k_in = k,
                                           .mode = mode,
                                           .workspace = {}});
    return out;
  }

  // All bits, the places that nobody may write included.
  void expect_equal(const std::vector<std::uint32_t>& regions, return_mode mode,
                    std::uint32_t k = 3, std::uint64_t seed = 1) {
    const answers wanted = run(*truth_, regions, mode, k, seed);
    const answers given = run(*device_, regions, mode, k, seed);
    ASSERT_EQ(given.status, compute_status::ok);
    for (std::size_t i = 0; i < regions.size(); ++i)
      EXPECT_TRUE(kernels::equal_bits(given.rows[i], wanted.rows[i])) << "region " << i;
  }

  static kernels::page_table pages_of(const kernels::Backend& backend) {
    std::mt19937 random(3);
    kernels::page_table pages(backend);
    for (int i = 0; i < 5; ++i) pages.add(kernels::random_expert(k_shape, random));
    return pages;
  }

  const std::unique_ptr<kernels::Backend> truth_ = kernels::backend_of("cpu_ref", k_shape);
  const kernels::page_table pages_ = pages_of(*truth_);
  host_layer* layer_ = nullptr;
  late_queue* queue_ = nullptr;
  std::unique_ptr<device_backend> device_;
};

TEST_F(device_backend_test, gives_what_the_layer_gives_in_both_modes) {
  for (const return_mode mode : {return_mode::partial, return_mode::exact}) {
    expect_equal({1}, mode);
    expect_equal({7}, mode);
    expect_equal({3, 0, 9}, mode);
    expect_equal({5}, mode, 1);
  }
}

TEST_F(device_backend_test, cuts_calls_beyond_its_capacity_and_nobody_can_tell) {
  open({.rows_max = 4, .k_max = 3, .slots_max = 5});
  for (const return_mode mode : {return_mode::partial, return_mode::exact}) {
    expect_equal({4}, mode);
    expect_equal({5}, mode);
    expect_equal({3, 11, 6}, mode);
  }
  open({.rows_max = 1, .k_max = 3, .slots_max = 5});  // one row has more results than rows fit
  expect_equal({3}, return_mode::exact);
}

TEST_F(device_backend_test, records_a_bucket_once_and_replays_it_for_any_number_of_rows) {
  expect_equal({5}, return_mode::partial, 3, 1);
  const int first = queue_->enqueued;
  for (std::uint64_t seed = 2; seed < 20; ++seed)
    expect_equal({static_cast<std::uint32_t>(5 + seed % 4)}, return_mode::partial, 3, seed);
  // Rows per slot are part of a bucket: 5 to 8 rows of three positions over five slots give two.
  EXPECT_LE(queue_->enqueued - first, 2);
  for (const work_key& key : queue_->keys) {
    EXPECT_EQ(key.rows_cap, 8u);
    EXPECT_EQ(key.k_in, 3u);
    EXPECT_EQ(key.slots, 5u);
  }
}

TEST_F(device_backend_test, copies_live_rows_alone) {
  run(*device_, {5}, return_mode::partial);
  const std::size_t pitch = 80;  // 20 floats
  EXPECT_EQ(queue_->bytes_out, 4 + 5 * pitch);
  EXPECT_EQ(queue_->bytes_in, in_bytes(call_layout_of(k_hidden, 8, 3, 5), 5));
}

// Registered memory: rows go from where they lie to where they belong, in one copy each.
TEST_F(device_backend_test, copies_straight_where_the_device_reaches) {
  open({.rows_max = 4, .k_max = 3, .slots_max = 5});  // in two chunks
  std::mt19937 random(9);
  const auto rows = kernels::random_rows(std::size_t{6} * k_hidden, random);
  std::vector<expert_entry> entries;
  for (std::uint32_t r = 0; r < 6; ++r)
    entries.push_back({.row = r, .slot = static_cast<std::uint16_t>(r % 5), .weight = 0.5F});
  std::vector<expert_entry> scratch(6);
  std::vector<std::uint32_t> counts(5);
  kernels::group_entries(entries, scratch, counts);
  const auto in = kernels::rows_in(rows, k_hidden);
  const auto run_by = [&](kernels::Backend& backend, return_mode mode, std::vector<float>& out) {
    const auto to = kernels::rows_out(out, k_hidden);
    return kernels::run_on(backend, {.in = {&in, 1},
                                     .out = {&to, 1},
                                     .entries = entries,
                                     .pages = pages_.table(),
                                     .k_in = 1,
                                     .mode = mode,
                                     .workspace = {}});
  };
  std::vector<float> wanted(rows.size());
  ASSERT_EQ(run_by(*truth_, return_mode::partial, wanted), compute_status::ok);
  const std::size_t row_bytes = k_hidden * sizeof(float);
  for (const bool from : {false, true}) {
    for (const bool to : {false, true}) {
      std::vector<float> given(rows.size());
      queue_->reached.clear();
      if (from) queue_->reached.push_back(std::as_bytes(std::span(rows)));
      if (to) queue_->reached.push_back(std::as_bytes(std::span(given)));
      queue_->bytes_straight = 0;
      ASSERT_EQ(run_by(*device_, return_mode::partial, given), compute_status::ok);
      EXPECT_TRUE(kernels::equal_bits(given, wanted));
      EXPECT_EQ(queue_->bytes_straight, 6 * row_bytes * ((from ? 1 : 0) + (to ? 1 : 0)));
    }
  }
  // Exact results have gaps that nobody may write: they come by way of the pinned block.
  std::vector<float> exact(rows.size());
  queue_->reached = {std::as_bytes(std::span(rows)), std::as_bytes(std::span(exact))};
  queue_->bytes_straight = 0;
  ASSERT_EQ(run_by(*device_, return_mode::exact, exact), compute_status::ok);
  EXPECT_EQ(queue_->bytes_straight, 6 * row_bytes);
}

TEST_F(device_backend_test, does_nothing_for_no_rows) {
  queue_->breaks = true;
  EXPECT_EQ(run(*device_, {0}, return_mode::partial).status, compute_status::ok);
  EXPECT_EQ(run(*device_, {}, return_mode::exact).status, compute_status::ok);
}

TEST_F(device_backend_test, refuses_slots_without_a_page_before_it_asks_the_device) {
  const std::vector<float> rows(k_hidden);
  std::vector<float> out(k_hidden);
  const auto in = kernels::rows_in(rows, k_hidden);
  const auto to = kernels::rows_out(out, k_hidden);
  const std::byte* pages[] = {pages_.table()[0], nullptr};
  const auto status_of = [&](std::uint16_t slot) {
    const expert_entry entry{.slot = slot};
    return device_->run({.in = {&in, 1},
                         .out = {&to, 1},
                         .entries = {&entry, 1},
                         .pages = pages,
                         .k_in = 1,
                         .workspace = {}});
  };
  EXPECT_EQ(status_of(0), compute_status::ok);
  const std::size_t before = queue_->bytes_in;
  EXPECT_EQ(status_of(1), compute_status::bad_slot);
  EXPECT_EQ(status_of(2), compute_status::bad_slot);
  EXPECT_EQ(queue_->bytes_in, before);
}

TEST_F(device_backend_test, forgets_what_an_earlier_call_asked) {
  const std::vector<float> rows(2 * k_hidden);
  std::vector<float> out(2 * k_hidden);
  const auto in = kernels::rows_in(rows, k_hidden);
  const auto to = kernels::rows_out(out, k_hidden);
  const auto status_of = [&](std::vector<expert_entry> entries,
                             std::vector<const std::byte*> pages) {
    return device_->run({.in = {&in, 1},
                         .out = {&to, 1},
                         .entries = entries,
                         .pages = pages,
                         .k_in = 1,
                         .workspace = {}});
  };
  const std::byte* const page = pages_.table()[0];
  EXPECT_EQ(status_of({{.row = 0, .slot = 0}, {.row = 1, .slot = 1}}, {page, page}),
            compute_status::ok);
  EXPECT_EQ(status_of({{.row = 0, .slot = 0}}, {page, nullptr}), compute_status::ok);
}

TEST_F(device_backend_test, refuses_adapters_and_more_positions_or_slots_than_it_was_made_for) {
  const kernels::lora_call lora;
  kernels::expert_call adapted;
  adapted.lora = &lora;
  EXPECT_EQ(device_->run(adapted), compute_status::lora_unsupported);
  kernels::expert_call wide;
  wide.k_in = 4;
  EXPECT_EQ(device_->run(wide), compute_status::workspace_short);
  const std::vector<const std::byte*> six(6);
  kernels::expert_call many;
  many.pages = six;
  EXPECT_EQ(device_->run(many), compute_status::workspace_short);
}

TEST_F(device_backend_test, passes_on_a_bad_slot_that_the_device_finds) {
  layer_->fails = kernels::cuda::device_failure::bad_slot;
  EXPECT_EQ(run(*device_, {2}, return_mode::partial).status, compute_status::bad_slot);
  layer_->fails = kernels::cuda::device_failure::none;
  expect_equal({2}, return_mode::partial);  // the word is cleared
}

TEST_F(device_backend_test, gives_the_device_up_when_a_wait_inside_a_kernel_expires) {
  layer_->fails = kernels::cuda::device_failure::wait_expired;
  EXPECT_EQ(run(*device_, {2}, return_mode::partial).status, compute_status::device_lost);
  EXPECT_EQ(queue_->why_lost().text,
            "the device failed: a wait inside moetier.cuda.host.none expired, slot 7");
  EXPECT_EQ(queue_->why_lost().code, status::device);
  layer_->fails = kernels::cuda::device_failure::none;
  EXPECT_EQ(run(*device_, {2}, return_mode::partial).status, compute_status::device_lost)
      << "nothing is tried again";
  EXPECT_EQ(queue_->given_up, 1);
}

TEST_F(device_backend_test, says_that_the_device_is_lost_when_its_queue_is) {
  queue_->breaks = true;
  EXPECT_EQ(run(*device_, {2}, return_mode::partial).status, compute_status::device_lost);
  open({.rows_max = 64, .k_max = 3, .slots_max = 5});
  layer_->refuses = true;
  EXPECT_EQ(run(*device_, {2}, return_mode::partial).status, compute_status::device_lost);
}

TEST_F(device_backend_test, allocates_what_its_bill_says_and_nothing_later) {
  for (const device_capacity& c : {device_capacity{.rows_max = 64, .k_max = 3, .slots_max = 5},
                                   device_capacity{.rows_max = 1, .k_max = 9, .slots_max = 1024},
                                   device_capacity{.rows_max = 8192, .k_max = 1, .slots_max = 1}}) {
    open(c);
    EXPECT_EQ(queue_->allocated, device_backend::bill(*layer_, c).total());
  }
  EXPECT_EQ(device_backend::bill(*layer_, {.rows_max = 8192, .k_max = 1, .slots_max = 1}),
            device_backend::bill(*layer_, {.rows_max = 4096, .k_max = 1, .slots_max = 1}))
      << "larger calls run in chunks";
  open({.rows_max = 64, .k_max = 3, .slots_max = 5});
  const std::size_t made = queue_->allocated;
  expect_equal({64}, return_mode::exact);
  EXPECT_EQ(queue_->allocated, made);
  EXPECT_EQ(device_->workspace_bytes(64, 3), 0u);
}

TEST_F(device_backend_test, is_refused_where_the_device_has_no_room) {
  const device_capacity c{.rows_max = 64, .k_max = 3, .slots_max = 5};
  auto queue = std::make_unique<late_queue>();
  queue->bytes_max = device_backend::bill(*layer_, c).total() - 1;
  const auto made =
      device_backend::create(std::make_unique<host_layer>(kernels::backend_of("cpu_ref", k_shape)),
                             kernels::operand_form::f32, c, std::move(queue));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().why, reason::memory_insufficient);
}

TEST_F(device_backend_test, passes_the_self_test_with_its_page_on_the_device) {
  std::vector<device_bytes> placed;
  const auto place = [&](std::span<const std::byte> page) -> expected<const std::byte*> {
    auto bytes = device_->place_page(page);
    if (!bytes) return unexpected_error(bytes.error());
    placed.push_back(std::move(*bytes));
    return placed.back().get();
  };
  EXPECT_EQ(sentence(kernels::self_test(*device_, {}, place)), "ok");
  EXPECT_EQ(placed.size(), 1u);
  queue_->breaks = true;
  EXPECT_EQ(sentence(kernels::self_test(*device_, {}, place)), "the device failed: it broke");
}

}  // namespace
}  // namespace moetier::workers
