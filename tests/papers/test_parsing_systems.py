"""Systems of the papers: parsing, weighted and multi-channel ones."""

import pytest
from cell_runs import cell_runs
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.data.dataset import TreebankRecord
from pipeline.report.filled_table import fill
from pipeline.training.optimiser import Schedule

LICENSED = {"LDC99T42": "/ptb", "silver-trees": "/silver"}


def datasets_of_table_4(scale: str, licensed: dict[str, str]) -> list[str]:
    project = real_project({"scale": scale, "licensed": licensed})
    return list(dict.fromkeys(cell.run.dataset for cell in cell_runs(project, "attention", "table4")))


def test_parser_settings_at_paper_scale_follow_released_code():
    project = real_project({"scale": "paper"})
    for system in ("parsing", "parsing-semi"):
        run = project.run_spec(RunId("attention", system, "wsj", 1))
        model, training = run.model, run.training
        assert (model.num_layers, model.d_model, model.d_ff, model.num_heads) == (4, 1024, 2048, 8)
        assert (model.dropout, model.attention_dropout, model.tie_embeddings) == (0.2, 0.2, "none")
        assert (training.warmup_steps, training.lr_factor, training.max_length) == (16000, 0.5, 512)
        decoding = project.decoding("attention", system, "parsing")
        assert (decoding.beam_size, decoding.length_penalty, decoding.max_extra_length) == (21, 0.3, 300)


@pytest.mark.parametrize(
    ("licensed", "expected"),
    [(LICENSED, ["wsj", "wsj-semi"]), ({"LDC99T42": "/ptb"}, ["wsj", "craft-gum"]), ({}, ["craft", "craft-gum"])],
)
def test_unlicensed_treebank_has_a_declared_stand_in(licensed, expected):
    assert datasets_of_table_4("paper", licensed) == expected
    filled = fill(real_project({"scale": "paper", "licensed": licensed}), "attention", "table4")
    said = {reason.detail for row in filled.reasons["f1"] for reason in row if reason.is_stand_in}
    named = zip(expected, ("wsj", "wsj-semi"), strict=True)
    assert said == {f"`{dataset}` stands in for {name}" for dataset, name in named if dataset != name}


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_parsing_rows_share_a_test_set_and_differ_in_training(scale):
    project = real_project({"scale": scale, "licensed": LICENSED})
    first, second = (project.dataset_records[name] for name in datasets_of_table_4(scale, LICENSED))
    assert isinstance(first, TreebankRecord) and isinstance(second, TreebankRecord)
    assert first.test_set == second.test_set
    assert first.expected["test"] == second.expected["test"]
    if "train" in second.expected:
        assert second.expected["train"].lines > first.expected["train"].lines


def test_rules_of_a_system_apply_to_its_variants_only():
    project = real_project({"scale": "demo"})

    def training(system):
        return project.run_spec(RunId("attention", system, "grammar-trees", 1)).training

    assert training("parsing") == training("parsing-semi")
    assert training("parsing").max_length > training("base").max_length == 64
    assert training("base") == training("C5")


PAIRS = {"C": "C1", "N4": "C2", "A": "base", "B": "big"}  # the Transformer beside each in Table 2


def run(scale: str, paper: str, system: str):
    return real_project({"scale": scale}).run_spec(RunId(paper, system, "wmt14-en-de", 1))


@pytest.mark.parametrize("scale", ["demo", "small", "paper"])
@pytest.mark.parametrize(("system", "peak"), [("C", 3.13e-3), ("A", 5.41e-3), ("B", 3.83e-3)])
def test_kappa_and_alpha_have_the_printed_peak_rates(scale, system, peak):
    spec = run(scale, "weighted", system)
    schedule = Schedule(spec.model, spec.training)
    assert max(schedule.branch_weights(update) for update in range(1000)) == pytest.approx(peak, rel=0.02)


@pytest.mark.parametrize("scale", ["demo", "small"])
@pytest.mark.parametrize(("weighted", "plain"), PAIRS.items())
def test_compared_models_have_the_same_size_and_dropout(scale, weighted, plain):
    ours, theirs = run(scale, "weighted", weighted).model, run(scale, "attention", plain).model
    for key in ("num_layers", "d_model", "d_ff", "dropout", "attention_dropout", "relu_dropout", "tie_embeddings"):
        assert getattr(ours, key) == getattr(theirs, key), key


IN_HOUSE = ("RNN", "NTM", "EMB", "NTM-EMB", "NTM-RNN", "RNN-EMB", "NTM-RNN-EMB")
TEST_SETS = ["test", "test2", "test3", "test4", "test5"]


def spec(project, system):
    return project.run_spec(RunId("multichannel", system, "nist-zh-en", 1))


