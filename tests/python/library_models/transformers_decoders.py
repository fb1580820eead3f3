"""Decoders of Hugging Face transformers, tiny, with random weights: MODELS has name -> function that makes (module,
args, kwargs).

NAME is a prefill without a cache, NAME_decode one step of the decoder whose static cache holds five tokens."""

import functools

import torch
import transformers as hf
from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

from .making import ids, made

MODELS = {}
# Names of models that round a discrete decision: which experts a token goes to. In bfloat16 two computations of one
# router differ by a rounding, and another expert is another result.
ROUTED = set()

SIZES = dict(
    vocab_size=96,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
GROUPED = dict(num_key_value_heads=2, head_dim=8)


def entry(name, build, args=(), kwargs=None):
    def make():
        return made(build), tuple(args), dict(kwargs or {})

    MODELS[name] = make


def decoder(name, kind, routed=False, decode=False, **sizes):
    """A causal language model of hf.{kind}Config: a prefill, and a decode step."""

    def build():
        torch.manual_seed(0)
        config = getattr(hf, kind + "Config")(**{**SIZES, **sizes})
        return hf.AutoModelForCausalLM.from_config(config)

    entry(name, build, [], {"input_ids": ids(2), "use_cache": False})
    if routed:
        ROUTED.update((name, name + "_decode"))
    if decode:
        MODELS[name + "_decode"] = functools.partial(decode_step, build)


class DecodeStep(TorchExportableModuleWithStaticCache):
    """Its cache is a part of the module too: a cast of the module reaches it."""

    def _apply(self, function, recurse=True):
        super()._apply(function, recurse)
        for i, layer in enumerate(self.static_cache.layers):
            layer.keys, layer.values = self.get_buffer(f"key_cache_{i}"), self.get_buffer(f"value_cache_{i}")
        return self


def decode_step(build):
    module = made(build)
    module.generation_config = hf.GenerationConfig(
        use_cache=True,
        cache_implementation="static",
        max_length=12,
        cache_config={"batch_size": 1, "max_cache_len": 12},
    )
    step = DecodeStep(module, batch_size=1, max_cache_len=12, device="cpu")
    with torch.no_grad():
        step(input_ids=ids(1, 5), cache_position=torch.arange(5))
    return step, (), {"input_ids": ids(1, 1, seed=3), "cache_position": torch.tensor([5])}


decoder("llama", "Llama", decode=True, **GROUPED)
decoder("mistral", "Mistral", decode=True, sliding_window=4, **GROUPED)
decoder("ministral", "Ministral", sliding_window=4, **GROUPED)
decoder("qwen2", "Qwen2", decode=True, **GROUPED)
decoder("qwen3", "Qwen3", decode=True, **GROUPED)
decoder("gemma", "Gemma", **GROUPED)
decoder("gemma2", "Gemma2", decode=True, sliding_window=4, query_pre_attn_scalar=8, **GROUPED)
decoder(
    "gemma3",
    "Gemma3Text",
    decode=True,
    sliding_window=4,
    query_pre_attn_scalar=8,
    layer_types=["sliding_attention", "full_attention"],
    **GROUPED,
)
decoder("phi", "Phi", decode=True)
decoder("phi3", "Phi3", decode=True, num_key_value_heads=2)
decoder("gpt2", "GPT2", decode=True, n_embd=32, n_layer=2, n_head=4, n_positions=64)
decoder(
    "gpt_neo",
    "GPTNeo",
    hidden_size=32,
    num_layers=2,
    num_heads=4,
    attention_types=[[["global", "local"], 1]],
    window_size=4,
)
decoder("gpt_neox", "GPTNeoX", decode=True)
decoder("gpt_j", "GPTJ", n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4)
decoder("gpt_bigcode", "GPTBigCode", n_embd=32, n_layer=2, n_head=4, n_positions=64)
decoder("codegen", "CodeGen", n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4)
decoder("opt", "OPT", decode=True, ffn_dim=64, word_embed_proj_dim=32)
decoder("bloom", "Bloom", n_layer=2, n_head=4)
decoder("falcon", "Falcon", decode=True, new_decoder_architecture=True, num_kv_heads=2)
decoder("mpt", "Mpt", d_model=32, n_heads=4, n_layers=2, max_seq_len=64, expansion_ratio=2)
decoder("olmo", "Olmo", **GROUPED)
decoder("olmo2", "Olmo2", decode=True, **GROUPED)
decoder("stablelm", "StableLm", num_key_value_heads=2)
decoder("starcoder2", "Starcoder2", decode=True, num_key_value_heads=2)
decoder("granite", "Granite", decode=True, **GROUPED)
decoder("cohere", "Cohere", num_key_value_heads=2)
decoder("cohere2", "Cohere2", num_key_value_heads=2, sliding_window=4)
decoder("glm4", "Glm4", **GROUPED)
decoder("smollm3", "SmolLM3", num_key_value_heads=2)
decoder("nemotron", "Nemotron", **GROUPED)
decoder("persimmon", "Persimmon")
decoder("xglm", "XGLM", d_model=32, ffn_dim=64, num_layers=2, attention_heads=4)
decoder("biogpt", "BioGpt")
decoder("ctrl", "CTRL", n_embd=32, dff=64, n_layer=2, n_head=4, n_positions=64)
decoder("diffllama", "DiffLlama", **GROUPED)
decoder("nanochat", "NanoChat", **GROUPED)
decoder("mixtral", "Mixtral", routed=True, decode=True, num_local_experts=4, **GROUPED)
decoder(
    "qwen2_moe",
    "Qwen2Moe",
    routed=True,
    num_experts=4,
    moe_intermediate_size=16,
    shared_expert_intermediate_size=32,
    **GROUPED,
)
decoder(
    "qwen3_moe",
    "Qwen3Moe",
    routed=True,
    decode=True,
    num_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=16,
    **GROUPED,
)
decoder("olmoe", "Olmoe", routed=True, num_experts=4, num_experts_per_tok=2, num_key_value_heads=2)
decoder(
    "deepseek_v2",
    "DeepseekV2",
    routed=True,
    kv_lora_rank=16,
    q_lora_rank=16,
    qk_nope_head_dim=8,
    qk_rope_head_dim=8,
    v_head_dim=8,
    n_routed_experts=4,
    n_group=1,
    topk_group=1,
    num_experts_per_tok=2,
    moe_intermediate_size=16,
    first_k_dense_replace=1,
    n_shared_experts=1,
)
decoder(
    "deepseek_v3",
    "DeepseekV3",
    routed=True,
    kv_lora_rank=16,
    q_lora_rank=16,
    qk_nope_head_dim=8,
    qk_rope_head_dim=8,
    v_head_dim=16,
    n_routed_experts=4,
    n_group=2,
    topk_group=1,
    num_experts_per_tok=2,
    moe_intermediate_size=16,
    first_k_dense_replace=1,
    num_key_value_heads=4,
)
decoder(
    "gpt_oss",
    "GptOss",
    routed=True,
    decode=True,
    num_local_experts=4,
    num_experts_per_tok=2,
    sliding_window=4,
    layer_types=["sliding_attention", "full_attention"],
    **GROUPED,
)
decoder("granitemoe", "GraniteMoe", routed=True, num_local_experts=4, num_experts_per_tok=2, **GROUPED)
decoder("phimoe", "Phimoe", routed=True, num_local_experts=4, num_key_value_heads=2)
decoder(
    "jetmoe", "JetMoe", routed=True, num_local_experts=4, num_experts_per_tok=2, kv_channels=8, num_key_value_heads=2
)
decoder("llama4", "Llama4Text", routed=True, num_local_experts=4, intermediate_size_mlp=64, moe_layers=[1], **GROUPED)
decoder("mamba", "Mamba", state_size=8)
decoder("mamba2", "Mamba2", state_size=8, num_heads=4, head_dim=16, n_groups=1, chunk_size=4)
decoder("falcon_mamba", "FalconMamba", state_size=8)
decoder("rwkv", "Rwkv", attention_hidden_size=32, context_length=64)
decoder(
    "qwen3_next",
    "Qwen3Next",
    routed=True,
    num_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=16,
    shared_expert_intermediate_size=16,
    layer_types=["linear_attention", "full_attention"],
    linear_num_key_heads=2,
    linear_num_value_heads=4,
    linear_key_head_dim=8,
    linear_value_head_dim=8,
    **GROUPED,
)
decoder(
    "jamba",
    "Jamba",
    routed=True,
    num_experts=2,
    attn_layer_period=2,
    attn_layer_offset=1,
    expert_layer_period=2,
    expert_layer_offset=1,
    num_key_value_heads=2,
    mamba_d_state=4,
    use_mamba_kernels=False,
)
decoder(
    "bamba",
    "Bamba",
    num_key_value_heads=2,
    attn_layer_indices=[1],
    mamba_n_heads=4,
    mamba_d_head=16,
    mamba_d_state=8,
    mamba_chunk_size=4,
)
decoder(
    "recurrent_gemma",
    "RecurrentGemma",
    num_key_value_heads=2,
    lru_width=32,
    attention_window_size=8,
    block_types=["recurrent", "attention"],
)
decoder("lfm2", "Lfm2", num_key_value_heads=2, layer_types=["conv", "full_attention"], block_ff_dim=64)
