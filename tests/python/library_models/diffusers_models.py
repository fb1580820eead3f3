"""Models of diffusers, tiny, with random weights: MODELS has name -> function that makes (module, args, kwargs)."""

import torch
import diffusers

from .making import made, rand

MODELS = {}
STEP = torch.tensor([3])


def model(name, kind, inputs, **sizes):
    def make():
        return made(lambda: getattr(diffusers, kind)(**sizes)), (), dict(inputs)

    MODELS["diffusers_" + name] = make


LATENT = rand(1, 4, 8, 8)
TEXT = rand(1, 5, 32, seed=2)
BLOCKS = dict(block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8)
model(
    "unet",
    "UNet2DConditionModel",
    {"sample": LATENT, "timestep": STEP, "encoder_hidden_states": TEXT},
    sample_size=8,
    in_channels=4,
    out_channels=4,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    cross_attention_dim=32,
    attention_head_dim=8,
    **BLOCKS,
)
model(
    "unet_unconditional",
    "UNet2DModel",
    {"sample": rand(1, 3, 16, 16), "timestep": STEP},
    sample_size=16,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    attention_head_dim=8,
    **BLOCKS,
)
model(
    "vae",
    "AutoencoderKL",
    {"sample": rand(1, 3, 16, 16)},
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    latent_channels=4,
    **BLOCKS,
)
model(
    "tiny_vae",
    "AutoencoderTiny",
    {"sample": rand(1, 3, 16, 16)},
    encoder_block_out_channels=(16, 16),
    decoder_block_out_channels=(16, 16),
    num_encoder_blocks=(1, 2),
    num_decoder_blocks=(2, 1),
)
model(
    "dit",
    "DiTTransformer2DModel",
    {"hidden_states": LATENT, "timestep": STEP, "class_labels": torch.tensor([1])},
    num_attention_heads=4,
    attention_head_dim=8,
    in_channels=4,
    out_channels=8,
    num_layers=2,
    norm_num_groups=8,
    sample_size=8,
    patch_size=2,
    num_embeds_ada_norm=10,
)
model(
    "pixart",
    "PixArtTransformer2DModel",
    {
        "hidden_states": LATENT,
        "timestep": STEP,
        "encoder_hidden_states": TEXT,
        "added_cond_kwargs": {"resolution": None, "aspect_ratio": None},
    },
    num_attention_heads=4,
    attention_head_dim=8,
    in_channels=4,
    out_channels=8,
    num_layers=2,
    cross_attention_dim=32,
    sample_size=8,
    patch_size=2,
    caption_channels=32,
    use_additional_conditions=False,
)
model(
    "sd3",
    "SD3Transformer2DModel",
    {
        "hidden_states": LATENT,
        "timestep": STEP,
        "encoder_hidden_states": TEXT,
        "pooled_projections": rand(1, 16, seed=3),
    },
    sample_size=8,
    patch_size=2,
    in_channels=4,
    num_layers=2,
    attention_head_dim=8,
    num_attention_heads=4,
    joint_attention_dim=32,
    caption_projection_dim=32,
    pooled_projection_dim=16,
    out_channels=4,
    pos_embed_max_size=16,
)
model(
    "flux",
    "FluxTransformer2DModel",
    {
        "hidden_states": rand(1, 16, 4),
        "timestep": torch.tensor([0.3]),
        "encoder_hidden_states": TEXT,
        "pooled_projections": rand(1, 16, seed=3),
        "img_ids": torch.stack([torch.zeros(16), torch.arange(16.0) // 4, torch.arange(16.0) % 4], -1),
        "txt_ids": torch.zeros(5, 3),
    },
    patch_size=1,
    in_channels=4,
    num_layers=1,
    num_single_layers=1,
    attention_head_dim=16,
    num_attention_heads=2,
    joint_attention_dim=32,
    pooled_projection_dim=16,
    axes_dims_rope=(4, 4, 8),
)
model(
    "auraflow",
    "AuraFlowTransformer2DModel",
    {"hidden_states": LATENT, "timestep": torch.tensor([0.3]), "encoder_hidden_states": TEXT},
    sample_size=8,
    patch_size=2,
    in_channels=4,
    num_mmdit_layers=1,
    num_single_dit_layers=1,
    attention_head_dim=8,
    num_attention_heads=4,
    joint_attention_dim=32,
    caption_projection_dim=32,
    out_channels=4,
    pos_embed_max_size=16,
)
model(
    "sana",
    "SanaTransformer2DModel",
    {"hidden_states": LATENT, "timestep": STEP, "encoder_hidden_states": TEXT},
    in_channels=4,
    out_channels=4,
    num_layers=1,
    attention_head_dim=8,
    num_attention_heads=4,
    num_cross_attention_heads=4,
    cross_attention_head_dim=8,
    cross_attention_dim=32,
    caption_channels=32,
    sample_size=8,
    patch_size=1,
)
model(
    "wan",
    "WanTransformer3DModel",
    {"hidden_states": rand(1, 4, 2, 8, 8), "timestep": STEP, "encoder_hidden_states": TEXT},
    patch_size=(1, 2, 2),
    num_attention_heads=2,
    attention_head_dim=12,
    in_channels=4,
    out_channels=4,
    text_dim=32,
    freq_dim=16,
    ffn_dim=32,
    num_layers=1,
    cross_attn_norm=True,
    rope_max_seq_len=32,
)
model(
    "cogvideox",
    "CogVideoXTransformer3DModel",
    {"hidden_states": rand(1, 2, 4, 8, 8), "timestep": STEP, "encoder_hidden_states": TEXT},
    num_attention_heads=2,
    attention_head_dim=16,
    in_channels=4,
    out_channels=4,
    time_embed_dim=8,
    text_embed_dim=32,
    num_layers=1,
    sample_width=8,
    sample_height=8,
    sample_frames=5,
    patch_size=2,
    temporal_compression_ratio=4,
    max_text_seq_length=5,
)
model(
    "controlnet",
    "ControlNetModel",
    {"sample": LATENT, "timestep": STEP, "encoder_hidden_states": TEXT, "controlnet_cond": rand(1, 3, 64, 64)},
    in_channels=4,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    cross_attention_dim=32,
    attention_head_dim=8,
    conditioning_embedding_out_channels=(8, 8, 8, 16),
    **BLOCKS,
)
model(
    "vq",
    "VQModel",
    {"sample": rand(1, 3, 16, 16)},
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    latent_channels=4,
    num_vq_embeddings=16,
    **BLOCKS,
)
