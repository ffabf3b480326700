#include "actors/roles/equipment.hpp"

#include "schemas/base/checksum.hpp"
#include "tests/actors/roles/host_device.hpp"
#include "tests/workers/weights/small_model.hpp"
#include "workers/store/expert_store.hpp"

namespace moetier::roles {
namespace {

// A small model's directory, and what a resolution for it names.
class equipment_test : public testing::Test {
 protected:
  equipment_test() {
    workers::small_model().write(folder_);
    auto opened = workers::checkpoint::open(folder_.path());
    if (!opened) throw std::runtime_error(opened.error().text);
    files_ = std::move(*opened);
  }

  expected<equipment> make(std::string_view winner, quant_kind quant) {
    resolution::resolution_report resolved;
    resolved.winner = winner;
    resolved.what.quant = quant;
    return equipment::make(
        resolved, *files_,
        {.device = &device_,
         .on_device = {.capacity = {.rows_max = 16, .k_max = 2, .slots_max = 3}, .store = store_}});
  }
  // All experts of both layers in one generation.
  auto load(const equipment& e) {
    auto made = workers::expert_store::create(
        {.slots = 3, .spare_pages = 0, .memory_max_bytes = e.pages_max_bytes}, *e.model, *e.backend,
        *e.source, *e.pages);
    if (!made) throw std::runtime_error(made.error().text);
    kept_ = std::move(*made);
    return kept_->prepare(generation_number(1), plan_hash(1),
                          {{layer_id(1), {0, 1, 2}}, {layer_id(3), {2, 1, 0}}});
  }

  scratch_folder folder_;
  std::unique_ptr<workers::checkpoint> files_;
  host_device device_;
  workers::expert_store_options store_{.slots = 3, .spare_pages = 0};
  std::unique_ptr<workers::expert_store> kept_;
};

TEST_F(equipment_test, of_a_device_fills_pages_there) {
  const auto made = make("moetier.cuda.ref.none", quant_kind::none);
  ASSERT_TRUE(made) << sentence(made);
  EXPECT_EQ(made->backend->identity(), "moetier.cuda.host.none");
  const auto table = load(*made);
  ASSERT_TRUE(table) << sentence(table);
  const auto page = (*table)->pages(0)[1];
  EXPECT_EQ((*table)->checksums()[1], xxh3_64(std::span(page, made->backend->page_bytes())));
}

TEST_F(equipment_test, quantises_into_a_devices_pages_and_tells_the_error) {
  const auto made = make("moetier.cuda.ref.fp8_block", quant_kind::fp8_block);
  ASSERT_TRUE(made) << sentence(made);
  ASSERT_NE(made->quantising, nullptr);
  EXPECT_EQ(made->backend->shape().format.quant, quant_kind::fp8_block);
  const auto table = load(*made);
  ASSERT_TRUE(table) << sentence(table);
  const auto page = (*table)->pages(1)[2];
  EXPECT_EQ((*table)->checksums()[5], xxh3_64(std::span(page, made->backend->page_bytes())));
  const auto cost = made->quantising->error();
  EXPECT_EQ(cost.matrices, 18u);
  EXPECT_GT(cost.rms_relative_max, 0.0);
  EXPECT_LT(cost.rms_relative_max, 0.05);
}

TEST_F(equipment_test, of_a_device_is_billed_as_one_before_anything_is_allocated) {
  device_.free = 1000;
  const auto refused = make("moetier.cuda.ref.none", quant_kind::none);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, status::no_memory);
  // One block of pages, a workspace of 1000 + 16 + 2 + 3, 16 rows in and out.
  EXPECT_EQ(refused.error().text,
            "the device (pages 2097152, workspace 1021, calls 1088) needs 2099261 bytes; 1000 are "
            "available");
  EXPECT_TRUE(device_.queues.empty());
  device_.free = 2099261;
  const auto fits = make("moetier.cuda.ref.none", quant_kind::none);
  ASSERT_TRUE(fits) << sentence(fits);
  EXPECT_EQ(fits->pages_max_bytes, 2097152u);
  EXPECT_EQ(fits->bill, (workers::device_bill{.pages = 2097152, .workspace = 1021, .calls = 1088}));
  ASSERT_TRUE(load(*fits));
}

TEST_F(equipment_test, of_a_device_that_has_no_such_layer_or_fails_its_test_is_refused) {
  device_.refuses = true;
  EXPECT_EQ(make("moetier.cuda.ref.none", quant_kind::none).error().why,
            reason::backend_unresolved);
  resolution::resolution_report resolved;
  resolved.winner = "moetier.cuda.ref.none";
  EXPECT_EQ(sentence(equipment::make(resolved, *files_, {})),
            "no backend: moetier.cuda.ref.none needs a CUDA device; this worker has none");
}

TEST_F(equipment_test, of_the_processor_knows_no_device) {
  const auto made = make("moetier.cpu.ref.none", quant_kind::none);
  ASSERT_TRUE(made) << sentence(made);
  EXPECT_EQ(made->pages, nullptr);
  EXPECT_TRUE(device_.queues.empty());
}

}  // namespace
}  // namespace moetier::roles
