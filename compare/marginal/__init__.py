"""How far the canonical segmentation lies above the sum over all segmentations."""
