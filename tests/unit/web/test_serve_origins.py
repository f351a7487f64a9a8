"""Origins that no browser sends are refused instead of never matching."""

import pytest

from dragoman.errors import DragomanError
from dragoman.web.serve.origins import checked_origins


def test_origins_as_a_browser_sends_them():
    given = ["*", "https://example.org", "http://localhost:8000", "http://[::1]:80", "chrome-extension://abc"]
    assert checked_origins(given) == given


@pytest.mark.parametrize("origin", ["", "example.org", "https://example.org/", "https://a.b/page", "not a url", "**"])
def test_what_is_no_origin(origin):
    with pytest.raises(DragomanError, match="is not an origin"):
        checked_origins([origin])
