from .expectation import Expectation as Expectation
from .expectation import parse as parse
from .outcomes import Observed as Observed
from .outcomes import Outcome as Outcome
from .outcomes import Word as Word
from .outcomes import kleene_and as kleene_and
from .outcomes import kleene_not as kleene_not
from .outcomes import kleene_or as kleene_or
