"""A dataset as data: the records of `workflow/datasets/<name>.yaml`, one file a kind."""

from pipeline.data.dataset.base import (
    BpeSubwords,
    CorpusSize,
    DatasetRecord,
    LicensedPackages,
    SplitName,
    SymbolVocabulary,
    TokenisedRecord,
    WordVocabulary,
)
from pipeline.data.dataset.files import Origin, Source, load_files
from pipeline.data.dataset.loading import (
    AnyDataset,
    Dataset,
    Datasets,
    TokenisedDataset,
    load_characters,
    load_collected_trees,
    load_dataset,
    load_datasets,
    load_downloaded,
    load_generated,
    load_parallel,
    load_read_aloud,
    load_recorded,
    load_spoken,
    load_text,
    load_tokenised,
    load_treebank,
    may_be_passed_on,
    sources_of,
)
from pipeline.data.dataset.parallel import (
    Cleaning,
    CorpusRecord,
    DownloadedDataset,
    Expected,
    GrammarDataset,
    Part,
    Side,
)
from pipeline.data.dataset.speech import (
    FetchedText,
    GrammarText,
    ManifestDataset,
    OwnText,
    ReadAloudDataset,
    ReaderPool,
    RecordedDataset,
    SpokenDataset,
    SpokenRecord,
    TextPart,
    TextRecord,
    WrittenDataset,
)
from pipeline.data.dataset.treebank import (
    ExpectedTrees,
    GrammarTreebank,
    Treebank,
    TreebankDataset,
    TreebankRecord,
    TreePart,
)
