"""Models of timm, small, with random weights: MODELS has name -> function that makes (module, args, kwargs)."""

import timm
from timm.layers import GatedMlp
from timm.models.convmixer import ConvMixer
from timm.models.metaformer import MetaFormer
from timm.models.mlp_mixer import MlpMixer, SpatialGatingBlock
from timm.models.volo import VOLO

from .making import made, rand

MODELS = {}


def model(name, architecture, size=32, **options):
    def make():
        return made(lambda: timm.create_model(architecture, num_classes=10, **options)), (rand(1, 3, size, size),), {}

    MODELS["timm_" + name] = make


def module(name, kind, size=32, **options):
    def make():
        return made(lambda: kind(num_classes=10, **options)), (rand(1, 3, size, size),), {}

    MODELS["timm_" + name] = make


VIT = dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4)
model("vit", "vit_tiny_patch16_224", **VIT)
model("vit_registers", "vit_small_patch14_reg4_dinov2", **VIT)
model("vit_relative", "vit_relpos_small_patch16_224", **VIT)
model("deit3", "deit3_small_patch16_224", **VIT)
model("beit", "beit_base_patch16_224", **VIT)
model("eva02", "eva02_tiny_patch14_224", **VIT)
model("cait", "cait_xxs24_224", **VIT)
module("mixer", MlpMixer, img_size=32, patch_size=8, embed_dim=32, num_blocks=2)
module(
    "gmlp",
    MlpMixer,
    img_size=32,
    patch_size=8,
    embed_dim=32,
    num_blocks=2,
    block_layer=SpatialGatingBlock,
    mlp_ratio=2,
    mlp_layer=GatedMlp,
)
module("convmixer", ConvMixer, dim=32, depth=2, patch_size=4)
model(
    "swin",
    "swin_tiny_patch4_window7_224",
    img_size=32,
    patch_size=2,
    window_size=4,
    embed_dim=16,
    depths=(2, 2),
    num_heads=(2, 4),
)
model(
    "swin_v2",
    "swinv2_tiny_window8_256",
    img_size=32,
    patch_size=2,
    window_size=4,
    embed_dim=16,
    depths=(2, 2),
    num_heads=(2, 4),
)
model("convnext", "convnext_atto", depths=(1, 1, 1, 1), dims=(16, 16, 32, 32))
model("resnet18", "resnet18")
model("resnetv2", "resnetv2_50", layers=(1, 1, 1, 1), channels=(32, 32, 64, 64))
model("resnest", "resnest14d")
model("seresnet", "seresnet18")
model("efficientnet", "efficientnet_b0")
model("mobilenet_v3", "mobilenetv3_small_050")
model("ghostnet", "ghostnet_050")
model("rexnet", "rexnet_100")
model("regnet", "regnetx_002")
model("nfnet", "nf_resnet26")
model("hrnet", "hrnet_w18_small")
model("dla", "dla34")
model("vovnet", "ese_vovnet19b_dw")
model("maxvit", "maxvit_rmlp_pico_rw_256", 64, img_size=64)
model("coatnet", "coatnet_pico_rw_224", 64, img_size=64)
model("mobilevit", "mobilevit_xxs", 64)
module("poolformer", MetaFormer, depths=(1, 1, 1, 1), dims=(16, 16, 32, 32))
model("pvt_v2", "pvt_v2_b0", 64)
model("levit", "levit_128s", img_size=32)
model("edgenext", "edgenext_xx_small", 64)
model("xcit", "xcit_nano_12_p16_224", **VIT)
model("mambaout", "mambaout_femto", depths=(1, 1, 1, 1), dims=(16, 16, 32, 32))
model("fastvit", "fastvit_t8", 64)
model("hiera", "hiera_tiny_224", 32, img_size=(32, 32), embed_dim=16, stages=(1, 1, 1, 1), num_heads=1)
module("volo", VOLO, img_size=32, layers=(1, 1, 1, 1), embed_dims=(32, 32, 32, 32), num_heads=(2, 2, 2, 2))