def test_table_1_means_and_gains_follow_from_its_cells():
    project, sets = real_project(), ("nist03", "nist04", "nist05", "nist08", "nist12")
    first, *_ = rows = project.printed["multichannel"]["table1"]
    cells = project.table("multichannel", "table1").cells
    assert [row["model"] for row in rows] == ["DL4MT", *IN_HOUSE, "T2T", "ConvS2S"]
    assert [cells[name].split for name in sets] == TEST_SETS
    for row in rows:
        assert float(row["avg"]) == pytest.approx(sum(float(row[name]) for name in sets) / 5, abs=0.01)
        if row["gain"]:
            assert float(row["gain"]) == pytest.approx(float(row["avg"]) - float(first["avg"]), abs=0.006)


def test_the_in_house_systems_differ_in_their_channels_alone():
    project = real_project({"scale": "paper"})
    first = spec(project, "RNN")
    assert first.model.memory_write == "tanh_content"
    for system in IN_HOUSE:
        found = spec(project, system)
        assert found.model == first.model.model_copy(update={"channels": system.lower()})
        assert found.training == first.training


def test_settings_are_those_that_are_printed():
    project = real_project({"scale": "paper"})
    rnn, dl4mt, t2t, convs2s = (spec(project, name) for name in ("RNN", "DL4MT", "T2T", "ConvS2S"))
    model, training = rnn.model, rnn.training
    assert (model.d_embedding, model.d_state, model.d_attention, model.d_readout) == (512, 512, 1024, 512)
    assert (model.output_dropout, model.initialisation, model.init_scale) == (0.5, "uniform", 0.04)
    assert (training.clip_norm, training.sentences_per_update, training.max_length) == (1.0, 8 * 128, 50)
    assert (training.optimiser, training.schedule, training.label_smoothing) == ("adam", "inverse_sqrt", 0)
    assert (dl4mt.model.d_state, dl4mt.model.d_embedding, dl4mt.model.d_attention) == (1000, 620, 2000)
    assert (dl4mt.training.optimiser, dl4mt.training.clip_norm, dl4mt.model.output_dropout) == ("adadelta", 1.0, 0)
    assert (t2t.training.tokens_per_update, t2t.training.warmup_steps, t2t.model.attention_dropout) == (2048, 16000, 0)
    assert (convs2s.model.encoder_layers, convs2s.model.decoder_layers, convs2s.model.dropout) == (12, 12, 0.2)
    assert (convs2s.training.optimiser, convs2s.training.momentum, convs2s.training.lr) == ("nag", 0.99, 0.25)
    assert (convs2s.training.clip_norm, convs2s.training.min_lr, convs2s.model.max_positions) == (0.1, 1e-4, 1024)
    assert spec(project, "NTM-RNN-EMB-enfr").training.max_length == 120


def test_beam_ten_and_scores_divided_by_length():
    project = real_project({"scale": "paper"})
    for system in project.papers["multichannel"].systems:
        decoding = project.decoding("multichannel", system, "beam10")
        assert (decoding.beam_size, decoding.length_normalisation, decoding.length_penalty) == (10, "length", 1)


def test_scale_keeps_proportions_and_one_budget_for_seven(scaled):
    model = spec(scaled, "RNN").model
    assert model.d_attention == 2 * model.d_state and model.d_embedding == model.d_readout == model.d_state
    assert len({spec(scaled, system).training for system in IN_HOUSE}) == 1
    dl4mt = spec(scaled, "DL4MT").model
    assert dl4mt.d_state / model.d_state == pytest.approx(1000 / 512, rel=0.03)
    assert dl4mt.d_attention == pytest.approx(2 * dl4mt.d_state, abs=2)
    assert spec(scaled, "ConvS2S").model.d_hidden == model.d_state


def test_nist_stand_ins_have_five_test_sets_and_nist_bleu(scaled):
    dataset = scaled.dataset_records[scaled.stand_in("nist-zh-en")]
    assert list(dataset.test_sets) == TEST_SETS and len(set(dataset.test_sets.values())) == 5
    assert (dataset.bleu, dataset.subwords.kind, dataset.tgt_subwords.kind) == ("nist", "word", "word")
    assert dataset.segmenter == "jieba"


def test_licensed_data_has_four_references_and_30000_words():
    years = ("LDC2010T11", "LDC2010T12", "LDC2010T14", "LDC2010T17", "LDC2010T21", "LDC2013T03")
    folders = {name: f"/corpora/{name}" for name in ("ldc-zh-en", *years)}
    project = real_project({"scale": "paper", "licensed": folders})
    dataset = project.dataset_records[project.stand_in("nist-zh-en")]
    assert dataset.name == "nist-zh-en"
    for split in ("dev", *TEST_SETS):
        assert dataset.references(split) == ["en", "en2", "en3", "en4"]
    assert (dataset.subwords.vocab_size, dataset.tgt_subwords.vocab_size) == (30000, 30000)
    assert set(dataset.package_members("ldc-zh-en")) == {"train.zh", "train.en"}
    for name in years:
        assert len(set(dataset.package_members(name))) == 2


def test_phenomena_are_counted_only_where_the_grammar_knows_them(scaled):
    assert ("phenomena" in scaled.tables_here("multichannel")) == (scaled.config.scale in ("smoke", "demo"))
