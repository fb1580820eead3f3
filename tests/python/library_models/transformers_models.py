"""Models of Hugging Face transformers, tiny, with random weights: MODELS has name -> function that makes (module, args,
kwargs). The decoders among them come from transformers_decoders.py."""

import torch
import transformers as hf

from .making import ids, rand
from .transformers_decoders import MODELS, ROUTED, SIZES, entry  # noqa: F401 (ROUTED is part of the table)

IMAGE = dict(image_size=32, patch_size=8)


def model(name, kind, inputs, head="", **sizes):
    """hf.{kind}{head} from hf.{kind}Config with `sizes`."""

    def build():
        return getattr(hf, kind + (head or "Model"))(getattr(hf, kind + "Config")(**sizes))

    entry(name, build, (), inputs)


# --- encoders of text ---------------------------------------------------------------------------------------------

MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
TEXT = {"input_ids": ids(2), "attention_mask": MASK}
model("bert", "Bert", TEXT, **SIZES)
model("bert_masked_lm", "Bert", TEXT, head="ForMaskedLM", **SIZES)
model("roberta", "Roberta", TEXT, **SIZES)
model("xlm_roberta", "XLMRoberta", TEXT, head="ForSequenceClassification", **SIZES)
model(
    "distilbert",
    "DistilBert",
    TEXT,
    vocab_size=96,
    dim=32,
    hidden_dim=64,
    n_layers=2,
    n_heads=4,
    max_position_embeddings=64,
)
model("albert", "Albert", TEXT, embedding_size=16, **SIZES)
model("electra", "Electra", TEXT, embedding_size=16, **SIZES)
model("deberta", "Deberta", TEXT, relative_attention=True, pos_att_type=["c2p", "p2c"], **SIZES)
model(
    "deberta_v2", "DebertaV2", TEXT, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8, **SIZES
)
model(
    "modernbert",
    "ModernBert",
    TEXT,
    local_attention=4,
    global_attn_every_n_layers=2,
    **{**SIZES, "cls_token_id": 1, "sep_token_id": 2},
)
model("mpnet", "MPNet", TEXT, **SIZES)
model("megatron_bert", "MegatronBert", TEXT, **SIZES)
model("fnet", "FNet", {"input_ids": ids(2)}, **SIZES)
model("roformer", "RoFormer", TEXT, embedding_size=32, **SIZES)
model("squeezebert", "SqueezeBert", TEXT, embedding_size=32, **SIZES)
model("esm", "Esm", TEXT, position_embedding_type="rotary", mask_token_id=3, **SIZES)
model(
    "xlnet",
    "XLNet",
    {"input_ids": ids(2), "use_mems": False},
    vocab_size=96,
    d_model=32,
    n_layer=2,
    n_head=4,
    d_inner=64,
)
model("convbert", "ConvBert", TEXT, embedding_size=32, **SIZES)
model(
    "layoutlm",
    "LayoutLM",
    {**TEXT, "bbox": torch.arange(48).reshape(2, 6, 4) % 40},
    max_2d_position_embeddings=64,
    **SIZES,
)

# --- encoder and decoder ------------------------------------------------------------------------------------------

BOTH = {"input_ids": ids(2), "decoder_input_ids": ids(2, 4, seed=5), "use_cache": False}
T5 = dict(
    vocab_size=96, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, pad_token_id=0, decoder_start_token_id=0
)
BART = dict(
    vocab_size=96,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=2,
    forced_eos_token_id=2,
)
model("t5", "T5", BOTH, head="ForConditionalGeneration", **T5)
model("t5_encoder", "T5", TEXT, head="EncoderModel", **T5)
model("mt5", "MT5", BOTH, feed_forward_proj="gated-gelu", **T5)
model("bart", "Bart", BOTH, head="ForConditionalGeneration", **BART)
model("mbart", "MBart", BOTH, **BART)
model("pegasus", "Pegasus", BOTH, **BART)
model("m2m_100", "M2M100", BOTH, **BART)
model("marian", "Marian", BOTH, **BART)
model("blenderbot", "Blenderbot", BOTH, **BART)
SPEECH = dict(
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
    vocab_size=96,
)
model(
    "whisper",
    "Whisper",
    {"input_features": rand(1, 16, 32), "decoder_input_ids": ids(1, 4), "use_cache": False},
    head="ForConditionalGeneration",
    num_mel_bins=16,
    max_source_positions=16,
    max_target_positions=16,
    **SPEECH,
)
WAV = dict(
    vocab_size=32,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    conv_dim=(16, 16),
    conv_kernel=(8, 4),
    conv_stride=(4, 2),
    num_conv_pos_embeddings=8,
    num_conv_pos_embedding_groups=2,
)
model("wav2vec2", "Wav2Vec2", {"input_values": rand(1, 400)}, **WAV)
model("hubert", "Hubert", {"input_values": rand(1, 400)}, **WAV)
model(
    "audio_spectrogram_transformer",
    "AST",
    {"input_values": rand(1, 24, 16)},
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    patch_size=8,
    frequency_stride=8,
    time_stride=8,
    max_length=24,
    num_mel_bins=16,
)

# --- images -------------------------------------------------------------------------------------------------------

