#pragma once
// The hottest experts of each layer out of the experts document, as JSON (moetier.heatmap/1) and as
// text. Thread: any (pure functions).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "schemas/base/error.hpp"

namespace moetier::cli {

struct heatmap_options {
  std::optional<std::uint32_t> layer;  // model layer; nothing = all of them
  std::uint32_t top = 10;              // experts of each layer
};

// reason::unknown_layer; reason::not_ready before the first plan; reason::frame_malformed.
expected<nlohmann::ordered_json> heatmap_of(std::string_view experts_document,
                                            const heatmap_options& options);
std::string heatmap_text(const nlohmann::ordered_json& map);

}  // namespace moetier::cli
