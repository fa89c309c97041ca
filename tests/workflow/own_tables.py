"""A few tables, under the papers' names, whose rows are on a user's own pair."""

from tests.support.checkout import Checkout

PAPER = """\
table1:
  title: Two searches
  group_label: Task
  columns:
    - {key: bleu, name: BLEU, measure: bleu_tokenized}
    - {key: length, name: Length ratio, measure: length_ratio, digits: 3}
  ours: {task: mine_en_nl, model: small_plateau, runs: RUNS, testset: test}
  rows:
    - {group: g, system: beam5, kind: ours, decoding: beam5}
    - {group: g, system: greedy, kind: ours, decoding: greedy}
table4:
  title: What a training says
  columns:
    - {key: ppl, name: Validation perplexity, measure: perplexity}
    - {key: bleu, name: BLEU, measure: bleu_tokenized_before_replacement, digits: 1}
  ours: {task: mine_en_nl, model: small_plateau, runs: [seed1], testset: test}
  rows: [{group: g, system: beam5, kind: ours, decoding: beam5}]
figure3:
  title: A figure without ours
  example_source: We built this festival as a way of continuing to work with them.
  columns: [{key: layers, name: Layers, measure: attention_layers, digits: 0}]
  rows: [{group: g, system: another, kind: cited}]
"""
CLAIMS = """\
five_beats_greedy:
  says: a beam of five beats none
  source: this test
  comparisons:
    - better: [{table: table1, group: g, row: beam5}]
      worse: [{table: table1, group: g, row: greedy}]
"""


def write_paper(checkout: Checkout, runs: str = "[seed1]") -> None:
    """Leave a few tables; ``runs`` are those of table 1."""
    checkout.write("config/claims.yaml", CLAIMS)
    checkout.write("config/paper.yaml", PAPER.replace("RUNS", runs))
