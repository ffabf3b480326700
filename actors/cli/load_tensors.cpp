#include "actors/cli/load_tensors.hpp"

#include <charconv>

#include <fmt/core.h>

#include "schemas/file/printable.hpp"

namespace moetier::cli {

std::string metadata(const tensor_header& h, std::string_view key) {
  for (const auto& [k, v] : h.metadata)
    if (k == key) return v;
  return {};
}

std::uint32_t metadata_number(const tensor_header& h, std::string_view key) {
  const std::string text = metadata(h, key);
  std::uint32_t n = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), n);
  return wrong == std::errc{} && end == text.data() + text.size() ? n : 0;
}

expected<std::vector<const tensor_info*>> chosen_tensors(const tensor_file& file,
                                                         const load_source& source) {
  std::vector<const tensor_info*> all;
  std::string names;
  for (const tensor_info& t : file.header().tensors) {
    const bool is_asked = source.tensor.empty() ? t.name.starts_with(source.prefix)
                                                : t.name == source.prefix + source.tensor;
    if (is_asked) all.push_back(&t);
    if (names.size() < 160)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(t.name));
  }
  if (!all.empty()) return all;
  return fail(
      reason::file_malformed, file.name(),
      fmt::format("it has no tensor {}{}; it has {}", source.prefix,
                  source.tensor.empty() ? "..." : source.tensor, names.empty() ? "none" : names));
}

}  // namespace moetier::cli
