#include "workers/store/expert_store.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "schemas/base/checksum.hpp"
#include "tests/schemas/file/scratch_folder.hpp"
#include "tests/workers/store/fake_backend.hpp"
#include "tests/workers/store/late_memory.hpp"

namespace moetier::workers {
namespace {

// H 4, I 2, f32, 6 experts, MoE layers 1 and 3: a page of 96 bytes, padded to 128.
model_description small_description() {
  model_description model;
  model.model_type = "qwen3_moe";
  model.hidden_size = 4;
  model.intermediate_size = 2;
  model.experts = 6;
  model.top_k = 2;
  model.layers_total = 4;
  model.moe_layers = {layer_id(1), layer_id(3)};
  model.routing.method = routing_method::renormalize_naive;
  model.format.stored = dtype::f32;
  return model;
}

std::byte mark_of(layer_id layer, std::int32_t expert) {
  return static_cast<std::byte>(16 * layer.value + expert + 1);
}

// Every byte of an expert is its mark; counts what was asked for; fails on demand.
class marking_source final : public expert_source {
 public:
  expected<void> load(layer_id layer, expert_id expert, const expert_buffers& into) override {
    ++loads;
    if (fails_at == loads) return fail(reason::file_unreadable, "shard", "it broke");
    for (const auto& part : {into.gate, into.up, into.down})
      std::ranges::fill(part, mark_of(layer, expert.value));
    return {};
  }

  int loads = 0;
  int fails_at = 0;
};

class expert_store_test : public testing::Test {
 protected:
  expert_store_test() { open({.slots = 3, .spare_pages = 2, .memory_max_bytes = 4u << 20}); }

  void open(const expert_store_options& options) {
    auto made = expert_store::create(options, model_, backend_, source_);
    ASSERT_TRUE(made) << sentence(made);
    store_ = std::move(*made);
  }

  static std::vector<layer_slots> rows(std::vector<std::int32_t> of_layer_1,
                                       std::vector<std::int32_t> of_layer_3) {
    return {{layer_id(1), std::move(of_layer_1)}, {layer_id(3), std::move(of_layer_3)}};
  }

  auto prepare(std::uint64_t generation, std::vector<layer_slots> what,
               const prepare_watch& watch = {}) {
    return store_->prepare(generation_number(generation), plan_hash(generation * 100),
                           std::move(what), watch);
  }
  auto activate(std::uint64_t generation) {
    return store_->activate(generation_number(generation), plan_hash(generation * 100));
  }
  void serve(std::uint64_t generation, std::vector<layer_slots> what) {
    ASSERT_TRUE(prepare(generation, std::move(what)));
    ASSERT_TRUE(activate(generation));
  }
  std::uint32_t count(page_state state) const { return store_->pool().count(state); }

  // Every slot of a table shows its own expert's bytes and their checksum.
  static void expect_true(const generation_table& table) {
    std::size_t position = 0;
    for (std::size_t l = 0; l < table.layers(); ++l) {
      ASSERT_EQ(table.first_position(l), position);
      ASSERT_EQ(table.pages(l).size(), table.experts(l).size());
      for (std::size_t slot = 0; slot < table.slots(l); ++slot, ++position) {
        const std::byte* const page = table.pages(l)[slot];
        const std::int32_t expert = table.experts(l)[slot];
        if (expert == k_no_expert) {
          EXPECT_EQ(page, nullptr);
          EXPECT_EQ(table.checksums()[position], 0u);
          continue;
        }
        ASSERT_NE(page, nullptr);
        EXPECT_EQ(page[0], mark_of(table.layer_at(l), expert));
        EXPECT_EQ(page[95], mark_of(table.layer_at(l), expert));
        EXPECT_EQ(page[96], std::byte{0});
        EXPECT_EQ(table.checksums()[position], xxh3_64(std::span(page, 128)));
      }
    }
  }

