#pragma once
// Fields of a JSON plan, read one after another: the first problem is kept, with its place, and
// everything after it is skipped. Internal to the plan file. Thread: owner.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "schemas/base/error.hpp"

namespace moetier::eplb {

class plan_reader final {
 public:
  using json = nlohmann::json;

  explicit plan_reader(std::string_view file) : file_(file) {}

  bool failed() const noexcept { return problem_.has_value(); }
  // Requires: failed().
  unexpected_error problem() const { return unexpected_error(*problem_); }
  void refuse(const std::string& what);

  void only_keys(const json& object, const std::string& place, const std::set<std::string>& known);
  // An integer array of exactly `length` entries in [low, high]; length 0 = any.
  std::vector<std::int64_t> integers(const json& object, const std::string& place, const char* key,
                                     std::size_t length, std::int64_t low, std::int64_t high);
  std::int64_t integer(const json& object, const std::string& place, const char* key,
                       std::int64_t low, std::int64_t high);

 private:
  std::string_view file_;
  std::optional<error> problem_;
};

}  // namespace moetier::eplb
