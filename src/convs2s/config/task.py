"""config/tasks/NAME.yaml: a corpus with a vocabulary, and what its headline number rests on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr

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
from convs2s.config.file_reference import Download, known_download, parse_file_reference
from convs2s.config.messages import check_known, validated
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
)
from convs2s.errors import UserError


class ModelMetadata(Section):
    """What a model file says of its task."""

    task: str
    languages: Languages
    preparation: str  # the recipe from raw text to the words that the model's vocabulary splits


class DataSource(Section):
    """A file that text came from, and what config/downloads.yaml knows of it."""

    file: str  # path or URL, with #MEMBER for a file of an archive; the checksums are the archive's
    sha256: str | None = None
    md5: str | None = None
    licence: str | None = None


class DatasetMetadata(ModelMetadata):
    """What a token store's reader must know of its text."""

    vocabulary: VocabularySettings
    sources: Items[DataSource] = ()  # where the training and validation text came from
    stand_in: str | None = None  # what the data really is; None: it is the paper's


class CorpusMetadata(Section):
    """What stands beside the numbers of a corpus's pairs."""

    task: str
    clean: CleanLimits  # training pairs that were kept
    paper_pairs: int | None  # training pairs that the paper states
    stand_in: str | None  # what the data really is; None: it is the paper's


RougePart = Literal["recall", "precision", "f1"]


class RougeSettings(Section):
    """How ROUGE scores a test set (docs/rouge.md)."""

    bytes: PositiveInt | None = None
    """Bytes of UTF-8 to which outputs and references are cut first (DUC-2004: 75); null: none."""
    stem: bool = True
    """Whether words are stemmed (the original's -m)."""
    measure: RougePart = "f1"
    """What a report's first lines show; its tables have all three (DUC-2004: recall)."""
    lead_words: PositiveInt = 9
    """Words of the lead baseline: the source's first ones, scored like an output."""


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
"""What a task with ``text: OTHER`` has from OTHER."""


class ReleasedModel(Section):
    """The files of a model that somebody published."""

    model: FileName
    """The checkpoint, such as URL#FOLDER/model.pt."""
    source_dictionary: FileName
    """The source language's dict.LANGUAGE.txt."""
    target_dictionary: FileName
    """The target language's dict.LANGUAGE.txt."""
    bpe_codes: FileName | None = None
    """The BPE codes; null: the model reads whole words."""


class Headline(Section):
    """What the task's bleu.txt or rouge.txt reports."""

    model: str = "small"
    """A model of config/models.yaml."""
    seeds: SomeDistinctItems[Annotated[NonNegativeInt, Field(le=MOST_SEED)]] = (1,)
    """Random seeds; the score is the mean over them. A released model has none."""
    tests: SomeDistinctItems[str] | None = None
    """Test sets to score; null takes all of corpus.tests."""
    decoding: str = "beam5"
    """A decoding of config/decodings.yaml."""


