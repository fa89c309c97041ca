"""config/tasks/NAME.yaml: a corpus with a vocabulary, and the runs behind its headline score."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr

from convs2s.config.bleu import BleuTokenizer
from convs2s.config.corpus import (
    AlignmentSettings,
    CleanLimits,
    Corpus,
    FilePair,
    HoldOut,
    HoldOutPart,
    Languages,
    PreparationRecipes,
    ScoredFilePair,
    Titles,
    VocabularySettings,
)
from convs2s.config.file_reference import (
    Download,
    ModelFile,
    known_download,
    parse_file_reference,
)
from convs2s.config.messages import check_known
from convs2s.config.runs import MOST_SEED
from convs2s.config.section import (
    DistinctItems,
    ExtensionName,
    FileName,
    Items,
    NonNegativeInt,
    PositiveInt,
    Section,
    SomeDistinctItems,
    Values,
)
from convs2s.errors import UserError


class ModelMetadata(Section):
    """The part of a model file that describes its task."""

    task: str
    languages: Languages
    preparation: str  # recipe that turns raw text into the words that the model reads


class DataSource(Section):
    """A file from which text was taken, with its checksums and licence in config/downloads.yaml."""

    # Path or URL. For a member of an archive #MEMBER follows, and the checksums are the archive's.
    file: str
    sha256: str | None = None
    md5: str | None = None
    licence: str | None = None


class DatasetMetadata(ModelMetadata):
    """The description of the text of a task's token stores, which is written beside them."""

    vocabulary: VocabularySettings
    sources: Items[DataSource] = ()  # files of the training and validation text
    # What the data is, if it is not the paper's; otherwise None.
    stand_in: str | None = None


class CorpusMetadata(Section):
    """The description that is written with the counts of a corpus's pairs."""

    task: str
    clean: CleanLimits  # the limits that dropped training pairs
    paper_pairs: int | None  # number of training pairs that the paper states
    stand_in: str | None  # what the data is, if it is not the paper's; otherwise None


RougePart = Literal["recall", "precision", "f1"]


class RougeSettings(Section):
    """How ROUGE scores a test set (docs/rouge.md)."""

    bytes: PositiveInt | None = None
    """Length in bytes of UTF-8 to which outputs and references are cut before they are scored (75
    for DUC-2004). null: they are not cut."""
    stem: bool = True
    """Whether words are stemmed (option -m of the original ROUGE)."""
    measure: RougePart = "f1"
    """The measure in the first lines of rouge.txt (recall for DUC-2004). The tables below them have
    all three measures."""
    lead_words: PositiveInt = 9
    """Number of words in the lead baseline. The baseline takes the first words of each source and
    is scored like the output of a model."""


SHARED_WITH_TEXT = (
    "languages",
    "corpus",
    "titles",
    "hold_out",
    "preparation",
    "clean",
    "paper_pairs",
    "alignment",
)
"""The keys that a task with ``text: OTHER`` takes from the task OTHER."""


class ReleasedModel(Section):
    """The files of a published fairseq model."""

    model: FileName
    """The checkpoint, such as URL#FOLDER/model.pt."""
    source_dictionary: FileName
    """The file dict.LANGUAGE.txt of the source language."""
    target_dictionary: FileName
    """The file dict.LANGUAGE.txt of the target language."""
    bpe_codes: FileName | None = None
    """The file with the BPE codes; null: the model reads whole words."""


class Headline(Section):
    """The runs and test sets that the task's bleu.txt or rouge.txt reports."""

    model: str = "small"
    """A model of config/models.yaml."""
    seeds: SomeDistinctItems[Annotated[NonNegativeInt, Field(le=MOST_SEED)]] = (1,)
    """Random seeds of the trainings. The score is the mean over them. The key is ignored for a
    released model, which is not trained."""
    tests: SomeDistinctItems[str] | None = None
    """Test sets that are scored; null: all of corpus.tests."""
    decoding: str = "beam5"
    """A decoding of config/decodings.yaml."""


