// Every family's checkpoint through the expert store into a backend's pages and out again: the
// backend's rows must be what another library computed, constants, biases and shared experts
// included.

#include "kernels/backend.hpp"
#include "tests/workers/weights/oracle_fixture.hpp"
#include "workers/store/expert_store.hpp"

namespace moetier::workers {
namespace {

class oracle_backend_test : public oracle_fixture {
 protected:
  struct served {
    std::unique_ptr<kernels::Backend> backend;
    std::unique_ptr<expert_store> store;
    std::shared_ptr<const generation_table> table;
  };

  served serve(std::string_view force) {
    served s;
    auto made = kernels::make_cpu_backend(force,
                                          {.hidden_size = model().hidden_size,
                                           .intermediate_size = model().intermediate_size,
                                           .format = model().format,
                                           .activation = model().activation.kind,
                                           .bias = model().expert_bias},
                                          {}, kernels::detect_cpu_features());
    EXPECT_TRUE(made) << sentence(made);
    if (!made) return s;
    s.backend = std::move(*made);
    auto store = expert_store::create({.slots = model().experts,
                                       .spare_pages = 0,
                                       .shared = shared(),
                                       .memory_max_bytes = std::size_t{1} << 30},
                                      model(), *s.backend, *weights_);
    EXPECT_TRUE(store) << sentence(store);
    if (!store) return s;
    s.store = std::move(*store);
    std::vector<layer_slots> rows;
    for (const layer_id layer : model().moe_layers) {
      rows.push_back({layer, {}});
      for (std::uint32_t e = 0; e < model().experts; ++e)
        rows.back().experts.push_back(static_cast<std::int32_t>(model().experts - 1 - e));
    }
    auto table = s.store->prepare(generation_number(1), plan_hash(1), rows);
    EXPECT_TRUE(table) << sentence(table);
    if (table) s.table = *table;
    return s;
  }

  // Shared experts ride along where one weight of 1 says all about them.
  std::uint32_t shared() const { return model().shared.gated ? 0 : model().shared.count; }

  std::vector<double> run(const served& s, std::size_t l) {
    const layer_id layer = model().moe_layers[l];
    const std::uint32_t h = model().hidden_size;
    const std::uint32_t e_all = model().experts;
    const auto [ids, weights] = choices(layer);
    const std::size_t k = ids.size() / k_rows;
    const std::vector<double> input = expert_rows(layer);
    std::vector<float> rows(input.begin(), input.end());
    std::vector<float> shared_rows = rows;
    std::vector<kernels::expert_entry> entries;
    std::vector<double> all(rows.size(), 0.0);
    for (std::uint32_t row = 0; row < k_rows; ++row) {
      for (std::uint32_t j = 0; j < k; ++j) {
        const auto id = static_cast<std::uint32_t>(ids[row * k + j]);
        auto weight = static_cast<float>(weights[row * k + j]);
        if (id >= e_all) {  // an identity expert: the source's work
          for (std::uint32_t c = 0; c < h; ++c)
            all[row * h + c] += weights[row * k + j] * input[row * h + c];
          continue;
        }
        if (model().weight_at == weight_point::input) {
          for (std::uint32_t c = 0; c < h; ++c) rows[row * h + c] *= weight;
          weight = 1.0F;
        }
        entries.push_back({0, row, static_cast<std::uint16_t>(j),
                           static_cast<std::uint16_t>(e_all - 1 - id), weight});
      }
      for (std::uint32_t i = 0; i < shared(); ++i)
        entries.push_back({1, row, static_cast<std::uint16_t>(k + i),
                           static_cast<std::uint16_t>(e_all + i), 1.0F});
    }
    std::vector<kernels::expert_entry> scratch(entries.size());
    std::vector<std::uint32_t> counts(e_all + shared());
    kernels::group_entries(entries, scratch, counts);
    const auto k_in = static_cast<std::uint32_t>(k) + shared();
    const std::array<kernels::row_region, 2> in{region(rows), region(shared_rows)};
    std::vector<float> routed_out(rows.size(), NAN);
    std::vector<float> shared_out(rows.size(), NAN);
    const std::array<kernels::out_region, 2> out{
        kernels::out_region{reinterpret_cast<std::byte*>(routed_out.data()), h * sizeof(float)},
        kernels::out_region{reinterpret_cast<std::byte*>(shared_out.data()), h * sizeof(float)}};
    std::vector<std::byte> raw(s.backend->workspace_bytes(2 * k_rows, k_in) + 64);
    void* at = raw.data();
    std::size_t space = raw.size();
    std::align(64, raw.size() - 64, at, space);
    EXPECT_EQ(s.backend->run({.in = in,
                              .out = out,
                              .entries = entries,
                              .pages = s.table->pages(l),
                              .k_in = k_in,
                              .mode = kernels::return_mode::partial,
                              .workspace = {static_cast<std::byte*>(at), raw.size() - 64}}),
              kernels::compute_status::ok);
    for (std::size_t n = 0; n < all.size(); ++n)
      all[n] += static_cast<double>(routed_out[n]) + static_cast<double>(shared_out[n]);
    return all;
  }

  kernels::row_region region(const std::vector<float>& rows) const {
    return {reinterpret_cast<const std::byte*>(rows.data()), model().hidden_size * sizeof(float),
            k_rows};
  }
};

TEST_P(oracle_backend_test, pages_of_every_cpu_backend_give_the_librarys_rows) {
  ASSERT_TRUE(weights_);
  for (const char* force : {"reference", "cpu_ref", "auto"}) {
    const served s = serve(force);
    ASSERT_TRUE(s.table) << force;
    for (std::size_t l = 0; l < model().moe_layers.size(); ++l) {
      const layer_id layer = model().moe_layers[l];
      const std::vector<double> rows = shared() > 0 ? wanted_block(layer) : wanted(layer);
      EXPECT_LE(difference(run(s, l), rows), 1e-5)
          << s.backend->identity() << " layer " << layer.value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(families, oracle_backend_test, testing::ValuesIn(oracle_names()),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace moetier::workers
