"""Schemas of the OpenAI-compatible routes: their bodies, and their responses as the SDK of OpenAI reads them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator
from pydantic_core import PydanticCustomError

from trivet.http.request_models import Body, examples
from trivet.types import Degraded

Attributes = dict[str, str | float | bool]
_FILTERS = {
    "type": "and",
    "filters": [
        {"type": "eq", "key": "building", "value": "north"},
        {"type": "gte", "key": "floor", "value": 1},
    ],
}


class NewEmbeddings(Body):
    model_config = examples({"input": ["The side door sticks."], "model": "default"})

    input: str | list[str]
    model: str = Field(description="`default`, or the id of the collection's model.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, description="Must be the number that the model has.")
    user: str | None = None
    input_type: Literal["passage", "query"] = Field("passage", description="Some models embed queries differently.")

    @field_validator("input", mode="before")
    @classmethod
    def _no_tokens(cls, given: Any) -> Any:
        """Refuse what LangChain's ``OpenAIEmbeddings`` sends by default."""
        if isinstance(given, list) and any(isinstance(item, int | list) for item in given):
            way_out = "send text (LangChain: check_embedding_ctx_length=False)"
            raise PydanticCustomError("tokens", f"numbers of tokens are not read; {way_out}")
        return given


class NewVectorStore(Body):
    model_config = examples({"name": "handbook"})

    name: str | None = Field(None, description="The name of the collection, and the id; made up if left out.")
    file_ids: list[str] | None = Field(None, description="Uploaded files to attach.")


class NewVectorStoreFile(Body):
    model_config = examples({"file_id": "5f0c1d2e3a4b5c6d", "attributes": {"building": "north"}})

    file_id: str
    attributes: Attributes | None = Field(None, description="Metadata that filters can name.")


class RankingOptions(Body):
    ranker: Literal["auto", "default-2024-11-15"] | None = Field(None, description="The collection's settings rank.")
    score_threshold: float | None = Field(None, ge=0, le=1, description="The least relevance, as `min_relevance`.")


class VectorStoreSearch(Body):
    model_config = examples({"query": "why does the door stick", "filters": _FILTERS, "max_num_results": 5})

    query: str | list[str] = Field(description="A list has other wordings of the first.", min_length=1)
    filters: dict[str, Any] | None = Field(None, description="OpenAI's comparison and compound filters.")
    max_num_results: int = Field(10, ge=1, le=50)
    ranking_options: RankingOptions | None = None
    rewrite_query: Literal[False] | None = Field(None, description="Queries are not rewritten.")


class Embedding(BaseModel):
    object: str
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class Embeddings(BaseModel):
    object: str
    data: list[Embedding]
    model: str
    usage: Usage


class UploadedFile(BaseModel):
    id: str
    object: str
    bytes: int
    created_at: int
    filename: str
    purpose: str
    status: str


class UploadedFiles(BaseModel):
    object: str
    data: list[UploadedFile]
    has_more: bool


class FileCounts(BaseModel):
    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int


class VectorStore(BaseModel):
    id: str
    object: str
    name: str
    created_at: int = Field(description="Always 0: not known.")
    status: str = Field(description="`in_progress` while passages wait to be embedded.")
    usage_bytes: int = Field(description="Always 0: not known for one collection.")
    file_counts: FileCounts = Field(description="Documents; a file may have several.")
    metadata: dict[str, str]


class VectorStores(BaseModel):
    object: str
    data: list[VectorStore]
    has_more: bool


class VectorStoreFile(BaseModel):
    id: str
    object: str
    vector_store_id: str
    created_at: int
    status: str
    usage_bytes: int
    last_error: None
    attributes: dict[str, Any]


class VectorStoreFiles(BaseModel):
    object: str
    data: list[VectorStoreFile]
    has_more: bool


class Content(BaseModel):
    type: str
    text: str


class FoundContent(BaseModel):
    file_id: str
    filename: str
    score: float = Field(description="The relevance of the hit.")
    attributes: dict[str, Any]
    content: list[Content]


class FoundContents(BaseModel):
    object: str
    search_query: list[str]
    data: list[FoundContent]
    has_more: bool
    next_page: None
    degraded: list[Degraded]


class DeletedObject(BaseModel):
    id: str
    object: str
    deleted: bool
