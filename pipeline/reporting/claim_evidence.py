"""The evidence for one claim, of whatever kind."""

from dataclasses import dataclass

import numpy as np

from pipeline.config import load_run
from pipeline.evaluation.score_file import metric_named, read_statistics
from pipeline.experiment.claim import (
    AgreementClaim,
    AlignmentClaim,
    BeyondTrainingClaim,
    BranchesClaim,
    CheaperClaim,
    Claim,
    CloseClaim,
    CurvesClaim,
    EqualTimeClaim,
    ExponentClaim,
    GateClaim,
    LevelClaim,
    LongSentencesClaim,
    OrderClaim,
    RatioClaim,
    StepsClaim,
    Term,
    TrainingLossClaim,
    as_term,
)
from pipeline.kinds.evidence import Evidence, Sample, above, difference, over_seeds, sample, smaller_factor
from pipeline.kinds.training_curves import BranchCurve, branch_curves, mean_gap
from pipeline.records.probes import AlignmentMaps
from pipeline.reporting.claim_sources import ClaimSources, NotRun

RESOLUTION_NATS = 0.01
"""Losses of two single trainings that differ by less, a hundredth of the perplexity, are not told apart."""


FEWEST_WORDS = 20
"""Without which a mean over words says nothing."""


@dataclass(frozen=True)
class Findings:
    """What was measured for a claim."""

    ours: str
    evidence: list[Evidence]
    test: str


