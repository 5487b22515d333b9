"""Vision backbones: any network from images to feature vectors, loaded from disk."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "content": ["digest"],
        "efficientnet_lite": ["EfficientNetLite0"],
        "loading": ["VisionBackbone"],
    },
)
