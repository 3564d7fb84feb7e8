import torch

from pipeline.models.weighted_transformer.model import project_to_simplex


def test_projection_is_idempotent():
    once = project_to_simplex(torch.randn(200, 5, dtype=torch.float64))
    torch.testing.assert_close(project_to_simplex(once), once, rtol=0, atol=1e-12)


def test_projection_equals_search_over_supports():
    """Brute force: the best of the equality-constrained projections onto every subset of coordinates."""
    for point in torch.randn(30, 4, dtype=torch.float64):
        candidates = []
        for subset in range(1, 16):
            support = torch.tensor([bool(subset >> i & 1) for i in range(4)])
            weights = torch.where(support, point - (point[support].sum() - 1) / support.sum(), 0.0)
            if (weights >= 0).all():
                candidates.append(weights)
        best = min(candidates, key=lambda weights: (weights - point).norm())
        torch.testing.assert_close(project_to_simplex(point), best, rtol=0, atol=1e-12)
