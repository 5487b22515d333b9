"""One self-contained HTML file from answers, and one answer as a piece of a notebook."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"writing": ["fragment", "html", "report_data", "write"]}
)
