"""Hugging Face decoders, called as their users call them (needs transformers)."""

import torch
import transformers

IDS = torch.arange(6).reshape(1, 6)


def _llama():
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, vocab_size=100, max_position_embeddings=64)
    heads = dict(num_attention_heads=4, num_key_value_heads=2)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads)).eval()


def cache_returned():
    return _llama(), {"input_ids": IDS}


def cache_taken():
    model = _llama()
    with torch.no_grad():
        past = model(IDS).past_key_values
    return model, {"input_ids": IDS[:, :1], "past_key_values": past}


def static_cache():
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    model = _llama()
    sizes = {"batch_size": 1, "max_cache_len": 16}
    model.generation_config = transformers.GenerationConfig(
        use_cache=True, cache_implementation="static", max_length=16, cache_config=sizes
    )
    module = TorchExportableModuleWithStaticCache(model, **sizes, device="cpu")
    return module, {"input_ids": IDS[:, :1], "cache_position": torch.tensor([0])}


DECODERS = [(cache_returned, ["logits"]), (cache_taken, ["logits"]), (static_cache, ["output"])]