class Gatherer(ClaimSources):
    """Evidence for the claims of one paper, each kind in a method of its own."""

    def gather(self, claim: Claim) -> Findings:
        """Raises NotRun, naming what is missing."""
        if not self.project.is_tested(claim):
            raise NotRun(f"can be tested at scale {', '.join(claim.scales)} only")
        match claim:
            case OrderClaim():
                return self.order(claim)
            case LevelClaim():
                return self.level(claim)
            case CloseClaim():
                return self.close(claim)
            case RatioClaim():
                return self.ratio(claim)
            case AlignmentClaim():
                return self.alignment(claim)
            case AgreementClaim():
                return self.agreement(claim)
            case TrainingLossClaim():
                return self.training_loss(claim)
            case StepsClaim():
                return self.steps(claim)
            case CurvesClaim():
                return self.curves(claim)
            case BranchesClaim():
                return self.branches(claim)
            case LongSentencesClaim():
                return self.long_sentences(claim)
            case GateClaim():
                return self.gates(claim)
            case BeyondTrainingClaim():
                return self.beyond_training(claim)
            case EqualTimeClaim():
                return self.equal_time(claim)
            case ExponentClaim():
                return self.exponent(claim)
            case CheaperClaim():
                return self.cheaper(claim)
        raise ValueError(f"no way to test a claim of kind {claim.kind!r}")

    def order(self, claim: OrderClaim) -> Findings:
        score = self.score(claim.score)
        terms = [as_term(term) for term in claim.ascending]
        samples = [self.sample(term, score) for term in terms]
        if nothing_learned(samples, score.metric):
            return Findings(f"{listed(terms, samples)}: nothing was learned", [], self.sentence_test(score))
        evidence = [
            difference(less(terms[i + 1], terms[i]), samples[i + 1], samples[i], claim.margin)
            for i in range(len(terms) - 1)
        ]
        return Findings(listed(terms, samples), evidence, self.sentence_test(score))

    def level(self, claim: LevelClaim) -> Findings:
        score, term = self.score(claim.score), as_term(claim.term)
        measured = self.sample(term, score)
        evidence = above(f"{term.label} above {claim.at_least:g}", measured, claim.at_least)
        return Findings(listed([term], [measured]), [evidence], self.sentence_test(score).removeprefix("paired "))

    def close(self, claim: CloseClaim) -> Findings:
        score = self.score(claim.score)
        one, other = (as_term(term) for term in claim.terms)
        samples = [self.sample(term, score) for term in (one, other)]
        if nothing_learned(samples, score.metric):
            return Findings(f"{listed([one, other], samples)}: nothing was learned", [], self.sentence_test(score))
        evidence = [
            difference(f"{claim.margin:g} {word} ({less(one, other)})", *samples, claim.margin, sign)
            for word, sign in (("plus", 1), ("less", -1))
        ]
        return Findings(listed([one, other], samples), evidence, self.sentence_test(score))

    def ratio(self, claim: RatioClaim) -> Findings:
        score = self.score(claim.score)
        terms = [[as_term(term) for term in pair] for pair in (claim.smaller, claim.larger)]
        samples = [tuple(self.sample(term, score) for term in pair) for pair in terms]
        if any(not one.by_seed.all() for pair in samples for one in pair):
            return Findings("a value is zero, of which there is no factor", [], self.sentence_test(score))
        ours = ", ".join(
            f"{start.label} to {end.label} x {b.mean / a.mean:.2f}"
            for (start, end), (a, b) in zip(terms, samples, strict=True)
        )
        return Findings(ours, [smaller_factor("logarithm of both factors' ratio", *samples)], self.sentence_test(score))

    def alignment(self, claim: AlignmentClaim) -> Findings:
        gaps, ours = [], []
        for run, baseline in self.paired(claim):
            means = []
            for one in (run, baseline):
                path = self.folders.folder(one) / f"alignments/{claim.split}.json"
                self.need(path)
                means.append(mean(AlignmentMaps.read(path).entropy))
            gaps.append(means[1] - means[0])
            ours.append(f"{means[0]:.2f} and {means[1]:.2f} nats")
        name = f"{claim.baseline} less {claim.system}, entropy of attention over the training (nats)"
        return Findings("; ".join(ours), [over_seeds(name, gaps, RESOLUTION_NATS)], self.seed_test())

    def agreement(self, claim: AgreementClaim) -> Findings:
        """Only pairs that the first metric tells apart count: among equals there is no order to agree on."""
        first, second = (self.score(name) for name in claim.scores)
        evidence, ours = [], []
        for one, other in ([as_term(term) for term in pair] for pair in claim.pairs):
            reference = difference("", self.sample(one, first), self.sample(other, first))
            compared = self.sample(one, second), self.sample(other, second)
            told_apart = reference.low > 0 or reference.high < 0
            signs = f"{reference.value:+.2f} {first.metric}, {compared[0].mean - compared[1].mean:+.2f} {second.metric}"
            ours.append(f"{less(one, other)}: {signs}" + ("" if told_apart else " (not told apart)"))
            if told_apart:
                sign = 1 if reference.value > 0 else -1
                evidence.append(difference(f"{less(one, other)}, {second.metric}, {sign:+d} x", *compared, sign=sign))
        return Findings("; ".join(ours), evidence, self.sentence_test(first))

    def training_loss(self, claim: TrainingLossClaim) -> Findings:
        losses = [
            [float(self.fit_curve(run).train[-1]) for run in self.runs(system, claim.dataset)]
            for system in claim.ascending
        ]
        evidence = []
        for i in range(len(losses) - 1):
            gaps = [larger - smaller for smaller, larger in zip(losses[i], losses[i + 1], strict=True)]
            evidence.append(over_seeds(f"{claim.ascending[i + 1]} less {claim.ascending[i]}", gaps, RESOLUTION_NATS))
        ours = ", ".join(f"{name} {mean(values):.3f}" for name, values in zip(claim.ascending, losses, strict=True))
        return Findings(f"{ours} nats a subword", evidence, self.seed_test())

    def steps(self, claim: StepsClaim) -> Findings:
        """In nats: what the system's dev loss has fallen below the baseline's final one, in the share of its steps."""
        gains, shares, times = [], [], []
        for run, baseline in self.paired(claim):
            (ours, theirs), cost = (self.curve(run), self.curve(baseline)), [self.seconds(run), self.seconds(baseline)]
            target, total = float(theirs.dev[-1]), float(theirs.steps[-1])
            if claim.share * total < ours.steps[0]:
                raise NotRun(f"{self.folders.folder(run)} was not validated in the first {claim.share:.0%} of steps")
            gains.append(target - ours.best_dev_within(claim.share * total))
            shares.append(ours.steps_to(target) / total)
            times.append(shares[-1] * total / ours.steps[-1] * cost[0] / cost[1])
        reached = "; ".join(
            f"after {share:.0%} of its steps, {time:.0%} of its time" if share < float("inf") else "not reached"
            for share, time in zip(shares, times, strict=True)
        )
        name = f"{claim.baseline}'s final dev loss less {claim.system}'s in {claim.share:.0%} of its steps (nats)"
        return Findings(
            f"{claim.baseline}'s final dev loss: {reached}",
            [over_seeds(name, gains, RESOLUTION_NATS)],
            self.seed_test(),
        )

    def curves(self, claim: CurvesClaim) -> Findings:
        gaps = [mean_gap(self.fit_curve(run), self.fit_curve(baseline)) for run, baseline in self.paired(claim)]
        if any(gap is None for gap in gaps):
            return Findings("the curves have no training loss in common", [], self.seed_test())
        name = f"{claim.baseline} less {claim.system}, dev loss at equal training loss (nats)"
        return Findings(f"mean gap {mean(gaps):+.3f} nats", [over_seeds(name, gaps, RESOLUTION_NATS)], self.seed_test())

    def branches(self, claim: BranchesClaim) -> Findings:
        found: dict[str, list[float]] = {}
        for run in self.runs(claim.system, claim.dataset):
            folder = self.trained(run)
            warmup = load_run(folder / "run.yaml").training.branch_warmup_steps
            for curve in branch_curves(folder, claim.layer):
                found.setdefault(curve.name, []).append(branch_quantity(claim, curve, warmup))
        evidence = []
        for name, values in found.items():
            evidence.append(over_seeds(f"{name} above {claim.at_least:g}", [v - claim.at_least for v in values]))
            if claim.at_most is not None:
                evidence.append(over_seeds(f"{name} below {claim.at_most:g}", [claim.at_most - v for v in values]))
        ours = ", ".join(f"{name} {mean(values):.2f}" for name, values in found.items())
        return Findings(ours, evidence, self.seed_test())

    def long_sentences(self, claim: LongSentencesClaim) -> Findings:
        score = self.score(claim.score)
        rows = [pooled(self.by_split(system, score)) for system in (claim.system, claim.baseline)]
        lengths = self.lengths(claim.system, score, score.splits)
        on_all, on_long = (
            [self.part(one, lengths > shortest, score) for one in rows] for shortest in (0, claim.longer_than)
        )
        if not any(one.by_seed.any() for one in on_long):
            return Findings(f"no source of more than {claim.longer_than} words, or nothing right", [], "")
        found = difference(
            f"advantage on more than {claim.longer_than} words less that on all", gained(*on_long), gained(*on_all)
        )
        ours = f"{gained(*on_all).mean:+.2f} on all, {gained(*on_long).mean:+.2f} on long sentences"
        return Findings(f"{claim.system} less {claim.baseline}: {ours}", [found], self.sentence_test(score))

    def beyond_training(self, claim: BeyondTrainingClaim) -> Findings:
        """Raises NotRun, counting them, when sentences are no longer than one that a system was trained on."""
        score, systems = self.score(claim.score), (claim.system, claim.baseline)
        rows = {system: self.by_split(system, score) for system in systems}
        longest = max(self.longest_trained_on(system, score) for system in systems)
        lengths = self.lengths(claim.system, score, [claim.longer])
        if not (lengths > longest).all():
            found = f"{(lengths <= longest).sum()} of {len(lengths)} sentences of {claim.longer}"
            raise NotRun(f"{found} have no more than the {longest} subwords of the longest trained on")
        longer = np.concatenate(
            [np.full(len(one), split == claim.longer) for split, one in rows[claim.system][0].items()]
        )
        samples = {
            system: tuple(self.part(pooled(rows[system]), chosen, score) for chosen in (~longer, longer))
            for system in systems
        }
        factors = ", ".join(
            f"{name} {within.mean:.2f} to {beyond.mean:.2f} (x {beyond.mean / within.mean:.2f})"
            for name, (within, beyond) in samples.items()
        )
        ours = f"{factors} on {len(lengths)} sentences of {lengths.min()} to {lengths.max()} subwords"
        found = smaller_factor("logarithm of both factors' ratio", samples[claim.system], samples[claim.baseline])
        return Findings(f"{ours}, trained on at most {longest}", [found], self.sentence_test(score))

    def equal_time(self, claim: EqualTimeClaim) -> Findings:
        """At the time at which the shorter training ended, updates of a training counted as equally long."""
        gaps, ours = [], []
        for pair in self.paired(claim):
            curves, seconds = [self.curve(run) for run in pair], [self.seconds(run) for run in pair]
            hardware = {self.folders.cost(run).hardware for run in pair}
            if len(hardware) > 1:
                raise NotRun(f"trained on different hardware: {', '.join(sorted(hardware))}")
            steps = [min(seconds) / own * curve.steps[-1] for own, curve in zip(seconds, curves, strict=True)]
            if any(reached < curve.steps[0] for reached, curve in zip(steps, curves, strict=True)):
                raise NotRun(f"not both were validated in the first {min(seconds):.0f} s of training")
            losses = [curve.best_dev_within(reached) for reached, curve in zip(steps, curves, strict=True)]
            gaps.append(losses[1] - losses[0])
            ours.append(
                f"{losses[0]:.3f} and {losses[1]:.3f} nats after {min(seconds):.0f} s "
                f"(trained for {seconds[0]:.0f} and {seconds[1]:.0f} s)"
            )
        name = f"{claim.baseline} less {claim.system}, dev loss at equal time (nats)"
        found = over_seeds(name, gaps, RESOLUTION_NATS)
        return Findings(f"{claim.system} and {claim.baseline}: {'; '.join(ours)}", [found], self.seed_test())

    def gates(self, claim: GateClaim) -> Findings:
        runs = self.runs(claim.system, claim.dataset)
        samples = []
        for kind in claim.words:
            rows = [self.gate_statistics(run, claim, kind) for run in runs]
            if min(one[:, 1].sum() for one in rows) < FEWEST_WORDS:
                return Findings(f"fewer than {FEWEST_WORDS} words of {kind}", [], "")
            samples.append(sample([[one] for one in rows], metric_named("gate"), claim.dataset))
        (one, other), (first, second) = claim.words, samples
        sign = -1 if claim.direction == "either" and second.mean < first.mean else 1
        name = f"{other} less {one}" if sign > 0 else f"{one} less {other}"
        name += f" less {claim.margin:g}" if claim.margin else ""
        found = difference(f"mean z of {name}", second, first, -claim.margin, sign)
        ours = f"mean z: {one} {first.mean:.3f}, {other} {second.mean:.3f}"
        return Findings(ours, [found], self.resampling("sentences"))

    def gate_statistics(self, run, claim: GateClaim, kind: str) -> np.ndarray:
        """(N, 2): summed z and words of a kind in each sentence."""
        path = self.folders.folder(run) / "gates.json"
        self.need(path)
        return read_statistics(path, f"{claim.channel}.{kind}")

    def exponent(self, claim: ExponentClaim) -> Findings:
        times = self.times()
        exponent = times.exponent(claim.layer, claim.variable)
        evidence = [
            exponent.above(f"exponent of {claim.variable} above {claim.at_least:g}", claim.at_least),
            exponent.below(f"exponent of {claim.variable} below {claim.at_most:g}", claim.at_most),
        ]
        return Findings(f"{claim.variable}^{exponent.value:.2f}", evidence, times.description)

    def cheaper(self, claim: CheaperClaim) -> Findings:
        times = self.times()
        evidence = times.cheaper_below_width(claim.layer, claim.than)
        ours = "; ".join(f"{one.name}: {1 + one.value:.1f} times" for one in evidence)
        return Findings(ours, evidence, times.description)


