#include "schemas/resolution/agreement.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "tests/schemas/resolution/small_values.hpp"

namespace moetier::resolution {
namespace {

std::string differing(answer_mode mode, const std::function<void(environment&)>& change) {
  std::vector<named_environment> workers{{"a", cpu_machine()}, {"b", cpu_machine()}};
  change(workers[1].seen);
  return sentence_of(compare(workers, mode));
}

TEST(agreement, names_each_field_that_differs_with_every_workers_value) {
  const auto partial = answer_mode::partial;
  EXPECT_EQ(differing(partial, [](environment&) {}), "");
  EXPECT_EQ(differing(partial, [](environment& e) { e.architecture = "sm_90"; }),
            "architecture is x86_64 on a, sm_90 on b");
  EXPECT_EQ(differing(partial, [](environment& e) { e.numerics_routing = 2; }),
            "numerics_routing is 1 on a, 2 on b");
  EXPECT_EQ(differing(partial, [](environment& e) { e.numerics_quantiser = 2; }),
            "numerics_quantiser is 1 on a, 2 on b");
  EXPECT_EQ(differing(partial, [](environment& e) { e.numerics_combine = 2; }),
            "numerics_combine is 1 on a, 2 on b");
  EXPECT_EQ(differing(partial, [](environment& e) { e.numeric_flags = ""; }),
            "numeric_flags is nearest on a, none on b");
  EXPECT_EQ(differing(partial, [](environment& e) { e.layouts["cpu.avx2"] = "other"; }),
            "layouts.cpu.avx2 is panels on a, other on b");
  EXPECT_EQ(differing(answer_mode::exact, [](environment& e) { e.kernel_set_hash = "99"; }),
            "kernel_set_hash is 1234 on a, 99 on b");
}

TEST(agreement, lets_a_tier_be_upgraded_worker_by_worker) {
  EXPECT_EQ(differing(answer_mode::partial,
                      [](environment& e) {
                        e.build_id = "0.2.0 (def)";
                        e.kernel_set_hash = "99";
                        e.libraries["ucx"] = "1.22";
                        e.memory_bytes = 1;
                        e.layouts["cpu.avx512"] = "wide.1";
                      }),
            "");
}

TEST(agreement, takes_unknown_for_another_value) {
  const auto mode = answer_mode::partial;
  EXPECT_EQ(differing(mode, [](environment& e) { e.numerics_combine.reset(); }),
            "numerics_combine is 1 on a, unknown on b");
  std::vector<named_environment> both{{"a", {}}, {"b", {}}};
  EXPECT_TRUE(compare(both, mode).empty());
}

TEST(agreement, tells_all_differences_at_once) {
  EXPECT_EQ(differing(answer_mode::partial,
                      [](environment& e) {
                        e.architecture = "sm_90";
                        e.numerics_combine = 2;
                      }),
            "architecture is x86_64 on a, sm_90 on b; numerics_combine is 1 on a, 2 on b");
}

}  // namespace
}  // namespace moetier::resolution