  const model_description model_ = small_description();
  const fake_backend backend_{
      kernels::expert_shape{4, 2, {.stored = dtype::f32}, activation_kind::swiglu}};
  marking_source source_;
  std::unique_ptr<expert_store> store_;
};

TEST_F(expert_store_test, fills_a_generation_and_serves_it) {
  const auto prepared = prepare(1, rows({4, 0, -1}, {5, -1, 2}));
  ASSERT_TRUE(prepared) << sentence(prepared);
  EXPECT_EQ(source_.loads, 4);
  EXPECT_EQ(count(page_state::verified), 4u);
  expect_true(**prepared);
  EXPECT_EQ((*prepared)->index_of(layer_id(3)), 1);
  EXPECT_EQ((*prepared)->index_of(layer_id(2)), -1);
  EXPECT_EQ(store_->active(), nullptr);

  const auto active = activate(1);
  ASSERT_TRUE(active) << sentence(active);
  EXPECT_EQ(*active, *prepared);
  EXPECT_EQ(store_->active(), *active);
  EXPECT_EQ(store_->prepared(), nullptr);
  EXPECT_EQ(count(page_state::serving), 4u);
}

TEST_F(expert_store_test, the_next_generation_keeps_the_pages_of_experts_that_stay) {
  serve(1, rows({0, 1, 2}, {0, 1, 2}));
  const auto before = store_->active();
  source_.loads = 0;
  const auto next = prepare(2, rows({2, 1, 3}, {0, 1, 2}));
  ASSERT_TRUE(next) << sentence(next);
  EXPECT_EQ(source_.loads, 1) << "only expert 3 of layer 1 is new";
  expect_true(**next);
  expect_true(*before);
  EXPECT_EQ((*next)->pages(0)[0], before->pages(0)[2]) << "moved between slots, not copied";
  EXPECT_EQ(count(page_state::serving), 6u) << "nothing in use was touched";

  ASSERT_TRUE(activate(2));
  EXPECT_EQ(store_->draining(), before);
  EXPECT_EQ(count(page_state::retiring), 1u) << "expert 0 of layer 1";
  EXPECT_EQ(count(page_state::serving), 6u);
  expect_true(*before);

  store_->release(generation_number(2));
  EXPECT_EQ(store_->draining(), nullptr);
  EXPECT_EQ(count(page_state::retiring), 0u);
  EXPECT_EQ(count(page_state::empty), 2u);
  expect_true(*store_->active());
}

TEST_F(expert_store_test, an_aborted_plan_leaves_what_serves_as_it_was) {
  serve(1, rows({0, 1, 2}, {0, 1, 2}));
  ASSERT_TRUE(prepare(2, rows({3, 4, 0}, {0, 1, 2})));
  ASSERT_TRUE(store_->abort(generation_number(2)));
  EXPECT_EQ(store_->prepared(), nullptr);
  EXPECT_EQ(count(page_state::empty), 2u);
  EXPECT_EQ(count(page_state::serving), 6u);
  expect_true(*store_->active());
  EXPECT_EQ(sentence(activate(2)),
            "activating generation 2 is not allowed here: this generation and plan are not "
            "prepared");
  EXPECT_TRUE(prepare(2, rows({0, 1, 5}, {0, 1, 2}))) << "the number may be used again";
}

TEST_F(expert_store_test, repeats_change_nothing) {
  const auto first = prepare(1, rows({0, 1}, {2}));
  EXPECT_EQ(*prepare(1, rows({0, 1}, {2})), *first);
  EXPECT_EQ(source_.loads, 3);
  ASSERT_TRUE(activate(1));
  EXPECT_EQ(*activate(1), *first);
  EXPECT_EQ(*prepare(1, rows({0, 1}, {2})), *first) << "after a coordinator's restart";
  EXPECT_TRUE(store_->abort(generation_number(7)));
  store_->release(generation_number(1));
  store_->release(generation_number(9));
  EXPECT_EQ(count(page_state::serving), 3u) << "the active one is never released";
}

TEST_F(expert_store_test, at_most_two_generations_live) {
  serve(1, rows({0}, {0}));
  ASSERT_TRUE(prepare(2, rows({1}, {0})));
  EXPECT_EQ(sentence(prepare(3, rows({2}, {0}))),
            "preparing generation 3 is not allowed here: generation 2 is prepared and neither "
            "activated nor aborted");
  ASSERT_TRUE(activate(2));
  EXPECT_EQ(sentence(prepare(3, rows({2}, {0}))),
            "preparing generation 3 is not allowed here: generation 1 is not released");
  store_->release(generation_number(1));
  EXPECT_NE(store_->draining(), nullptr) << "not older than what is kept";
  store_->release(generation_number(2));
  EXPECT_TRUE(prepare(3, rows({2}, {0})));
}

TEST_F(expert_store_test, refuses_older_generations_and_other_plans) {
  serve(5, rows({0}, {0}));
  EXPECT_EQ(sentence(prepare(4, rows({1}, {0}))),
            "preparing generation 4 is not allowed here: generation 5 is active");
  EXPECT_EQ(sentence(store_->prepare(generation_number(5), plan_hash(1), rows({1}, {0}))),
            "preparing generation 5 is not allowed here: generation 5 is active");
  EXPECT_EQ(sentence(store_->abort(generation_number(5))),
            "aborting generation 5 is not allowed here: it is active");
  ASSERT_TRUE(prepare(6, rows({1}, {0})));
  EXPECT_EQ(sentence(store_->activate(generation_number(6), plan_hash(1))),
            "activating generation 6 is not allowed here: this generation and plan are not "
            "prepared");
}

TEST_F(expert_store_test, a_failing_source_leaves_the_store_as_it_was) {
  serve(1, rows({0, 1}, {0}));
  for (int nth = 1; nth <= 3; ++nth) {
    source_.loads = 0;
    source_.fails_at = nth;
    EXPECT_EQ(sentence(prepare(2, rows({0, 2, 3}, {1}))), "cannot read shard: it broke");
    EXPECT_EQ(count(page_state::empty), 5u);
    EXPECT_EQ(count(page_state::serving), 3u);
    EXPECT_EQ(store_->prepared(), nullptr);
  }
  source_.fails_at = 0;
  EXPECT_TRUE(prepare(2, rows({0, 2, 3}, {1})));
}

TEST_F(expert_store_test, loading_can_be_cancelled_between_two_experts) {
  std::atomic<bool> cancelled = false;
  const prepare_watch watch{
      .on_progress = [&](std::uint32_t loaded, std::uint32_t) { cancelled = loaded == 2; },
      .cancelled = &cancelled};
  const auto result = prepare(1, rows({0, 1, 2}, {0}), watch);
  EXPECT_EQ(sentence(result), "loading generation 1 was cancelled");
  EXPECT_EQ(result.error().code, status::cancelled);
  EXPECT_EQ(source_.loads, 2);
  EXPECT_EQ(count(page_state::empty), 8u);
}

TEST_F(expert_store_test, progress_counts_the_experts_to_load_from_none_to_all) {
  serve(1, rows({0}, {}));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen;
  ASSERT_TRUE(prepare(2, rows({0, 1}, {2}), {.on_progress = [&](auto loaded, auto total) {
                        seen.emplace_back(loaded, total);
                      }}));
  EXPECT_EQ(seen, (decltype(seen){{0, 2}, {1, 2}, {2, 2}}));
}

TEST_F(expert_store_test, refuses_a_plan_without_enough_empty_pages_before_it_loads) {
  serve(1, rows({0, 1, 2}, {0, 1, 2}));
  source_.loads = 0;
  const auto result = prepare(2, rows({3, 4, 5}, {0, 1, 2}));
  EXPECT_EQ(sentence(result), "generation 2 needs 3 empty pages; 2 are empty");
  EXPECT_EQ(result.error().code, status::overloaded);
  EXPECT_EQ(source_.loads, 0);
  EXPECT_TRUE(prepare(2, rows({3, 4, 2}, {0, 1, 2})));
}

TEST_F(expert_store_test, slots_may_be_uneven_and_layers_left_out) {
  const auto table = prepare(1, {{layer_id(3), {0, 1, 2, 3, 4}}});
  ASSERT_TRUE(table) << sentence(table);
  EXPECT_EQ((*table)->layers(), 1u);
  EXPECT_EQ((*table)->index_of(layer_id(1)), -1);
  expect_true(**table);
}

TEST_F(expert_store_test, refuses_rows_that_are_no_plan_for_this_model) {
  EXPECT_EQ(sentence(prepare(1, {{layer_id(2), {0}}})),
            "placement: layer 2 is no MoE layer of the model");
  EXPECT_EQ(sentence(prepare(1, {{layer_id(3), {0}}, {layer_id(1), {0}}})),
            "placement: layer 1 follows layer 3");
  EXPECT_EQ(sentence(prepare(1, rows({0, 6}, {0}))),
            "placement: layer 1 slot 1 names expert 6; allowed: -1 (none) or 0 to 5");
  EXPECT_EQ(sentence(prepare(1, rows({0, -2}, {0}))),
            "placement: layer 1 slot 1 names expert -2; allowed: -1 (none) or 0 to 5");
  EXPECT_EQ(sentence(prepare(1, rows({0}, {4, 1, 4}))),
            "placement: layer 3 has expert 4 twice on one worker");
  EXPECT_EQ(sentence(prepare(1, rows(std::vector<std::int32_t>(1025, -1), {}))),
            "placement: layer 1 has 1025 slots; at most 1024");
}

TEST_F(expert_store_test, the_bill_is_refused_before_anything_is_allocated) {
  const expert_store_options options{.slots = 3, .spare_pages = 2, .memory_max_bytes = 2097247};
  EXPECT_EQ(*expert_store::bill(options, model_, 128),
            (store_bill{.pages = 2097152, .staging = 96}))
      << "one huge page holds 8 pages";
  EXPECT_EQ(sentence(expert_store::create(options, model_, backend_, source_)),
            "the expert store needs 2097248 bytes; 2097247 are available");
  EXPECT_EQ(sentence(expert_store::create({.slots = 0, .memory_max_bytes = 1u << 30}, model_,
                                          backend_, source_)),
            "the number of slots per layer is 0; allowed: 1 to 1024");
  EXPECT_EQ(sentence(expert_store::create({.slots = 1025, .memory_max_bytes = 1u << 30}, model_,
                                          backend_, source_)),
            "the number of slots per layer is 1025; allowed: 1 to 1024");
}

TEST_F(expert_store_test, shared_experts_lie_behind_the_slots_of_every_layer) {
  open({.slots = 3, .spare_pages = 2, .shared = 2, .memory_max_bytes = 4u << 20});
  const auto first = prepare(1, rows({4, -1, 0}, {5, 2}));
  ASSERT_TRUE(first) << sentence(first);
  EXPECT_EQ(source_.loads, 8);
  const generation_table& table = **first;
  EXPECT_EQ(table.shared_slots(), 2u);
  EXPECT_EQ(table.slots(0), 3u) << "not counted";
  EXPECT_EQ(table.slots(1), 2u);
  EXPECT_EQ(table.checksums().size(), 5u);
  EXPECT_EQ(table.first_position(1), 3u);
  ASSERT_EQ(table.shared_checksums().size(), 4u);
  for (std::size_t l = 0; l < 2; ++l) {
    ASSERT_EQ(table.pages(l).size(), table.slots(l) + 2u);
    for (std::uint32_t slot = 0; slot < table.slots(l) + 2; ++slot) {
      const std::int32_t expert = slot < table.slots(l)
                                      ? table.experts(l)[slot]
                                      : static_cast<std::int32_t>(6 + slot - table.slots(l));
      const std::byte* const page = table.pages(l)[slot];
      ASSERT_EQ(page == nullptr, expert == k_no_expert);
      if (page != nullptr) {
        EXPECT_EQ(page[0], mark_of(table.layer_at(l), expert));
      }
    }
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(table.shared_checksums()[2 * l + i],
                xxh3_64(std::span(table.pages(l)[table.slots(l) + i], 128)));
  }

  ASSERT_TRUE(activate(1));
  source_.loads = 0;
  const auto next = prepare(2, rows({0, 1, 4}, {2, 5, 3}));
  ASSERT_TRUE(next) << sentence(next);
  EXPECT_EQ(source_.loads, 2) << "the shared ones and those that stay are not loaded again";
  EXPECT_EQ((*next)->pages(0)[0], table.pages(0)[2]);
  EXPECT_EQ((*next)->pages(1)[0], table.pages(1)[1]);
  for (std::size_t l = 0; l < 2; ++l) {
    EXPECT_EQ((*next)->pages(l)[3], table.pages(l)[table.slots(l)]);
    EXPECT_EQ((*next)->pages(l)[4], table.pages(l)[table.slots(l) + 1]);
  }
  EXPECT_TRUE(std::ranges::equal((*next)->shared_checksums(), table.shared_checksums()));
  ASSERT_TRUE(activate(2));
  store_->release(generation_number(2));
  EXPECT_EQ(count(page_state::serving), 10u);
  EXPECT_EQ(count(page_state::empty), 2u);
}

TEST_F(expert_store_test, shared_experts_are_on_the_bill) {
  const expert_store_options with{.slots = 1024, .spare_pages = 0, .shared = 32768};
  EXPECT_EQ(expert_store::bill(with, model_, 128)->pages,
            std::size_t{2 * (1024 + 32768)} * 128 / (2u << 20) * (2u << 20) + (2u << 20))
      << "two layers, pages of 128 bytes";
}

TEST_F(expert_store_test, pages_elsewhere_are_billed_without_the_hosts_staging) {
  EXPECT_EQ(sentence(expert_store::create({.slots = 3, .memory_max_bytes = 2097151}, model_,
                                          backend_, source_, late_memory_maker())),
            "the expert store needs 2097152 bytes; 2097151 are available");
  EXPECT_EQ(sentence(expert_store::create({.slots = 3, .memory_max_bytes = 2097152}, model_,
                                          backend_, source_, late_memory_maker())),
            "ok");
}

TEST_F(expert_store_test, a_generation_is_prepared_when_its_last_bytes_have_landed) {
  const late_memory_maker late;
  auto made = expert_store::create({.slots = 3, .spare_pages = 2, .memory_max_bytes = 4u << 20},
                                   model_, backend_, source_, late);
  ASSERT_TRUE(made) << sentence(made);
  store_ = std::move(*made);
  const auto prepared = prepare(1, rows({4, 0, -1}, {5, -1, 2}));
  ASSERT_TRUE(prepared) << sentence(prepared);
  EXPECT_EQ(late.made->sends, 4);
  EXPECT_EQ(late.made->under_way(), 0u);
  EXPECT_EQ(count(page_state::verified), 4u);
  expect_true(**prepared);
}

TEST_F(expert_store_test, bytes_that_do_not_land_leave_the_store_as_it_was) {
  const late_memory_maker late;
  auto made = expert_store::create({.slots = 3, .spare_pages = 2, .memory_max_bytes = 4u << 20},
                                   model_, backend_, source_, late);
  ASSERT_TRUE(made) << sentence(made);
  store_ = std::move(*made);
  late.made->broken = true;
  EXPECT_EQ(sentence(prepare(1, rows({4, 0, -1}, {}))), "internal error: the copy broke");
  EXPECT_EQ(sentence(prepare(1, rows({4, -1, -1}, {}))), "internal error: the copy broke")
      << "the last one";
  EXPECT_EQ(count(page_state::empty), 8u);
  EXPECT_EQ(store_->prepared(), nullptr);
  // A load that is given up waits for what is under way before its pages are anyone's again.
  late.made->broken = false;
  source_.loads = 0;
  source_.fails_at = 2;
  EXPECT_EQ(sentence(prepare(1, rows({4, 0, -1}, {}))), "cannot read shard: it broke");
  EXPECT_EQ(late.made->under_way(), 0u);
  EXPECT_EQ(count(page_state::empty), 8u);
}

// Random plans, aborts, cancels and releases: whatever happens, every page is accounted for, and
// the tables that may be read show their own experts' bytes.
TEST_F(expert_store_test, pages_are_never_lost_nor_overwritten_in_use) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    open({.slots = 3, .spare_pages = 2, .memory_max_bytes = 4u << 20});
    std::mt19937_64 random(seed);
    const auto random_row = [&] {
      std::vector<std::int32_t> experts{0, 1, 2, 3, 4, 5, -1};
      std::shuffle(experts.begin(), experts.end(), random);
      experts.resize(3);
      return experts;
    };
    std::uint64_t generation = 1;
    for (int step = 0; step < 60; ++step) {
      switch (random() % 5) {
        case 0:
        case 1:
          source_.loads = 0;
          source_.fails_at = static_cast<int>(random() % 12);
          prepare(generation, rows(random_row(), random_row()));
          break;
        case 2:
          if (activate(generation)) ++generation;
          break;
        case 3: store_->abort(generation_number(generation)); break;
        case 4: store_->release(generation_number(random() % (generation + 1))); break;
      }
      std::set<const std::byte*> used;
      for (const auto& table : {store_->prepared(), store_->active(), store_->draining()}) {
        if (!table) continue;
        expect_true(*table);
        for (std::size_t l = 0; l < table->layers(); ++l)
          used.insert(table->pages(l).begin(), table->pages(l).end());
      }
      used.erase(nullptr);
      ASSERT_EQ(used.size() + count(page_state::empty), 8u) << "seed " << seed;
      ASSERT_EQ(count(page_state::filling), 0u) << "seed " << seed;
      ASSERT_FALSE(HasFailure()) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace moetier::workers
