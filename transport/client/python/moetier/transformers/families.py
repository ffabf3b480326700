"""The model families that attach() takes, as data. In all of them, as the transformers library has them since version
5, an MoE block routes with its own gate and hands rows, expert ids and weights to one module that holds the routed
experts. That module is the seam: everything else of the block stays what it is."""

import collections

# model_types: of config.json, the first is what the tier calls the family. experts: class of the modules to replace.
# gate: the block's attribute that routes, if it returns (logits, weights, ids) and the tier can compute the same from
# the experts' own input; else None. form: how the block calls its experts.
Family = collections.namedtuple("Family", "model_types experts gate form", defaults=("gate", "routed"))

FAMILIES = (
    Family(("bailing_hybrid",), "BailingHybridExperts"),
    Family(("dbrx",), "DbrxExperts", None),
    Family(("deepseek_v2",), "DeepseekV2Experts"),
    Family(("deepseek_v3",), "DeepseekV3Experts"),
    Family(("deepseek_v32",), "DeepseekV32Experts"),
    Family(("deepseek_v4",), "DeepseekV4Experts", None),
    Family(("dots1",), "Dots1Experts"),
    Family(("ernie4_5_moe",), "Ernie4_5_MoeExperts"),
    Family(("gemma4", "gemma4_text"), "Gemma4TextExperts", None),
    Family(("glm4_moe",), "Glm4MoeExperts"),
    Family(("glm5_next", "glm5_next_text"), "Glm5NextTextExperts"),
    Family(("glm_moe_dsa",), "GlmMoeDsaExperts"),
    Family(("gpt_oss",), "GptOssExperts", "router"),
    Family(("granitemoe",), "GraniteMoeExperts", "router"),
    Family(("hunyuan_v1_moe",), "HunYuanMoEV1Experts"),
    Family(("hy_v3",), "HYV3Experts"),
    Family(("jamba",), "JambaExperts", "router"),
    Family(("kimi_linear",), "KimiLinearExperts"),
    Family(("lfm2_moe",), "Lfm2MoeExperts"),
    Family(("llama4_text", "llama4"), "Llama4TextExperts", None, "dense"),
    Family(("longcat_flash",), "LongcatFlashExperts", None),
    Family(("mimo_v2_flash",), "MiMoV2FlashExperts"),
    Family(("minimax",), "MiniMaxExperts"),
    Family(("minimax_m2",), "MiniMaxM2Experts"),
    Family(("minimax_m3_vl", "minimax_m3_vl_text"), "MiniMaxM3VLExperts", None),
    Family(("mistral4", "mistral4_text"), "Mistral4Experts"),
    Family(("mistral_large4", "mistral_large4_text"), "MistralLarge4TextExperts"),
    Family(("mixtral",), "MixtralExperts"),
    Family(("nemotron_h",), "NemotronHExperts", None),
    Family(("olmoe",), "OlmoeExperts"),
    Family(("phimoe",), "PhimoeExperts", "router"),
    Family(("qwen2_moe",), "Qwen2MoeExperts"),
    Family(("qwen3_5_moe", "qwen3_5_moe_text"), "Qwen3_5MoeExperts"),
    Family(("qwen3_moe",), "Qwen3MoeExperts"),
    Family(("qwen3_next",), "Qwen3NextExperts"),
    Family(("qwen4_exp", "qwen4_exp_text"), "Qwen4ExpTextExperts"),
    Family(("step3p7", "step3p5"), "Step3p7Experts", None),
)

# What configurations call the number of experts, and the width of rows where it is not hidden_size.
EXPERT_KEYS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
LATENT_KEYS = ("moe_latent_size",)


def model_types():
    """All model types that can be attached."""
    return tuple(sorted(name for family in FAMILIES for name in family.model_types))


def family_of(model_type):
    """The family of a model type, or None."""
    for family in FAMILIES:
        if model_type in family.model_types:
            return family
    return None
