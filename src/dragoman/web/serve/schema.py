"""What goes over the wire, as OpenAPI shows it: LibreTranslate's names, and our own `markdown` and `alignments`."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Format = Literal["text", "html", "markdown"]
Key = Annotated[str | None, Field(description="Needed where the server was started with --api-keys.")]


class TranslateRequest(BaseModel):
    """As JSON or as a form."""

    model_config = ConfigDict(title="TranslateRequest")

    q: Annotated[str | list[str], Field(description="The text, or several.")]
    source: Annotated[str, Field(description="The code of its language, or `auto`.")]
    target: Annotated[str, Field(description="The code of the language that is wanted.")]
    format: Annotated[Format, Field(description="What kind of text it is.")] = "text"
    alternatives: Annotated[int, Field(ge=0, description="So many other translations, too.")] = 0
    alignments: Annotated[bool, Field(description="Which word came from which, too.")] = False
    api_key: Key = None


class DetectRequest(BaseModel):
    """As JSON or as a form."""

    q: Annotated[str, Field(description="A text.")]
    api_key: Key = None


class Detected(BaseModel):
    """A language that a text may be in."""

    confidence: Annotated[float, Field(ge=0, le=100, description="Percent.")]
    language: str


class SentencePairs(BaseModel):
    """A sentence and its translation; `pairs` are numbers of words between spaces, from 0."""

    source: str
    target: str
    pairs: list[tuple[int, int]]


class TranslateAnswer(BaseModel):
    """Lists where `q` was a list."""

    translatedText: str | list[str]
    alternatives: Annotated[list[str] | list[list[str]] | None, Field(description="Where they were asked for.")] = None
    detectedLanguage: Annotated[Detected | list[Detected] | None, Field(description="Where the source was `auto`.")] = (
        None
    )
    alignments: Annotated[
        list[list[SentencePairs]] | None, Field(description="For every text its sentences, where asked for.")
    ] = None


class Language(BaseModel):
    """`targets` are the codes of the languages that it is translated to."""

    code: str
    name: str
    targets: list[str]


class Named(BaseModel):
    """A language to begin with."""

    code: str
    name: str


class Chosen(BaseModel):
    """What a page begins with."""

    source: Named
    target: Named


class FrontendSettings(BaseModel):
    """As LibreTranslate has them; a limit of -1 is none."""

    apiKeys: bool
    charLimit: int
    filesTranslation: bool
    frontendTimeout: int
    keyRequired: bool
    language: Chosen
    suggestions: bool
    supportedFilesFormat: list[str]


class Health(BaseModel):
    """It answers."""

    status: Literal["ok"]


class ErrorAnswer(BaseModel):
    """One line that says what is wrong."""

    error: str