class Task(Section):
    """One corpus with one vocabulary. NAME is the folder of its results.

    A task that says "text: OTHER" shares OTHER's languages, corpus, titles, hold_out, preparation,
    clean, paper_pairs and alignment and states none of them itself.
    """

    _name: str = PrivateAttr(default="")  # no key of the file: the file's own name

    description: str
    """One line: what the corpus is."""
    text: str | None = None
    """The task whose text this one shares; null has a text of its own."""
    languages: Languages
    """Codes of the two languages; tokenization goes by what precedes an underscore (en_title)."""
    corpus: Corpus
    """The files. Each is a path (from the folder where the workflow runs), an http(s) URL,
    demo://TASK/FILE or titles://TASK/FILE; #MEMBER names a file of an archive. Text is UTF-8, line
    N of the source translates to line N of the target; .gz, .xz, .bz2 and .zst are understood,
    .sgm and .xml are read by their segments, train.tags.* as transcripts of talks without what is
    about the talks, and .jsonl by the field after #: NAME, or NAME[N] of a list."""
    titles: Titles | None = None
    """Papers, from whose abstracts and titles the workflow makes the text of titles://."""
    hold_out: HoldOut | None = None
    """Training pairs that become the validation data; null where corpus.valid states files."""
    preparation: PreparationRecipes = PreparationRecipes()
    """Recipes that turn raw text into words."""
    clean: CleanLimits = CleanLimits()
    """Training and validation pairs that are kept; lengths are in words before BPE, but tokens."""
    paper_pairs: PositiveInt | None = None
    """Cleaned training pairs that the paper states, shown beside ours; null: it states none."""
    vocabulary: VocabularySettings = VocabularySettings()
    """What a token is."""
    vocabulary_of: FileName | None = None
    """A model file, by its path or an http(s) URL, whose BPE codes and vocabularies the task takes,
    so that trainings can start from it (docs/fine_tuning.md); merges, sizes and minimum_count then
    say nothing. null: they are learned on the task's text."""
    alignment: AlignmentSettings = AlignmentSettings()
    """Word alignment, from which the dictionary for unknown words is made."""
    n_best: dict[str, FileName] = {}
    """N-best lists that another system made, to be rescored: test set -> a file of this machine, in
    Moses' format and in the task's words (docs/rescoring.md). What has no file is not rescored."""
    released: ReleasedModel | None = None
    """A model of fairseq's that somebody published, in place of trainings: its run is named
    released, and headline.model is the name that it goes by. Files as in corpus. null: none."""
    headline: Headline = Headline()
    """What the task's bleu.txt or rouge.txt reports."""
    metric: Literal["bleu", "rouge"] = "bleu"
    """How outputs are scored: bleu for translation, rouge for summaries."""
    metrics: DistinctItems[ExtensionName] = ()
    """Metrics of extensions (docs/extending.md), by which bleu.json and bleu.txt score as well."""
    rouge: dict[str, RougeSettings] = {}
    """Test set -> how ROUGE scores it; one that is not named is scored with the defaults."""

    @classmethod
    def named(cls, name: str, stated: object, where: str | None = None, lax: bool = False) -> Self:
        """Validate the content of NAME.yaml.

        Raises:
            UserError: It is not valid; begins with ``where`` or the name.
        """
        task = validated(cls, stated, where or name, lax=lax)
        task._name = name
        return task

    @property
    def name(self) -> str:
        """The stem of the task's file, and the folder of its results."""
        return self._name

    @property
    def text_name(self) -> str:
        """The task whose corpus and alignment this one uses: its ``text``, or itself."""
        return self.text or self.name

    @property
    def has_dictionary(self) -> bool:
        """Whether unknown words of translations are looked up among aligned words."""
        return self.vocabulary.kind == "word" and self.alignment.dictionary == "aligned"

    @property
    def language_pair(self) -> tuple[str, str]:
        """The source and the target language."""
        return self.languages.source, self.languages.target

    @property
    def splits(self) -> tuple[str, ...]:
        """The parts of the corpus that the headline needs; a released model reads tests alone."""
        tests = tuple(self.corpus.tests)
        return tests if self.released else ("train", "valid", *tests)

    @property
    def model_text(self) -> Literal["truecased", "clean"]:
        """The stage of the corpus whose words the task's models read."""
        return "truecased" if self.preparation.truecase else "clean"

    def bpe_codes_names(self, language: str | None = None) -> list[str]:
        """Return the names of the BPE codes of the task, or of a language.

        They are one if joint, none where words are whole.
        """
        languages = self.language_pair if language is None else (language,)
        return self.vocabulary.bpe_codes_names(*languages)

    def side_of(self, language: str) -> str:
        """Return the side of a language.

        Raises:
            UserError: The task does not have it.
        """
        check_known(f"task {self.name}", "language", language, self.language_pair)
        return "source" if language == self.languages.source else "target"

    def file_pairs(self, split: str) -> list[tuple[str, str]]:
        """Return the (source, target) file references that a split is made from."""
        pairs: Sequence[FilePair]
        if split == "train" or self.hold_out_of(split):
            pairs = self.corpus.train
        elif split == "valid":
            pairs = self.corpus.valid
        else:
            pairs = self._test_pairs(split)
        return [(pair.source, pair.target) for pair in pairs]

    def reference_count(self, testset: str) -> int:
        """Return how many references the lines of a test set have at most."""
        return 1 + len(self._test_pairs(testset)[0].references)

    def reference_parts(self, testset: str) -> list[str]:
        """Return what stands after a test set's name in those of its references' files."""
        numbers = range(1, self.reference_count(testset))
        return ["", *(f".reference{number}" for number in numbers)]

    def reference_pairs(self, testset: str, number: int) -> list[tuple[str, str]]:
        """Return the (target, reference) file references of a test set's further reference.

        The target itself would be number 0.

        Raises:
            UserError: There is none of this number; says how many there are.
        """
        count = self.reference_count(testset)
        if number >= count:
            raise UserError(
                f"'{testset}' of the task {self.name} has {count} references, the target as number "
                f"0 among them, so none is number {number}"
            )
        return [(one.target, one.references[number - 1]) for one in self._test_pairs(testset)]

    def _test_pairs(self, testset: str) -> tuple[ScoredFilePair, ...]:
        check_known(f"the task {self.name}", "test set", testset, self.corpus.tests)
        return self.corpus.tests[testset]

    def hold_out_of(self, split: str) -> HoldOutPart | None:
        """Return which training pairs a split takes; None where it takes its files as they are."""
        if self.hold_out is None or split not in ("train", "valid"):
            return None
        return HoldOutPart(self.hold_out.every, held=split == "valid")

    def references(self) -> list[str]:
        """Return every file reference of the task, each once, those of a released model too."""
        return self._references_of(("train", "valid", *self.corpus.tests))

    def needed_references(self) -> list[str]:
        """Return those that the headline needs: of a released model, no training text."""
        return self._references_of(self.splits)

    def _references_of(self, splits: Sequence[str]) -> list[str]:
        sides: list[str] = []
        further: list[str] = []
        for split in splits:
            for source, target in self.file_pairs(split):
                sides += [source, target]
            for pair in self.corpus.tests.get(split, ()):
                further += pair.references
        is_made_of_papers = any(side.startswith("titles://") for side in sides)
        papers = self.titles.files if self.titles and is_made_of_papers else ()
        return list(dict.fromkeys([*sides, *further, *papers, *self.released_references()]))

    def released_references(self) -> list[str]:
        """Return the file references of the released model; none where there is none."""
        if self.released is None:
            return []
        files = self.released.model_dump(exclude_none=True)
        return list(files.values())

    def require_files(self, is_made: Callable[[str], bool]) -> None:
        """Check that the files that no download brings exist, or will be made.

        Raises:
            UserError: Names all that are missing, and how to come by them.
        """
        files = map(parse_file_reference, self.needed_references())
        paths = dict.fromkeys(file.location for file in files if not file.is_url)
        missing = [path for path in paths if not is_made(path)]
        if missing:
            advice = f"put them there, or name others in config/tasks/{self.text_name}.yaml"
            raise UserError(
                f"{self.text_name}: missing files: {', '.join(missing)}; "
                f"{self.corpus.obtain or advice}"
            )

    def vocabulary_size(self, language: str) -> int | None:
        """Return the most types of a language's vocabulary, or None for all."""
        is_source = language == self.languages.source
        return self.vocabulary.source_size if is_source else self.vocabulary.target_size

    def n_best_of(self, testset: str) -> str:
        """Return the n-best list of a test set that another system made."""
        if testset not in self.n_best:
            raise UserError(
                f"config/tasks/{self.name}.yaml: n_best: names no list of '{testset}'; name the "
                "file that another system's n-best list is in (docs/rescoring.md)"
            )
        return self.n_best[testset]

    def headline_runs(self) -> list[str]:
        """Return the runs that the headline rests on: its seeds, or the released model."""
        return ["released"] if self.released else [f"seed{seed}" for seed in self.headline.seeds]

    def headline_tests(self) -> list[str]:
        """Return the test sets that the headline is about."""
        return list(self.headline.tests or self.corpus.tests)

    def check_metric(self, metric: str) -> None:
        """Check that a report in a metric is the task's.

        Raises:
            UserError: It is not; names the one that is.
        """
        if metric != self.metric:
            raise UserError(
                f"{self.name} has no {metric}.txt, as its task says `metric: {self.metric}`: ask "
                f"for {self.metric}.txt"
            )

    def rouge_settings(self, testset: str) -> RougeSettings:
        """Return how ROUGE scores a test set."""
        return self.rouge.get(testset, RougeSettings())

    def development_sets(self) -> list[str]:
        """Return the sets that a length penalty can be tuned on."""
        return ["valid", *self.corpus.tests]

    def model_metadata(self) -> ModelMetadata:
        """Return what a model file says of the task."""
        return ModelMetadata(
            task=self.name, languages=self.languages, preparation=self.preparation.test
        )

    def dataset_metadata(
        self, downloads: Mapping[str, Download], stand_in: str | None
    ) -> DatasetMetadata:
        """Return what a token store's reader must know of its text.

        ``downloads`` are those that its files are, none where generated files stand in for them.
        """
        sources = []
        for file in self._references_of(("train", "valid")):
            facts = {}
            download = known_download(parse_file_reference(file).location, downloads)
            if file.startswith("demo://"):
                facts = {"licence": "MIT: this project generates it"}
            elif download is not None:
                facts = download.model_dump(include={"sha256", "md5", "licence"})
            sources.append(DataSource(file=file, **facts))
        return DatasetMetadata(
            **dict(self.model_metadata()),
            vocabulary=self.vocabulary,
            sources=tuple(sources),
            stand_in=stand_in,
        )

    def corpus_metadata(self, stand_in: str | None) -> CorpusMetadata:
        """Return what stands beside the numbers of the corpus's pairs."""
        return CorpusMetadata(
            task=self.name, clean=self.clean, paper_pairs=self.paper_pairs, stand_in=stand_in
        )
