#include "schemas/model/family.hpp"

#include <algorithm>

#include "schemas/model/families/bailing_hybrid.hpp"
#include "schemas/model/families/dbrx.hpp"
#include "schemas/model/families/deepseek_v2.hpp"
#include "schemas/model/families/deepseek_v3.hpp"
#include "schemas/model/families/deepseek_v32.hpp"
#include "schemas/model/families/deepseek_v4.hpp"
#include "schemas/model/families/dots1.hpp"
#include "schemas/model/families/ernie4_5_moe.hpp"
#include "schemas/model/families/gemma4.hpp"
#include "schemas/model/families/glm4_moe.hpp"
#include "schemas/model/families/glm5_next.hpp"
#include "schemas/model/families/glm_moe_dsa.hpp"
#include "schemas/model/families/gpt_oss.hpp"
#include "schemas/model/families/granitemoe.hpp"
#include "schemas/model/families/hunyuan_v1_moe.hpp"
#include "schemas/model/families/hy_v3.hpp"
#include "schemas/model/families/jamba.hpp"
#include "schemas/model/families/kimi_linear.hpp"
#include "schemas/model/families/lfm2_moe.hpp"
#include "schemas/model/families/llama4.hpp"
#include "schemas/model/families/longcat_flash.hpp"
#include "schemas/model/families/mimo_v2_flash.hpp"
#include "schemas/model/families/minimax.hpp"
#include "schemas/model/families/minimax_m2.hpp"
#include "schemas/model/families/minimax_m3_vl.hpp"
#include "schemas/model/families/mistral4.hpp"
#include "schemas/model/families/mistral_large4.hpp"
#include "schemas/model/families/mixtral.hpp"
#include "schemas/model/families/nemotron_h.hpp"
#include "schemas/model/families/olmoe.hpp"
#include "schemas/model/families/phimoe.hpp"
#include "schemas/model/families/qwen2_moe.hpp"
#include "schemas/model/families/qwen3_5_moe.hpp"
#include "schemas/model/families/qwen3_moe.hpp"
#include "schemas/model/families/qwen3_next.hpp"
#include "schemas/model/families/qwen4_exp.hpp"
#include "schemas/model/families/step3p7.hpp"

namespace moetier {
namespace {

constexpr std::array k_families{
    k_family_bailing_hybrid, k_family_dbrx,          k_family_deepseek_v2,    k_family_deepseek_v3,
    k_family_deepseek_v32,   k_family_deepseek_v4,   k_family_dots1,          k_family_ernie4_5_moe,
    k_family_gemma4,         k_family_glm4_moe,      k_family_glm5_next,      k_family_glm_moe_dsa,
    k_family_gpt_oss,        k_family_granitemoe,    k_family_hunyuan_v1_moe, k_family_hy_v3,
    k_family_jamba,          k_family_kimi_linear,   k_family_lfm2_moe,       k_family_llama4,
    k_family_longcat_flash,  k_family_mimo_v2_flash, k_family_minimax,        k_family_minimax_m2,
    k_family_minimax_m3_vl,  k_family_mistral4,      k_family_mistral_large4, k_family_mixtral,
    k_family_nemotron_h,     k_family_olmoe,         k_family_phimoe,         k_family_qwen2_moe,
    k_family_qwen3_5_moe,    k_family_qwen3_moe,     k_family_qwen3_next,     k_family_qwen4_exp,
    k_family_step3p7,
};

}  // namespace

std::span<const family> families() noexcept { return k_families; }

const family* find_family(std::string_view model_type) noexcept {
  if (model_type.empty()) return nullptr;
  const auto has = [&](const family& f) {
    return std::ranges::find(f.model_types, model_type) != f.model_types.end();
  };
  const auto at = std::ranges::find_if(k_families, has);
  return at == k_families.end() ? nullptr : &*at;
}

}  // namespace moetier