class Task(Section):
    """One corpus with one vocabulary. The task's results are in the folder NAME.

    A task with "text: OTHER" uses the languages, corpus, titles, hold_out, preparation, clean,
    paper_pairs and alignment of the task OTHER, and must not state these keys itself.
    """

    # The stem of the file's name; not a key of the file.
    _name: str = PrivateAttr(default="")

    description: str
    """One line: what the corpus is."""
    text: str | None = None
    """The task whose text this task uses; null: the task has its own text."""
    languages: Languages
    """Codes of the two languages. Tokenization depends on the part before an underscore: en_title
    is tokenized as en."""
    corpus: Corpus
    """The text files. Each is a path relative to the folder where the workflow runs, an http(s)
    URL, demo://TASK/FILE or titles://TASK/FILE. #MEMBER after the name of an archive names a file
    in it. Text is UTF-8, and line N of the target is the translation of line N of the source. Files
    may be compressed (.gz, .xz, .bz2, .zst). The segments of .sgm and .xml files are read.
    train.tags.* are read as transcripts of talks, without the lines that describe the talks. For
    .jsonl files, #NAME names the field that is read, and #NAME[N] an item of a list."""
    titles: Titles | None = None
    """Tables of papers, from whose abstracts and titles the workflow makes the text of titles://.
    null: there are none."""
    hold_out: HoldOut | None = None
    """Which training pairs become the validation data; null if corpus.valid names files."""
    preparation: PreparationRecipes = PreparationRecipes()
    """Recipes that turn raw text into words."""
    clean: CleanLimits = CleanLimits()
    """Limits for the lengths of training and validation pairs; other pairs are dropped. Lengths
    are counted in words before BPE, except for the limit tokens."""
    paper_pairs: PositiveInt | None = None
    """Number of training pairs after cleaning that the paper states. It is shown beside the number
    of this task. null: the paper states none."""
    vocabulary: VocabularySettings = VocabularySettings()
    """The kind of tokens and how the vocabularies are made."""
    vocabulary_of: ModelFile | None = None
    """A model file, as a path or an http(s) URL. The task takes its BPE codes and vocabularies from
    the model, so that trainings can start from it (docs/fine_tuning.md). vocabulary.merges, the
    sizes and minimum_count are then ignored. null: codes and vocabularies are learned from the
    task's text."""
    alignment: AlignmentSettings = AlignmentSettings()
    """Word alignment, from which the dictionary for unknown words is made."""
    n_best: dict[str, FileName] = {}
    """N-best lists of another system that are rescored: test set -> a file on this machine, in the
    format of Moses and with words prepared like the task's (docs/rescoring.md). A test set without
    a file is not rescored."""
    released: ReleasedModel | None = None
    """A published fairseq model that is scored instead of training models. Its run is named
    released, and headline.model is the name of the model. Files are stated as in corpus. null: the
    task trains models."""
    headline: Headline = Headline()
    """The runs and test sets that the task's bleu.txt or rouge.txt reports."""
    metric: Literal["bleu", "rouge"] = "bleu"
    """The metric by which outputs are scored: bleu for translations, rouge for summaries."""
    bleu_tokenize: BleuTokenizer = "13a"
    """How plain text is split into words for detokenized BLEU: a tokenizer of sacrebleu. 13a is
    that of mteval-v13a; zh is for Chinese, and char for other scripts without blanks between
    words."""
    metrics: DistinctItems[ExtensionName] = ()
    """Metrics of extensions (docs/extending.md) whose scores are added to bleu.json and
    bleu.txt."""
    rouge: dict[str, RougeSettings] = {}
    """Test set -> how ROUGE scores it. A test set that is not listed is scored with the
    defaults."""

    def named(self, name: str) -> Self:
        """Set the name of the task, which is the stem of its file's name; return the task."""
        self._name = name
        return self

    @property
    def name(self) -> str:
        """The name of the task's file without .yaml, which also names its folder of results."""
        return self._name

    @property
    def text_name(self) -> str:
        """The task whose corpus and alignment this task uses: ``text``, or this task itself."""
        return self.text or self.name

    @property
    def has_dictionary(self) -> bool:
        """Whether unknown words are replaced with a dictionary that is made from alignments."""
        return self.vocabulary.kind == "word" and self.alignment.dictionary == "aligned"

    @property
    def language_pair(self) -> tuple[str, str]:
        """The codes of the source and the target language, in this order."""
        return self.languages.source, self.languages.target

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that the headline needs; a released model needs only the test sets."""
        tests = tuple(self.corpus.tests)
        return tests if self.released else ("train", "valid", *tests)

    @property
    def model_text(self) -> Literal["truecased", "clean"]:
        """The stage of text preparation whose words the task's models read."""
        return "truecased" if self.preparation.truecase else "clean"

    @property
    def filtering(self) -> Values:
        """How training and validation text becomes words, and the limits of its pairs in words."""
        return {
            "preparation": self.preparation.train,
            "languages": self.language_pair,
            **self.clean.model_dump(exclude={"tokens", "remove_overlap"}),
        }

    def bpe_codes_names(self, language: str | None = None) -> list[str]:
        """Return the names of the BPE codes of the task, or only of one language.

        Joint codes have one name. A vocabulary of words has none.
        """
        languages = self.language_pair if language is None else (language,)
        return self.vocabulary.bpe_codes_names(*languages)

    def side_of(self, language: str) -> str:
        """Return "source" or "target", the side of a language.

        Raises:
            UserError: The task does not have this language.
        """
        check_known(f"task {self.name}", "language", language, self.language_pair)
        return "source" if language == self.languages.source else "target"

    def file_pairs(self, split: str) -> list[tuple[str, str]]:
        """Return the (source, target) file references of the files that a split is made from."""
        pairs: Sequence[FilePair]
        if split == "train" or self.hold_out_of(split):
            pairs = self.corpus.train
        elif split == "valid":
            pairs = self.corpus.valid
        else:
            pairs = self._test_pairs(split)
        return [(pair.source, pair.target) for pair in pairs]

    def reference_count(self, testset: str) -> int:
        """Return how many references a line of a test set can have, counting the target."""
        # All pairs of a test set state the same number of references (`check_references`).
        return 1 + len(self._test_pairs(testset)[0].references)

    def reference_pairs(self, testset: str, number: int) -> list[tuple[str, str]]:
        """Return the (target, reference) files of one of a test set's further references.

        There is an item for each pair of files of the test set. ``number`` is 1 or more, because
        the target counts as reference 0.

        Raises:
            UserError: The test set has no reference with this number.
        """
        count = self.reference_count(testset)
        if number >= count:
            raise UserError(
                f"'{testset}' of the task {self.name} has {count} references, the target as number "
                f"0 among them; there is no number {number}"
            )
        return [
            (pair.target, pair.references[number - 1])
            for pair in self._test_pairs(testset)
        ]

    def _test_pairs(self, testset: str) -> tuple[ScoredFilePair, ...]:
        check_known(f"the task {self.name}", "test set", testset, self.corpus.tests)
        return self.corpus.tests[testset]

    def hold_out_of(self, split: str) -> HoldOutPart | None:
        """Return the training pairs that a split takes; None if it takes all pairs of its files."""
        if self.hold_out is None or split not in ("train", "valid"):
            return None
        return HoldOutPart(self.hold_out.every, held=split == "valid")

    def references(self, splits: Sequence[str] | None = None) -> list[str]:
        """Return the file references of splits and of the released model, each once.

        By default, the splits are all splits of the task.
        """
        if splits is None:
            splits = "train", "valid", *self.corpus.tests
        sides: list[str] = []
        further: list[str] = []
        for split in splits:
            sides += chain.from_iterable(self.file_pairs(split))
            for pair in self.corpus.tests.get(split, ()):
                further += pair.references
        is_made_of_papers = any(side.startswith("titles://") for side in sides)
        papers = self.titles.files if self.titles and is_made_of_papers else ()
        return list(
            dict.fromkeys([*sides, *further, *papers, *self.released_references()])
        )

    def released_references(self) -> list[str]:
        """Return the file references of the released model; an empty list without one."""
        if self.released is None:
            return []
        files = self.released.model_dump(exclude_none=True)
        return list(files.values())

    def require_files(self, is_made: Callable[[str], bool]) -> None:
        """Check that the task's local files exist or will be made.

        ``is_made`` says whether a path exists or a rule makes it.

        Raises:
            UserError: Files are missing. The message names all of them and says how to get them.
        """
        files = map(parse_file_reference, self.references(self.splits))
        paths = dict.fromkeys(file.location for file in files if not file.is_url)
        missing = [path for path in paths if not is_made(path)]
        if missing:
            advice = (
                f"put them there, or name others in config/tasks/{self.text_name}.yaml"
            )
            raise UserError(
                f"{self.text_name}: missing files: {', '.join(missing)}; "
                f"{self.corpus.obtain or advice}"
            )

    def vocabulary_size(self, language: str) -> int | None:
        """Return the maximum number of types in a language's vocabulary; None: no limit."""
        if language == self.languages.source:
            return self.vocabulary.source_size
        return self.vocabulary.target_size

    def n_best_of(self, testset: str) -> str:
        """Return the file with another system's n-best list of a test set.

        Raises:
            UserError: The task names no such file.
        """
        if testset not in self.n_best:
            raise UserError(
                f"config/tasks/{self.name}.yaml: n_best: has no list for '{testset}'; name the "
                "file with the n-best list of another system (docs/rescoring.md)"
            )
        return self.n_best[testset]

    def headline_runs(self) -> list[str]:
        """Return the runs that the headline reports: one for each seed, or the released model."""
        if self.released:
            return ["released"]
        return [f"seed{seed}" for seed in self.headline.seeds]

    def headline_tests(self) -> list[str]:
        """Return the test sets that the headline reports."""
        return list(self.headline.tests or self.corpus.tests)

    def check_metric(self, metric: str) -> None:
        """Check that ``metric`` is the metric of the task's headline, bleu or rouge.

        Raises:
            UserError: The headline has the other metric. The message names the right file.
        """
        if metric != self.metric:
            raise UserError(
                f"{self.name} has no {metric}.txt, because its task says `metric: {self.metric}`: "
                f"ask for {self.metric}.txt"
            )

    def rouge_settings(self, testset: str) -> RougeSettings:
        """Return the settings with which ROUGE scores a test set."""
        return self.rouge.get(testset, RougeSettings())

    def development_sets(self) -> list[str]:
        """Return the names of the sets on which a length penalty can be tuned."""
        return ["valid", *self.corpus.tests]

    def model_metadata(self) -> ModelMetadata:
        """Return the description of the task that a model file contains."""
        return ModelMetadata(
            task=self.name, languages=self.languages, preparation=self.preparation.test
        )

    def dataset_metadata(
        self, downloads: Mapping[str, Download], stand_in: str | None
    ) -> DatasetMetadata:
        """Return the description that is written beside the task's token stores.

        ``downloads`` has the checksums and licences of the task's files, by URL. It must be empty
        if generated files stand in for the downloads, because it does not describe these files.
        """
        sources = []
        for file in self.references(("train", "valid")):
            known = {}
            download = known_download(parse_file_reference(file).location, downloads)
            if file.startswith("demo://"):
                known = {"licence": "MIT: this project generates it"}
            elif download is not None:
                known = download.model_dump(include={"sha256", "md5", "licence"})
            sources.append(DataSource(file=file, **known))
        return DatasetMetadata(
            **dict(self.model_metadata()),
            vocabulary=self.vocabulary,
            sources=tuple(sources),
            stand_in=stand_in,
        )

    def corpus_metadata(self, stand_in: str | None) -> CorpusMetadata:
        """Return the description that is written with the counts of the corpus's pairs."""
        return CorpusMetadata(
            task=self.name,
            clean=self.clean,
            paper_pairs=self.paper_pairs,
            stand_in=stand_in,
        )
