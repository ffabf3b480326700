// Element type or quantised format of the experts' matrices, and how the files store it.

#include <array>

#include <fmt/core.h>

#include "schemas/file/printable.hpp"
#include "schemas/model/config_rules.hpp"

namespace moetier {
namespace {

using json = nlohmann::json;

constexpr stored_scheme k_fp8_block{.codes_type = "F8_E4M3", .scales = ".weight_scale_inv"};
// As DeepSeek-V4 writes it: scales are powers of two.
constexpr stored_scheme k_fp8_block_e8m0{
    .codes_type = "F8_E4M3", .scales = ".scale", .scales_type = "F8_E8M0"};
constexpr stored_scheme k_fp4_e8m0{
    .codes_type = "I8", .scales = ".scale", .scales_type = "F8_E8M0"};
constexpr stored_scheme k_fp8_tensor{
    .codes_type = "F8_E4M3", .scales = ".weight_scale", .input_scale = ".input_scale"};
constexpr stored_scheme k_nvfp4{.codes_type = "U8",
                                .scales = ".weight_scale",
                                .scales_type = "F8_E4M3",
                                .second = ".weight_scale_2",
                                .input_scale = ".input_scale"};
constexpr stored_scheme k_int4{.codes = ".weight_packed",
                               .codes_type = "I32",
                               .scales = ".weight_scale",
                               .stored_shape = ".weight_shape"};
constexpr stored_scheme k_mxfp4{
    .codes = "_blocks", .codes_type = "U8", .scales = "_scales", .scales_type = "U8"};

struct quantised_form {
  quant_kind quant = quant_kind::none;
  stored_scheme scheme;
};

// torch_dtype is the older name of dtype.
expected<dtype> stored_of(const config_fields& config) {
  constexpr std::string_view k_supported = "bfloat16, float16, float32";
  const json* const newer = config.find("dtype");
  const json* const older = config.find("torch_dtype");
  if (newer != nullptr && older != nullptr && *newer != *older)
    return unsupported_field(
        config.name("dtype"), shown_value(newer),
        fmt::format("{} as {} says", shown_value(older), config.name("torch_dtype")));
  const json* const value = newer != nullptr ? newer : older;
  const std::string field =
      config.name(newer != nullptr || older == nullptr ? "dtype" : "torch_dtype");
  if (value == nullptr || !value->is_string())
    return unsupported_field(field, shown_value(value), k_supported);
  const auto& text = value->get_ref<const std::string&>();
  if (text == "bfloat16") return dtype::bf16;
  if (text == "float16") return dtype::f16;
  if (text == "float32") return dtype::f32;
  return unsupported_field(field, shown_value(value), k_supported);
}

// A key below quantization_config must hold this (JSON text).
struct wanted {
  std::string_view key;
  std::string_view text;
};

expected<void> check_wanted(const config_fields& scheme, std::span<const wanted> all) {
  for (const auto& [key, text] : all) {
    const json* const value = scheme.find(key);
    if ((value == nullptr ? "null" : json_text(*value)) != text)
      return unsupported_field(scheme.name(key), shown_value(value), text);
  }
  return {};
}

expected<quantised_form> fp8_form(const config_fields& whole, const config_fields& scheme,
                                  const family& kin) {
  const bool by_hash = !kin.hash_key.empty();  // DeepSeek-V4 and its names
  const json* experts = whole.find("expert_dtype");
  if (experts == nullptr) experts = scheme.find("expert_dtype");
  if (experts != nullptr) {
    if (!by_hash || (*experts != "fp4" && *experts != "fp8"))
      return unsupported_field("expert_dtype", shown_value(experts),
                               by_hash ? "fp4, fp8" : "none in this family");
    if (*experts == "fp4") return quantised_form{quant_kind::mxfp4, k_fp4_e8m0};
  }
  constexpr std::array k_all{wanted{"weight_block_size", "[128,128]"}};
  if (auto fine = check_wanted(scheme, k_all); !fine) return unexpected_error(fine.error());
  constexpr std::array<std::string_view, 1> k_dynamic{"dynamic"};
  if (auto fine = scheme.one_of("activation_scheme", k_dynamic); !fine)
    return unexpected_error(fine.error());
  return quantised_form{quant_kind::fp8_block, by_hash ? k_fp8_block_e8m0 : k_fp8_block};
}

expected<quantised_form> modelopt_form(const config_fields& scheme) {
  const json* const algorithm = scheme.find("quant_algo");
  if (algorithm != nullptr && *algorithm == "FP8")
    return quantised_form{quant_kind::fp8_tensor, k_fp8_tensor};
  if (algorithm != nullptr && *algorithm == "NVFP4")
    return quantised_form{quant_kind::nvfp4, k_nvfp4};
  return unsupported_field(scheme.name("quant_algo"), shown_value(algorithm), "FP8, NVFP4");
}

expected<quantised_form> compressed_form(const config_fields& scheme) {
  const json* const format = scheme.find("format");
  const bool floats = format != nullptr && *format == "float-quantized";
  if (!floats && (format == nullptr || *format != "pack-quantized"))
    return unsupported_field(scheme.name("format"), shown_value(format),
                             "float-quantized, pack-quantized");
  const json* const groups = scheme.find("config_groups");
  if (groups != nullptr && groups->is_object() && groups->size() != 1)
    return unsupported_field(scheme.name("config_groups"),
                             fmt::format("an object of {} groups", groups->size()),
                             "an object of one group");
  if (groups == nullptr || !groups->is_object() || !groups->begin()->is_object())
    return unsupported_field(scheme.name("config_groups"), shown_value(groups),
                             "an object of one group");
  const std::string prefix =
      fmt::format("{}{}.", scheme.name("config_groups."), printable(groups->begin().key()));
  const config_fields group(*groups->begin(), prefix);
  if (floats) {
    constexpr std::array k_all{wanted{"weights.num_bits", "8"}, wanted{"weights.type", "\"float\""},
                               wanted{"weights.symmetric", "true"}};
    constexpr std::array<std::string_view, 2> k_strategies{"tensor", "channel"};
    if (auto fine = check_wanted(group, k_all); !fine) return unexpected_error(fine.error());
    if (auto fine = group.one_of("weights.strategy", k_strategies, true); !fine)
      return unexpected_error(fine.error());
    return quantised_form{quant_kind::fp8_tensor, k_fp8_tensor};
  }
  constexpr std::array k_all{
      wanted{"weights.num_bits", "4"},     wanted{"weights.type", "\"int\""},
      wanted{"weights.symmetric", "true"}, wanted{"weights.strategy", "\"group\""},
      wanted{"weights.group_size", "128"}, wanted{"weights.actorder", "null"}};
  if (auto fine = check_wanted(group, k_all); !fine) return unexpected_error(fine.error());
  return quantised_form{quant_kind::int4_g128, k_int4};
}

expected<quantised_form> form_of(const config_fields& whole, const config_fields& scheme,
                                 const family& kin) {
  constexpr std::string_view k_methods = "fp8, modelopt, compressed-tensors, mxfp4 (gpt_oss)";
  const json* const method = scheme.find("quant_method");
  if (method == nullptr || !method->is_string())
    return unsupported_field(scheme.name("quant_method"), shown_value(method), k_methods);
  if (*method == "fp8") return fp8_form(whole, scheme, kin);
  if (*method == "modelopt") return modelopt_form(scheme);
  if (*method == "compressed-tensors") return compressed_form(scheme);
  if (*method == "mxfp4" && kin.names.packed_as == packing::columns_interleaved)
    return quantised_form{quant_kind::mxfp4, k_mxfp4};
  return unsupported_field(scheme.name("quant_method"), shown_value(method), k_methods);
}

// The one place of quantization_config, if any.
expected<const json*> quantisation_in(const config_fields& whole, const config_fields& config) {
  constexpr std::string_view k_key = "quantization_config";
  const json* const outer = whole.find(k_key);
  const json* const inner = config.find(k_key);
  if (outer != nullptr && inner != nullptr && *outer != *inner)
    return unsupported_field(config.name(k_key), "another object",
                             fmt::format("what {} says", whole.name(k_key)));
  const json* const found = outer != nullptr ? outer : inner;
  if (found != nullptr && !found->is_object())
    return unsupported_field((outer != nullptr ? whole : config).name(k_key), shown_value(found),
                             "an object");
  return found;
}

}  // namespace

expected<void> read_format(const config_fields& whole, const config_fields& config,
                           const family& kin, model_description& model, stored_form& form) {
  const auto found = quantisation_in(whole, config);
  if (!found) return unexpected_error(found.error());
  error problem;
  if (*found == nullptr) {
    // Multimodal models tell the type beside the text part, or inside it.
    const bool inside = config.find("dtype") != nullptr || config.find("torch_dtype") != nullptr;
    if (!take(stored_of(inside ? config : whole), model.format.stored, problem))
      return unexpected_error(std::move(problem));
    return {};
  }
  const config_fields scheme(**found, "quantization_config.");
  quantised_form quantised;
  if (!take(form_of(whole, scheme, kin), quantised, problem))
    return unexpected_error(std::move(problem));
  model.format = {.quant = quantised.quant};
  form.experts = quantised.scheme;
  for (const auto& [key, width] : {std::pair{kin.hidden_key, model.hidden_size},
                                   std::pair{kin.intermediate_key, model.intermediate_size}}) {
    if (!fits_groups(model.format.quant, width))
      return unsupported_field(
          config.name(key), fmt::format("{}", width),
          fmt::format("multiples of {} for {}", group_columns(model.format.quant),
                      quant_name(model.format.quant)));
  }
  // The shared experts of these files are in another format than the routed ones.
  if (quantised.scheme == k_fp4_e8m0)
    form.shared_refusal = "they are fp8_block where the routed experts are mxfp4";
  return {};
}

}  // namespace moetier
