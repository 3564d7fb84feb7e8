import torch

from pipeline.models.weighted_transformer.simplex import project_to_simplex


def test_result_is_on_the_simplex():
    weights = project_to_simplex(3 * torch.randn(500, 8))
    assert (weights >= 0).all() and ((weights.sum(-1) - 1).abs() < 1e-6).all()


def test_projection_is_idempotent():
    once = project_to_simplex(torch.randn(200, 5, dtype=torch.float64))
    torch.testing.assert_close(project_to_simplex(once), once, rtol=0, atol=1e-12)


def test_simplex_projection_is_nearest_on_a_fine_grid():
    points = torch.randn(40, 3, dtype=torch.float64)
    first, second = torch.meshgrid(torch.arange(101), torch.arange(101), indexing="ij")
    grid = torch.stack((first, second, 100 - first - second), -1).flatten(0, 1)
    grid = grid[(grid >= 0).all(-1)].double() / 100
    ours = (points - project_to_simplex(points)).norm(dim=-1)
    nearest = torch.cdist(points, grid, compute_mode="donot_use_mm_for_euclid_dist").min(-1).values
    assert (ours <= nearest + 1e-12).all() and (nearest - ours < 0.02).all()


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


def test_hand_computed():
    # u = (1, .5, -1): rho = 2 (1 - 0 > 0, .5 - .5/2 > 0, -1 - ... < 0), theta = (1.5 - 1) / 2 = .25
    assert project_to_simplex(torch.tensor([1.0, 0.5, -1.0])).tolist() == [0.75, 0.25, 0.0]
