"""What the columns of the tables mean."""

from __future__ import annotations

IMAGES = {
    "image": "its name below the folder, or its number",
    "label": "what it is, where that is known: generated or real",
    "encoding": "type of its file; array for pixels from memory, features where only those were given, unreadable",
    "width": "width [px]",
    "height": "height [px]",
    "quality": "quality of a JPEG, estimated from its tables [1 to 100]",
    "score": "the score that decides; large is suspicious",
    "p_value": "conformal p-value: share of real images of its type, and itself, that score at least as high [1]",
    "adjusted": "the same after Benjamini and Hochberg over all images decided [1]",
    "threshold": "the score above which an image of its type is flagged",
    "low_threshold": "the score below which an image of its type is flagged too",
    "decision": "flagged, not flagged or undecided",
    "reason": "why it is undecided",
    "notes": "what was done to it when it was read",
    "consistency": "ConV: 1 less the similarity of its features to those of its changed copy [1]",
    "noise": "RIGID: the same of a copy with noise added [1]",
    "flow": "F-ConV: energy of its features less half their consistency, after the flow [1]",
    "flow_energy": "F-ConV's energy part: about 2 for what the flow was fitted to [1]",
    "flow_cosine": "F-ConV's cosine part [1]",
}
POOLS = {
    "kind": "file types calibrated together",
    "n": "calibration images [images]",
    "threshold": "the score above which an image is flagged; missing where they are too few for alpha",
    "low_threshold": "the score below which an image is flagged too",
    "rate_low": "lower end of where the false-alarm rate of this many images lies in 95 % of calibrations [1]",
    "rate_high": "upper end of it [1]",
    "asked": "images asked about that were compared with them [images]",
}
DETECTION = {
    "statistic": "what gives the score",
    "role": "decides, companion or control (no detector at all)",
    "auroc": "probability that a generated image scores above a real one [1]",
    "auroc_low": "lower end of its 95 % interval [1]",
    "auroc_high": "upper end of its 95 % interval [1]",
    "average_precision": "area under the precision-recall steps at this share of generated images [1]",
    "average_precision_low": "lower end of its 95 % interval [1]",
    "average_precision_high": "upper end of its 95 % interval [1]",
    "tpr_1": "generated images found at 1 % false alarms [1]",
    "tpr_1_low": "lower end of its 95 % interval [1]",
    "tpr_1_high": "upper end of its 95 % interval [1]",
    "tpr_5": "generated images found at 5 % false alarms [1]",
    "tpr_5_low": "lower end of its 95 % interval [1]",
    "tpr_5_high": "upper end of its 95 % interval [1]",
    "generated": "generated images [images]",
    "real": "real images [images]",
}
STABILITY = {
    "image": "the image",
    "change": "what was done to it",
    "score": "the score after that; missing where it could not be scored",
    "decision": "the decision after that",
    "same": "whether it is the decision without it; missing where one of them is undecided",
}
TYPES = {
    "set": "calibration, real, generated or asked",
    "encoding": "type of the files",
    "images": "how many [images]",
    "share": "share of the set [1]",
    "quality": "median quality of the JPEGs among them [1 to 100]",
    "side": "median shorter side [px]",
}
