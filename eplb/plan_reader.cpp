#include "eplb/plan_reader.hpp"

#include <fmt/core.h>

#include "schemas/file/printable.hpp"

namespace moetier::eplb {

namespace {

bool within(const nlohmann::json& v, std::int64_t low, std::int64_t high) {
  if (!v.is_number_integer()) return false;
  if (v.is_number_unsigned() && v.get<std::uint64_t>() > INT64_MAX) return false;  // would wrap
  return v.get<std::int64_t>() >= low && v.get<std::int64_t>() <= high;
}

}  // namespace

void plan_reader::refuse(const std::string& what) {
  if (!problem_) problem_ = make_error(reason::file_malformed, std::string(file_), what);
}

void plan_reader::only_keys(const json& object, const std::string& place,
                            const std::set<std::string>& known) {
  if (!object.is_object()) return refuse(fmt::format("{} is not an object", place));
  for (const auto& [key, value] : object.items()) {
    if (!known.contains(key)) refuse(fmt::format("unknown key {} in {}", printable(key), place));
  }
}

std::vector<std::int64_t> plan_reader::integers(const json& object, const std::string& place,
                                                const char* key, std::size_t length,
                                                std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> out;
  const auto at = object.find(key);
  if (at == object.end() || !at->is_array()) {
    refuse(fmt::format("{} needs a list {}", place, key));
    return out;
  }
  if (length != 0 && at->size() != length) {
    refuse(fmt::format("{} {} has {} entries; expected {}", place, key, at->size(), length));
    return out;
  }
  for (std::size_t i = 0; i < at->size(); ++i) {
    const json& v = (*at)[i];
    if (!within(v, low, high)) {
      refuse(
          fmt::format("{} {} entry {} must be an integer from {} to {}", place, key, i, low, high));
      return {};
    }
    out.push_back(v.get<std::int64_t>());
  }
  return out;
}

std::int64_t plan_reader::integer(const json& object, const std::string& place, const char* key,
                                  std::int64_t low, std::int64_t high) {
  const auto at = object.find(key);
  if (at == object.end() || !within(*at, low, high)) {
    refuse(fmt::format("{} needs {}, an integer from {} to {}", place, key, low, high));
    return low;
  }
  return at->get<std::int64_t>();
}

}  // namespace moetier::eplb
