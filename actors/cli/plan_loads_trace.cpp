#include <charconv>
#include <map>

#include <fmt/core.h>

#include "actors/cli/integer_tensor.hpp"
#include "actors/cli/load_tensors.hpp"
#include "actors/cli/plan_loads.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::cli {
namespace {

// The number N of a name that ends with layerN.
bool layer_number(std::string_view name, std::uint16_t& into) {
  const auto at = name.rfind("layer");
  if (at == std::string_view::npos) return false;
  const std::string_view digits = name.substr(at + 5);
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), into);
  return !digits.empty() && wrong == std::errc{} && end == digits.data() + digits.size();
}

}  // namespace

expected<read_loads> loads_from_trace(const load_source& source) {
  auto file = tensor_file::open(source.trace);
  if (!file) return tl::unexpected(file.error());
  const auto tensors = chosen_tensors(**file, source);
  if (!tensors) return tl::unexpected(tensors.error());
  const std::uint32_t told = metadata_number((*file)->header(), "num_experts");
  const std::uint32_t experts = source.experts != 0 ? source.experts : told;
  if (experts == 0 || experts > k_experts_max) {
    return fail(reason::config_invalid, "--experts", experts == 0 ? "not given" : "too large",
                "1 to 4096, or --model: a trace does not say how many there are");
  }
  read_loads out;
  std::map<std::uint16_t, std::vector<std::uint64_t>> by_layer;
  std::size_t used = 0;
  for (const tensor_info* t : *tensors) {
    std::uint16_t layer = 0;
    if (!layer_number(t->name, layer)) continue;
    if (t->rank != 2) {
      return fail(reason::file_malformed, (*file)->name(),
                  fmt::format("tensor {} is {}; rows of expert ids are needed", printable(t->name),
                              shape_text(*t->type, t->shape())));
    }
    const auto ids = read_integers(**file, *t);
    if (!ids) return tl::unexpected(ids.error());
    auto& counts = by_layer[layer];
    counts.resize(experts, 0);
    for (std::size_t i = 0; i < ids->size(); ++i) {
      const std::int64_t id = (*ids)[i];
      if (id == -1) continue;
      if (id < 0 || id >= std::int64_t{experts}) {
        return fail(reason::file_malformed, (*file)->name(),
                    fmt::format("tensor {} row {}: expert {} of {}", printable(t->name),
                                i / t->sizes[1], id, experts));
      }
      ++counts[static_cast<std::size_t>(id)];
    }
    ++used;
  }
  if (used == 0)
    return fail(reason::file_malformed, (*file)->name(),
                fmt::format("it has no tensor {}layerN with expert ids", source.prefix));
  out.loads.experts = experts;
  for (auto& [layer, counts] : by_layer) {
    out.loads.layers.push_back(layer_id{layer});
    out.loads.counts.push_back(std::move(counts));
  }
  out.told = fmt::format("{}: {} trace(s), {} layers, {} experts", (*file)->name(), used,
                         out.loads.layers.size(), experts);
  return out;
}

}  // namespace moetier::cli
