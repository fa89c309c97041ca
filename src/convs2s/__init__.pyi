from convs2s.api.translator import Translator as Translator
from convs2s.decoding.inspection import AttentionMap as AttentionMap
from convs2s.decoding.rescoring import PairScore as PairScore
from convs2s.decoding.translate import Translation as Translation
from convs2s.errors import UserError as UserError

__version__: str