PIXELS = {"pixel_values": rand(1, 3, 32, 32)}
VIT = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, **IMAGE)
model("vit", "ViT", PIXELS, **VIT)
model("deit", "DeiT", PIXELS, **VIT)
model("beit", "Beit", PIXELS, use_relative_position_bias=True, **VIT)
model("dinov2", "Dinov2", PIXELS, **VIT)
model("dinov2_with_registers", "Dinov2WithRegisters", PIXELS, **VIT)
model("dinov3_vit", "DINOv3ViT", PIXELS, **VIT)
model("ijepa", "IJepa", PIXELS, **VIT)
model("yolos", "Yolos", PIXELS, **{**VIT, "image_size": [32, 32]})
TEXT_TOWER = dict(
    vocab_size=96,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=16,
    projection_dim=32,
    bos_token_id=1,
    eos_token_id=2,
    pad_token_id=0,
)
TOWERS = dict(text_config=TEXT_TOWER, vision_config={**VIT, "projection_dim": 32}, projection_dim=32)
model("clip", "CLIP", {**TEXT, **PIXELS}, **TOWERS)
model("siglip", "Siglip", {"input_ids": ids(2), **PIXELS}, **TOWERS)
model("siglip_vision", "SiglipVision", PIXELS, **VIT)
model("swin", "Swin", PIXELS, image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
model(
    "swinv2",
    "Swinv2",
    PIXELS,
    image_size=32,
    patch_size=2,
    embed_dim=16,
    depths=[2, 2],
    num_heads=[2, 4],
    window_size=4,
)
model("convnext", "ConvNext", PIXELS, hidden_sizes=[16, 32], depths=[1, 1], num_stages=2)
model("convnextv2", "ConvNextV2", PIXELS, hidden_sizes=[16, 32], depths=[1, 1], num_stages=2)
model("resnet", "ResNet", PIXELS, embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic")
model("regnet", "RegNet", PIXELS, embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], groups_width=8)
model("mobilenet_v2", "MobileNetV2", PIXELS, depth_multiplier=0.25, image_size=32)
model(
    "mobilevit",
    "MobileViT",
    PIXELS,
    image_size=32,
    hidden_sizes=[16, 24, 32],
    neck_hidden_sizes=[8, 8, 16, 16, 16, 24, 32],
    num_attention_heads=2,
)
model(
    "segformer",
    "Segformer",
    PIXELS,
    head="ForSemanticSegmentation",
    hidden_sizes=[16, 16, 32, 32],
    depths=[1, 1, 1, 1],
    num_attention_heads=[1, 1, 2, 2],
    decoder_hidden_size=16,
)
model("poolformer", "PoolFormer", PIXELS, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1])
model(
    "pvt",
    "Pvt",
    PIXELS,
    image_size=32,
    hidden_sizes=[16, 16, 32, 32],
    depths=[1, 1, 1, 1],
    num_attention_heads=[1, 1, 2, 2],
)
model(
    "dpt",
    "DPT",
    PIXELS,
    head="ForDepthEstimation",
    backbone_out_indices=[0, 1, 2, 3],
    neck_hidden_sizes=[8, 8, 16, 16],
    fusion_hidden_size=16,
    is_hybrid=False,
    **{**VIT, "num_hidden_layers": 4},
)
model(
    "sam_encoder",
    "SamVision",
    PIXELS,
    initializer_range=0.02,  # the default, 1e-10, makes all but the last bias vanish
    hidden_size=32,
    output_channels=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    window_size=2,
    global_attn_indexes=[1],
    mlp_dim=64,
    **IMAGE,
)
model("vit_mae", "ViTMAE", {**PIXELS, "noise": rand(1, 16).sigmoid()}, mask_ratio=0.5, **VIT)
model("videomae", "VideoMAE", {"pixel_values": rand(1, 4, 3, 32, 32)}, num_frames=4, tubelet_size=2, **VIT)
model(
    "perceiver",
    "Perceiver",
    {"inputs": rand(1, 6, 32)},
    d_model=32,
    num_latents=8,
    d_latents=32,
    num_blocks=1,
    num_self_attends_per_block=2,
    num_self_attention_heads=4,
    num_cross_attention_heads=4,
)
LLAVA_TEXT = dict(model_type="llama", **SIZES, num_key_value_heads=2)
model(
    "llava",
    "Llava",
    {"input_ids": torch.tensor([[5, 95, 95, 95, 95, 7, 8]]), "pixel_values": rand(1, 3, 16, 16), "use_cache": False},
    head="ForConditionalGeneration",
    text_config=LLAVA_TEXT,
    image_token_index=95,
    image_token_id=95,
    vision_config=dict(model_type="clip_vision_model", **{**VIT, "image_size": 16}, projection_dim=32),
)
model(
    "detr",
    "Detr",
    PIXELS,
    head="ForObjectDetection",
    use_timm_backbone=False,
    use_pretrained_backbone=False,
    d_model=32,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    num_queries=5,
    backbone=None,
    backbone_config=dict(
        model_type="resnet",
        embedding_size=16,
        hidden_sizes=[16, 32],
        depths=[1, 1],
        layer_type="basic",
        out_features=["stage2"],
    ),
)
