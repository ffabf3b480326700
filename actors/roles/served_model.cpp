#include "actors/roles/served_model.hpp"

#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "schemas/model/routing_override.hpp"

namespace moetier::roles {
namespace {

template <class Number>
expected<void> read_number(std::string_view key, const std::string& text,
                           std::optional<Number>& into) {
  if (text.empty()) return {};
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size())
    return fail(reason::config_invalid, key, text, "a number");
  into = value;
  return {};
}

}  // namespace

expected<model_description> served_model(const config::settings& settings,
                                         const model_description& files) {
  const auto& wish = settings.model.routing;
  routing_override given;
  if (!wish.method.empty()) {
    given.method = routing_method_of(wish.method);
    if (*given.method == routing_method::unspecified) {
      std::string names;
      for (std::uint8_t i = 0; i < k_routing_methods; ++i) {
        const auto method = static_cast<routing_method>(i);
        if (method == routing_method::unspecified) continue;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", routing_method_name(method));
      }
      return fail(reason::config_invalid, "model.routing.method", wish.method, names);
    }
  }
  if (!wish.renormalise.empty()) {
    if (wish.renormalise != "true" && wish.renormalise != "false")
      return fail(reason::config_invalid, "model.routing.renormalise", wish.renormalise,
                  "true or false");
    given.renormalise = wish.renormalise == "true";
  }
  for (const auto& read :
       {read_number("model.routing.scaling", wish.scaling, given.scaling),
        read_number("model.routing.epsilon", wish.epsilon, given.epsilon),
        read_number("model.routing.power", wish.power, given.power),
        read_number("model.routing.groups", wish.groups, given.groups),
        read_number("model.routing.groups_kept", wish.groups_kept, given.groups_kept)}) {
    if (!read) return tl::unexpected(read.error());
  }
  if (given.empty()) return files;
  return apply_routing(given, files);
}

expected<std::optional<quant_kind>> wished_format(const config::settings& settings,
                                                  const model_description& files) {
  quant_kind wish = quant_kind::none;
  if (!quant_of(settings.model.quantise, wish) || wish == quant_kind::none)
    return std::optional<quant_kind>();
  if (files.format.quant != quant_kind::none) {
    return fail(reason::config_invalid, "model.quantise", settings.model.quantise,
                fmt::format("none, as the files are {} already", quant_name(files.format.quant)));
  }
  return std::optional(wish);
}

}  // namespace moetier::roles
