"""Models of torchvision, small, with random weights: MODELS has name -> function that makes (module, args, kwargs)."""

import functools

import torch
from torchvision import models as tv
from torchvision.models import detection, segmentation, video  # noqa: F401

from .making import made, rand

MODELS = {}


def model(name, build, size=32, **options):
    def make():
        return made(functools.partial(build, **options)), (rand(1, 3, size, size),), {}

    MODELS["tv_" + name] = make


def small_alexnet():
    network = tv.alexnet(num_classes=10)
    network.classifier = torch.nn.Linear(256 * 36, 10)
    return network


def small_vgg():
    network = tv.vgg11_bn(num_classes=10, init_weights=False)
    network.features = tv.vgg.make_layers([16, "M", 32, 32, "M"], batch_norm=True)
    network.classifier = torch.nn.Linear(32 * 49, 10)
    return network


def small_swin(version):
    return tv.swin_transformer.SwinTransformer(
        [2, 2],
        16,
        [2, 2],
        [2, 2],
        [4, 4],
        num_classes=10,
        stochastic_depth_prob=0.0,
        block=tv.swin_transformer.SwinTransformerBlockV2 if version == 2 else None,
        downsample_layer=tv.swin_transformer.PatchMergingV2 if version == 2 else tv.swin_transformer.PatchMerging,
    )


def small_maxvit():
    return tv.MaxVit(
        (32, 32),
        stem_channels=8,
        partition_size=2,
        block_channels=[8, 16],
        block_layers=[1, 1],
        head_dim=8,
        stochastic_depth_prob=0.0,
        num_classes=10,
    )


def small_fcn():
    backbone = tv.resnet18(num_classes=10)
    features = tv._utils.IntermediateLayerGetter(backbone, {"layer4": "out"})
    return segmentation.FCN(features, segmentation.fcn.FCNHead(512, 5))


def small_deeplab():
    class Features(torch.nn.Sequential):
        def forward(self, x):
            return {"out": super().forward(x)}

    features = Features(torch.nn.Conv2d(3, 16, 3, stride=4, padding=1), torch.nn.ReLU())
    return segmentation.DeepLabV3(features, segmentation.deeplabv3.DeepLabHead(16, 5, atrous_rates=(1, 2, 3)))


model("alexnet", small_alexnet, 64)
model("vgg_bn", small_vgg)
model("resnet18", tv.resnet18, num_classes=10)
model("resnet50", tv.resnet50, num_classes=10)
model(
    "resnext", tv.ResNet, block=tv.resnet.Bottleneck, layers=[1, 1, 1, 1], groups=4, width_per_group=4, num_classes=10
)
model("squeezenet", tv.squeezenet1_1, num_classes=10)
model("densenet", tv.DenseNet, growth_rate=8, block_config=(2, 2, 2), num_init_features=16, num_classes=10)
model("googlenet", tv.googlenet, 32, num_classes=10, aux_logits=False, init_weights=False)
model("inception_v3", tv.inception_v3, 96, num_classes=10, aux_logits=False, init_weights=False)
model("mobilenet_v2", tv.mobilenet_v2, width_mult=0.25, num_classes=10)
model("mobilenet_v3", tv.mobilenet_v3_small, width_mult=0.5, num_classes=10)
model("shufflenet_v2", tv.shufflenet_v2_x0_5, num_classes=10)
model("mnasnet", tv.mnasnet0_5, num_classes=10)
model("efficientnet_b0", tv.efficientnet_b0, num_classes=10)
model("regnet_y", tv.regnet_y_400mf, num_classes=10)
model(
    "convnext",
    tv.ConvNeXt,
    num_classes=10,
    block_setting=[tv.convnext.CNBlockConfig(16, 32, 1), tv.convnext.CNBlockConfig(32, None, 1)],
)
model(
    "vit",
    tv.VisionTransformer,
    image_size=32,
    patch_size=8,
    num_layers=2,
    num_heads=4,
    hidden_dim=32,
    mlp_dim=64,
    num_classes=10,
)
model("swin", small_swin, version=1)
model("swin_v2", small_swin, version=2)
model("maxvit", small_maxvit)
model("fcn", small_fcn)
model("deeplab_v3", small_deeplab)