def nothing_learned(samples: list[Sample], metric: str) -> bool:
    """Systems that score nothing at all are equal, but that says nothing of what the paper compares."""
    if metric in ("cer", "wer"):
        return all((one.by_seed >= 100).all() for one in samples)
    return all(not one.by_seed.any() for one in samples)


def pooled(by_seed: list[dict[str, np.ndarray]]) -> list[np.ndarray]:
    """Each seed's statistics (N, F), all splits as one set."""
    return [np.concatenate(list(rows.values())) for rows in by_seed]


def gained(larger: Sample, smaller: Sample) -> Sample:
    return Sample(larger.by_seed - smaller.by_seed, larger.draws - smaller.draws, larger.test_set)


def branch_quantity(claim: BranchesClaim, curve: BranchCurve, warmup_steps: int | None) -> float:
    match claim.quantity:
        case "spread":
            return curve.spread()
        case "changes_of_rank":
            return float(curve.changes_of_rank(warmup_steps or 0))
        case "smallest_share":
            return curve.smallest_share()
    raise ValueError(f"no quantity {claim.quantity!r}")


def less(larger: Term, smaller: Term) -> str:
    return f"{larger.label} less {smaller.label}"


def listed(terms: list[Term], samples: list[Sample]) -> str:
    return ", ".join(f"{term.label} {one.mean:.2f}" for term, one in zip(terms, samples, strict=True))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
