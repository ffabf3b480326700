#include "kernels/self_test.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cpu_capabilities.hpp"

namespace moetier::kernels {
namespace {

activation_constants constants_for(activation_kind kind) {
  if (kind == activation_kind::swiglu_bias) return {.alpha = 1.702F, .beta = 1.0F, .limit = 7.0F};
  if (kind == activation_kind::situ) return {.alpha = 3.0F, .beta = 4.0F};
  if (kind == activation_kind::swiglu_step) return {.limit = 1.5F};
  return {};
}

expert_shape shape_of(quant_kind quant, activation_kind kind, bool bias = false) {
  return {.hidden_size = 256,
          .intermediate_size = 128,
          .format = {.quant = quant},
          .activation = kind,
          .bias = bias};
}

// Computes by another backend and then spoils one value of one row.
class spoiling_backend final : public Backend {
 public:
  spoiling_backend(std::unique_ptr<Backend> good, float by,
                   operand_form operands = operand_form::f32)
      : good_(std::move(good)), by_(by), operands_(operands) {}

  std::string_view identity() const noexcept override { return "moetier.test.spoiling.none"; }
  std::string_view layout_id() const noexcept override { return good_->layout_id(); }
  bool row_invariant() const noexcept override { return good_->row_invariant(); }
  operand_form operands() const noexcept override { return operands_; }
  const expert_shape& shape() const noexcept override { return good_->shape(); }
  std::size_t page_bytes() const noexcept override { return good_->page_bytes(); }
  void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const override {
    good_->pack_page(tensors, page);
  }
  std::size_t workspace_bytes(std::uint32_t rows, std::uint32_t k_in) const noexcept override {
    return good_->workspace_bytes(rows, k_in);
  }
  compute_status run(const expert_call& call) override {
    const compute_status done = good_->run(call);
    reinterpret_cast<float*>(call.out[0].base + 5 * call.out[0].pitch_bytes)[17] += by_;
    return done;
  }

 private:
  std::unique_ptr<Backend> good_;
  float by_;
  operand_form operands_;
};

std::unique_ptr<Backend> backend_of(std::string_view name, const expert_shape& shape) {
  auto made = make_cpu_backend(name, shape, {}, detect_cpu_features());
  if (!made) ADD_FAILURE() << made.error().text;
  return made ? std::move(*made) : nullptr;
}

TEST(self_test, passes_every_format_and_activation_of_the_readable_backend) {
  for (std::uint8_t q = 0; q < k_quant_kinds; ++q) {
    for (std::uint8_t a = 0; a < k_activation_kinds; ++a) {
      const auto kind = static_cast<activation_kind>(a);
      const auto backend =
          backend_of("cpu_ref", shape_of(static_cast<quant_kind>(q), kind, a % 2 == 0));
      const auto passed = self_test(*backend, constants_for(kind));
      EXPECT_TRUE(passed) << passed.error().text;
    }
  }
}

TEST(self_test, finds_one_wrong_value_and_says_where) {
  const expert_shape shape = shape_of(quant_kind::none, activation_kind::swiglu);
  spoiling_backend spoiled(backend_of("cpu_ref", shape), 1e-3F);
  const auto failed = self_test(spoiled, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().why, reason::backend_unresolved);
  EXPECT_NE(failed.error().text.find(
                "moetier.test.spoiling.none fails its self-test: row 5 column 17 is "),
            std::string::npos)
      << failed.error().text;
  spoiling_backend barely(backend_of("cpu_ref", shape), 1e-7F);
  EXPECT_TRUE(self_test(barely, {}));
}

// One value off by 1e-3 is within what narrowed rows cost; by 5 it is within nothing.
TEST(self_test, judges_narrowed_operands_by_the_norm_of_the_difference) {
  const expert_shape shape = shape_of(quant_kind::none, activation_kind::swiglu);
  for (const operand_form operands : {operand_form::bf16, operand_form::fp8}) {
    spoiling_backend rounded(backend_of("cpu_ref", shape), 1e-3F, operands);
    EXPECT_TRUE(self_test(rounded, {}));
    spoiling_backend wrong(backend_of("cpu_ref", shape), 5.0F, operands);
    const auto failed = self_test(wrong, {});
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().text.find("results differ from the reference's by "),
              std::string::npos)
        << failed.error().text;
    spoiling_backend none(backend_of("cpu_ref", shape), std::nanf(""), operands);
    EXPECT_FALSE(self_test(none, {}));
  }
  spoiling_backend between(backend_of("cpu_ref", shape), 0.2F, operand_form::bf16);
  EXPECT_FALSE(self_test(between, {}));
  spoiling_backend coarse(backend_of("cpu_ref", shape), 0.2F, operand_form::fp8);
  EXPECT_TRUE(self_test(coarse, {}));
}

// A page elsewhere is the one that is computed with.
TEST(self_test, reads_the_page_where_it_was_put) {
  const auto backend = backend_of("cpu_ref", shape_of(quant_kind::none, activation_kind::swiglu));
  const std::vector<std::byte> zeros(backend->page_bytes());
  const auto failed = self_test(*backend, {}, [&](std::span<const std::byte> page) {
    EXPECT_EQ(page.size(), zeros.size());
    return expected<const std::byte*>(zeros.data());
  });
  EXPECT_FALSE(failed);
  const auto lost = self_test(*backend, {}, [](std::span<const std::byte>) {
    return expected<const std::byte*>(fail(reason::device_lost, "x"));
  });
  EXPECT_EQ(lost.error().why, reason::device_lost);
}

}  // namespace
}  // namespace moetier::kernels
