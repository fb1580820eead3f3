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


class Step(torch.nn.Module):
    """One step of decoding; the cache is an argument, or an attribute that is no buffer."""

    def __init__(self, cache=None):
        super().__init__()
        self.model, self.cache = _llama(), cache

    def forward(self, ids, cache=None):
        return self.model(ids, past_key_values=cache or self.cache, use_cache=True).logits


def _filled():
    cache = transformers.StaticCache(config=_llama().config, max_cache_len=16)
    with torch.no_grad():
        Step()(IDS, cache)
    return cache


def static_cache_taken():
    return Step(), (IDS[:, :1], _filled())


def static_cache_kept():
    return Step(_filled()), (IDS[:, :1],)


def static_cache_taken_and_returned():
    return _llama(), {"input_ids": IDS[:, :1], "past_key_values": _filled()}


DECODERS = [
    (cache_returned, ["logits"]),
    (cache_taken, ["logits"]),
    (static_cache, ["output"]),
    (static_cache_taken, ["output"]),
    (static_cache_kept, ["output"]),
    (static_cache_taken_and_returned, ["logits"]),
]

_SLIDING = transformers.MistralConfig(sliding_window=4, num_hidden_layers=1)
REFUSED_CACHES = [
    (lambda: transformers.StaticCache(config=_llama().config, max_cache_len=16), "cache.early_initialization"),
    (lambda: transformers.StaticCache(config=_SLIDING, max_cache_len=16), "found a StaticSlidingWindowLayer"),
]
