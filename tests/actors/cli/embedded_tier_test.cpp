#include "actors/cli/embedded_tier.hpp"

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

TEST(embedded_tier, gets_the_benchs_file_and_settings_and_its_own_number_of_workers) {
  command_line line;
  line.config_file = "/etc/moetier.yaml";
  line.flags = {{"model.path", "/m", "flag --model"}, {"transport.spin", "2ms", "flag --set"}};
  EXPECT_EQ(up_arguments(line, 3),
            (std::vector<std::string>{"moetier", "up", "--quiet", "-o", "json", "--rpc-port", "0",
                                      "--config", "/etc/moetier.yaml", "--set", "model.path=/m",
                                      "--set", "transport.spin=2ms", "--workers", "3"}));
}

TEST(embedded_tier, without_a_model_is_a_usage_error_and_starts_nothing) {
  const auto refused = embedded_tier::start({}, "", 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(exit_code_of(refused.error()), exit_code::usage);
}

}  // namespace
}  // namespace moetier::cli
