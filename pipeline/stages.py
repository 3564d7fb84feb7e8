"""The commands of the pipeline, each a step of the workflow or a report."""

from pipeline.core.program import Command, Program

STAGES = {
    "schemas": Command(
        "pipeline.planning.schemas:write_schemas",
        "Write the JSON schemas of the YAML files that users edit",
    ),
    "claims": Command(
        "pipeline.report.claims:write_claims",
        "Compare the claims of a paper with the measured scores, and give verdicts",
    ),
    "figure": Command(
        "pipeline.report.figure:write_figure",
        "Draw one figure of a paper, with its numbers and a caption",
    ),
    "table": Command(
        "pipeline.report.table:write_table",
        "Compare the scores of a table with the numbers that the paper prints",
    ),
    "example-table": Command(
        "pipeline.report.text_tables:write_example_table",
        "Compare the translations of one sentence by every system",
    ),
    "transcript-table": Command(
        "pipeline.report.text_tables:write_transcript_table",
        "Compare transcripts of a few utterances with those that the paper prints",
    ),
    "layer-table": Command(
        "pipeline.report.layer_table:write_layer_table",
        "Compare measured layer times with the complexities that the paper prints",
    ),
    "results": Command(
        "pipeline.report.results:write_results",
        "Write tables, figures and claims from the outputs made so far",
        is_stage=False,
    ),
    "site": Command(
        "pipeline.report.site.build:write_site",
        "Write the site of all results, to be opened from disk",
        is_stage=False,
    ),
    "model-sizes": Command(
        "pipeline.probes.layer_cost:write_model_sizes",
        "Count the parameters of a paper's systems at the paper's own size",
    ),
    "layer-times": Command(
        "pipeline.probes.layer_cost:time_layers",
        "Time the layer types of Attention Is All You Need, Table 1",
    ),
    "check-data": Command(
        "pipeline.planning.check_data:check_data",
        "List which data files are present, and how to get the others",
    ),
    "calibrate": Command("pipeline.planning.calibrate:calibrate", "Measure how fast this machine trains and decodes"),
    "plan": Command(
        "pipeline.planning.plan:write_plan",
        "Forecast what the papers will cost: FLOPs, hours, disk and downloads",
    ),
    "cost": Command(
        "pipeline.planning.cost_table:write_costs",
        "Compare the measured cost of trainings and decodings with the forecast",
    ),
    "download": Command(
        "pipeline.data.fetch.download:download",
        "Fetch and verify the files of a dataset, and write its raw splits",
    ),
    "collect-ldc": Command(
        "pipeline.data.fetch.ldc_text:collect_ldc",
        "Write the sentence pairs of LDC training packages as plain text",
        is_stage=False,
    ),
    "generate": Command("pipeline.data.fetch.download:generate", "Write a corpus with the embedded grammar"),
    "prepare": Command("pipeline.data.text.prepare:prepare_corpus", "Clean and tokenise the raw splits of a dataset"),
    "collect-trees": Command("pipeline.data.fetch.collect_trees:collect_trees", "Collect the trees of a treebank"),
    "prepare-trees": Command(
        "pipeline.data.trees.prepare_trees:prepare_treebank",
        "Clean and linearise the trees of a treebank",
    ),
    "subwords": Command("pipeline.data.text.subwords:learn_vocabulary", "Learn the subword vocabulary of a dataset"),
    "collect-text": Command(
        "pipeline.data.speech.collect_text:write_raw_text",
        "Write or fetch the text of a corpus of speech or of a language model",
    ),
    "collect-recordings": Command(
        "pipeline.data.speech.collect_recordings:collect_recordings",
        "Fetch, verify and unpack the archives of a corpus of recordings, and list its utterances",
    ),
    "speak": Command("pipeline.data.speech.speak:speak_corpus", "Read the text of a corpus aloud with eSpeak NG"),
    "features": Command(
        "pipeline.data.speech.features:extract_features",
        "Compute memory-mapped features and character ids of the utterances of a corpus",
    ),
    "encode-text": Command(
        "pipeline.data.speech.encode_text:encode_text_corpus",
        "Encode the text of a character language model as memory-mapped ids",
    ),
    "encode": Command("pipeline.data.text.encode:encode_corpus", "Encode tokenised text as memory-mapped ids"),
    "train": Command("pipeline.training.job:train", "Train a run, or resume it from its last checkpoint"),
    "search-rate": Command(
        "pipeline.training.rate_search:search_rate",
        "Tune the learning rate of a run by random search",
        is_stage=False,
    ),
    "launch": Command("pipeline.cluster.launch:launch", "Run a job on Slurm or here, and wait until it ends"),
    "decode": Command("pipeline.outputs.decode:decode_run", "Make every output of a run under one decoding"),
    "score": Command("pipeline.outputs.score:score_run", "Score every output of a run under one decoding"),
    "translate": Command("pipeline.decoding.decode_split:translate", "Translate a split by beam search"),
    "transcribe": Command("pipeline.decoding.decode_split:transcribe", "Transcribe the speech of a split"),
    "perplexity": Command(
        "pipeline.probes.perplexity:write_perplexity",
        "Measure the perplexity of a split, without smoothing",
    ),
    "score-text": Command(
        "pipeline.outputs.score_text:score_text",
        "Score translations: every BLEU, chrF and GLEU, with intervals",
    ),
    "score-speech": Command(
        "pipeline.outputs.score_text:score_transcripts",
        "Score transcripts: character and word error rate",
    ),
    "score-trees": Command(
        "pipeline.outputs.score:score_parses",
        "Score parses: labelled bracketing F1, with intervals",
    ),
}

PIPELINE = Program("python -m pipeline", "Run one step of the reproduction.", STAGES)


def perform(argv: list[str]) -> None:
    """Parse a command line of the pipeline and run its command in this process.

    Raises:
        UserError: The command raised it.
    """
    PIPELINE.run(PIPELINE.parse(argv))
