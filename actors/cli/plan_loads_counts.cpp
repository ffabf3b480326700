#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

#include "actors/cli/integer_tensor.hpp"
#include "actors/cli/load_tensors.hpp"
#include "actors/cli/plan_loads.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::cli {
namespace {

// Which dimension of a tensor is what; 3 = not there.
struct axis_order {
  std::size_t step = 3, layer = 3, expert = 3;
};

expected<axis_order> axes_of(const std::string& text) {
  axis_order order;
  std::size_t dimension = 0;
  std::string_view left = text;
  bool good = !text.empty();
  while (good && !left.empty()) {
    const auto comma = left.find(',');
    const std::string_view word = left.substr(0, comma);
    std::size_t* axis = word == "layer"                      ? &order.layer
                        : word == "expert"                   ? &order.expert
                        : word == "step" || word == "sample" ? &order.step
                                                             : nullptr;
    good = axis != nullptr && *axis == 3 && dimension < 3;
    if (good) *axis = dimension++;
    left = comma == std::string_view::npos ? std::string_view{} : left.substr(comma + 1);
  }
  if (good && order.layer < 3 && order.expert < 3) return order;
  return fail(reason::config_invalid, "--axes", text,
              "layer, expert and, where it is there, step or sample, each once, by commas");
}

// "0,1,2" or "[0, 1, 2]" in the metadata; else 0, 1, 2, ...
expected<std::vector<layer_id>> layers_of(const tensor_file& file, std::size_t count) {
  std::string text = metadata(file.header(), "layer_ids");
  std::vector<layer_id> layers;
  if (text.empty()) {
    for (std::size_t l = 0; l < count; ++l)
      layers.push_back(layer_id{static_cast<std::uint16_t>(l)});
    return layers;
  }
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '[' || c == ']' || c == ','; }, ' ');
  const char* at = text.data();
  const char* const end = at + text.size();
  bool rises = true;
  while (at != end) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    std::uint16_t id = 0;
    const auto [next, wrong] = std::from_chars(at, end, id);
    if (wrong != std::errc{}) break;
    rises = rises && (layers.empty() || layers.back().value < id);
    layers.push_back(layer_id{id});
    at = next;
  }
  if (at != end || !rises || layers.size() != count) {
    return fail(reason::file_malformed, file.name(),
                fmt::format("metadata layer_ids must list {} rising numbers", count));
  }
  return layers;
}

// `wanted` = experts that were told elsewhere; 0 = none were.
expected<void> check_sizes(const tensor_file& file, std::uint64_t layers, std::uint64_t experts,
                           std::uint32_t wanted) {
  const bool good = layers > 0 && layers <= k_layers_max && experts > 0 &&
                    experts <= k_experts_max && (wanted == 0 || wanted == experts);
  if (good) return {};
  return fail(
      reason::file_malformed, file.name(),
      fmt::format(
          "{} layers of {} experts; {} expected; is another --axes meant?", layers, experts,
          wanted != 0 ? fmt::format("{} experts are", wanted) : "at most 1024 layers of 4096 are"));
}

expected<void> add_counts(const tensor_file& file, const tensor_info& t, const axis_order& order,
                          std::vector<std::vector<std::uint64_t>>& counts) {
  std::array<std::uint64_t, 4> size{1, 1, 1, 1};
  for (std::size_t i = 0; i < t.rank; ++i) size[i] = t.sizes[i];
  const std::array<std::uint64_t, 4> pitch{size[1] * size[2], size[2], 1, 0};
  const std::uint64_t layers = size[order.layer];
  const std::uint64_t experts = size[order.expert];
  if (auto sized = check_sizes(file, layers, experts, 0); !sized) return sized;
  const auto numbers = read_integers(file, t);
  if (!numbers) return tl::unexpected(numbers.error());
  if (counts.empty()) counts.assign(layers, std::vector<std::uint64_t>(experts, 0));
  if (counts.size() != layers || counts[0].size() != experts) {
    return fail(reason::file_malformed, file.name(),
                fmt::format("tensor {} has {} layers of {} experts; the ones before have {} of {}; "
                            "--tensor chooses one, --axes names their dimensions",
                            printable(t.name), layers, experts, counts.size(), counts[0].size()));
  }
  for (std::uint64_t s = 0; s < size[order.step]; ++s) {
    for (std::uint64_t l = 0; l < layers; ++l) {
      for (std::uint64_t e = 0; e < experts; ++e) {
        const std::int64_t n =
            (*numbers)[s * pitch[order.step] + l * pitch[order.layer] + e * pitch[order.expert]];
        const auto refuse = [&](const std::string& what) {
          return fail(
              reason::file_malformed, file.name(),
              fmt::format("tensor {} layer {} expert {}: {}", printable(t.name), l, e, what));
        };
        if (n < 0) return refuse(fmt::format("{} is no count", n));
        if (__builtin_add_overflow(counts[l][e], static_cast<std::uint64_t>(n), &counts[l][e]))
          return refuse("the sum is beyond 64 bits");
      }
    }
  }
  return {};
}

}  // namespace

expected<read_loads> loads_from_counts(const load_source& source) {
  auto file = tensor_file::open(source.counts);
  if (!file) return tl::unexpected(file.error());
  const auto tensors = chosen_tensors(**file, source);
  if (!tensors) return tl::unexpected(tensors.error());
  std::vector<std::vector<std::uint64_t>> counts;
  for (const tensor_info* t : *tensors) {
    const auto order = axes_of(!source.axes.empty() ? source.axes
                               : t->rank == 3       ? "step,layer,expert"
                                                    : "layer,expert");
    if (!order) return tl::unexpected(order.error());
    const std::size_t rank = order->step == 3 ? 2 : 3;
    if (t->rank != rank) {
      return fail(reason::file_malformed, (*file)->name(),
                  fmt::format("tensor {} is {}; {} dimensions are needed; --tensor chooses one, "
                              "--axes names its dimensions",
                              printable(t->name), shape_text(*t->type, t->shape()), rank));
    }
    if (auto added = add_counts(**file, *t, *order, counts); !added)
      return tl::unexpected(added.error());
  }
  read_loads out;
  const std::size_t experts = counts[0].size();
  const std::uint32_t told = metadata_number((*file)->header(), "num_experts");
  const std::uint32_t wanted = source.experts != 0 ? source.experts : told;
  if (auto sized = check_sizes(**file, counts.size(), experts, wanted); !sized)
    return tl::unexpected(sized.error());
  const auto layers = layers_of(**file, counts.size());
  if (!layers) return tl::unexpected(layers.error());
  out.loads = {static_cast<std::uint32_t>(experts), *layers, std::move(counts)};
  out.told = fmt::format("{}: {} tensor(s), {} layers, {} experts", (*file)->name(),
                         tensors->size(), layers->size(), experts);
  if (const std::uint32_t k = metadata_number((*file)->header(), "top_k"); k != 0)
    out.told += fmt::format(", {} a token", k);
  return out;
}

}  // namespace moetier::cli
