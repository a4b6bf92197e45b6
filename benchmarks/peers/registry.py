"""The engines that are compared, what each installs, and its settings.

Settings are those that the engine's documentation recommends for collections of this size; where it has a parameter
between speed and recall, two of them. The remarks on a row in docs/evidence/benchmarks.md are from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of a table: an engine at one setting."""

    name: str
    module: str
    told: str
    setting: dict[str, Any]
    hybrid: bool = True
    ours: bool = False


@dataclass(frozen=True)
class Environment:
    """The packages of one engine's environment; versions of the first ones are reported."""

    packages: tuple[str, ...]
    told: tuple[str, ...]
    alone: tuple[str, ...] = field(default=())  # installed without what they say they need


ENVIRONMENTS = {
    "lancedb": Environment(("lancedb", "pyarrow"), ("lancedb",)),
    "chroma": Environment(("chromadb",), ("chromadb",)),
    # it declares torch and transformers for the models it can run; with given vectors it imports neither
    "txtai": Environment(("faiss-cpu", "msgpack", "pyyaml", "regex", "tqdm", "safetensors"), ("txtai",), ("txtai",)),
    "qdrant_edge": Environment(("qdrant-edge-py",), ("qdrant-edge-py",)),
    "qdrant_local": Environment(("qdrant-client", "qdrant-edge-py"), ("qdrant-client",)),
    "milvus_lite": Environment(("pymilvus", "milvus-lite"), ("milvus-lite", "pymilvus")),
    "zvec": Environment(("zvec",), ("zvec",)),
    "sqlite_vec": Environment(("sqlite-vec", "apsw"), ("sqlite-vec", "apsw")),
    "langchain": Environment(
        ("langchain-classic", "langchain-community", "langchain-core", "rank-bm25", "faiss-cpu"),
        ("langchain-classic", "langchain-community", "rank-bm25", "faiss-cpu"),
    ),
    "llamaindex": Environment(
        ("llama-index-core", "llama-index-retrievers-bm25", "llama-index-vector-stores-faiss", "faiss-cpu"),
        ("llama-index-core", "llama-index-retrievers-bm25", "bm25s", "faiss-cpu"),
    ),
}
ALWAYS = ("numpy",)

_FTS = "its FTS index (no positions), BITMAP indexes on the filtered fields, prefilter, RRFReranker"
_HNSW = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
_FINE = {"m": 32, "ef_construct": 256, "full_scan_threshold": 10_000}
_EDGE = "BM25 as sparse vector with IDF; keyword indexes; prefetch 100 each, RRF; optimized"

ROWS = (
    Row(
        "trivet",
        "trivet",
        "the default profile, everything on: four legs, learned reranker, calibrated relevance, every hit explained",
        {"legs": "all"},
        ours=True,
    ),
    Row(
        "trivet, two legs",
        "trivet",
        "words and meaning, fused (z-score, fixed weights), nothing else: what a peer's hybrid does; hits explained",
        {"legs": "two"},
        ours=True,
    ),
    Row(
        "trivet, two legs of 20",
        "trivet",
        "the same with 20 of each leg in place of 100, as zvec and LanceDB are asked",
        {"legs": "two", "depth": 20},
        ours=True,
    ),
    Row(
        "LanceDB IVF_PQ",
        "lancedb",
        f"IVF_PQ, 4096 rows a partition, 96 sub-vectors, nprobes 20, refine_factor 10; {_FTS}",
        {
            "index": {"index_type": "IVF_PQ", "rows_per_partition": 4096, "num_sub_vectors": 96},
            "query": {"nprobes": 20, "refine_factor": 10},
        },
    ),
    Row(
        "LanceDB HNSW_SQ",
        "lancedb",
        f"IVF_HNSW_SQ, one partition a million rows, m 20, ef_construction 300, ef 200, refine_factor 2; {_FTS}",
        {
            "index": {"index_type": "IVF_HNSW_SQ", "rows_per_partition": 1_048_576},
            "query": {"ef": 200, "refine_factor": 2},
        },
    ),
    Row(
        "Qdrant Edge",
        "qdrant_edge",
        f"HNSW m 16, ef_construct 100 (its defaults), hnsw_ef 128; {_EDGE}",
        {"hnsw": _HNSW, "prefetch": 100, "search": {"hnsw_ef": 128}},
    ),
    Row(
        "Qdrant Edge int8",
        "qdrant_edge",
        f"HNSW m 32, ef_construct 256, hnsw_ef 512, scalar int8 in memory, oversampling 2, rescored; {_EDGE}",
        {"hnsw": _FINE, "prefetch": 100, "search": {"hnsw_ef": 512}, "quantized": True},
    ),
    Row(
        "Milvus Lite HNSW",
        "milvus_lite",
        "HNSW M 16, efConstruction 200, ef 128; BM25 function with SPARSE_INVERTED_INDEX; INVERTED on the filtered "
        "fields; 100 of each, RRFRanker",
        {
            "index": {"index_type": "HNSW", "params": {"M": 16, "efConstruction": 200}},
            "search": {"ef": 128},
            "depth": 100,
        },
    ),
    Row(
        "Milvus Lite FLAT",
        "milvus_lite",
        "FLAT, exact; the rest as above",
        {"index": {"index_type": "FLAT", "params": {}}, "search": {}, "depth": 100},
    ),
    Row(
        "zvec HNSW",
        "zvec",
        "HNSW m 50, ef_construction 500 (its defaults), ef 300; FTS standard tokenizer, stemmed; inverted indexes; "
        "RrfReRanker over 20 of each (one number says both); optimized",
        {"index": {}, "ef": 300, "int8": False},
    ),
    Row(
        "zvec HNSW int8",
        "zvec",
        "HNSW m 24, ef_construction 300, int8 with refiner, ef 256; the rest as above",
        {"index": {"m": 24, "ef_construction": 300}, "ef": 256, "int8": True},
    ),
    Row(
        "sqlite-vec + FTS5",
        "sqlite_vec",
        "vec0 float[384], exact, metadata columns; FTS5 porter unicode61, OR of content words; 100 of each, RRF k 60 "
        "in SQL; WAL, synchronous NORMAL",
        {"coarse": False},
    ),
    Row(
        "sqlite-vec bits + FTS5",
        "sqlite_vec",
        "vec0 bit[384], 40 times as many rescored by the float vectors; the rest as above",
        {"coarse": True, "wide": 40},
    ),
    Row(
        "txtai",
        "txtai",
        "hybrid, content in SQLite, Faiss as it chooses (IVF from 5,000 rows on, nprobe by its rule), BM25 normalised; "
        "filters in SQL over 2,000 candidates",
        {"config": {}, "candidates": 2000, "depth": 100},
    ),
    Row(
        "txtai nprobe 256",
        "txtai",
        "the same, 256 cells looked at",
        {"config": {"faiss": {"nprobe": 256}}, "candidates": 2000, "depth": 100},
    ),
    Row(
        "LangChain Ensemble",
        "langchain",
        "EnsembleRetriever, BM25Retriever (rank_bm25, lower-cased words) and FAISS flat; 100 of each; filtered: 1,000 "
        "fetched, what does not fit thrown away",
        {"depth": 100, "fetch": 1000},
    ),
    Row(
        "LlamaIndex Fusion",
        "llamaindex",
        "QueryFusionRetriever reciprocal_rerank, BM25Retriever (bm25s, stemmed) and FAISS flat; 100 of each; filtered: "
        "BM25 by its mask, of FAISS 1,000 fetched and what does not fit thrown away",
        {"faiss": "flat", "depth": 100, "fetch": 1000},
    ),
    Row(
        "LlamaIndex Fusion HNSW",
        "llamaindex",
        "the same with FAISS HNSW 32, efConstruction 200, efSearch 128",
        {"faiss": "hnsw", "ef": 128, "depth": 100, "fetch": 1000},
    ),
    Row(
        "Chroma (meaning alone)",
        "chroma",
        "HNSW cosine, ef_construction 100, max_neighbors 16, ef_search 200; the local engine has no ranking by words "
        "(its search with ranks is for the hosted one), so this is no hybrid",
        {"hnsw": {"ef_construction": 100, "max_neighbors": 16, "ef_search": 200}},
        hybrid=False,
    ),
    Row(
        "Qdrant client, local mode",
        "qdrant_local",
        "exact numpy scan; BM25 weights of qdrant-edge as sparse vectors; prefetch 100 each, RRF",
        {"prefetch": 100},
    ),
)


def rows(only: list[str]) -> list[Row]:
    """Return the rows whose name or module starts with one of these; all without any."""
    found = [row for row in ROWS if not only or any(_matches(row, said) for said in only)]
    if not found:
        raise SystemExit(f"--only {' '.join(only)}: no such engine; there are: {', '.join(row.name for row in ROWS)}")
    return found


def _matches(row: Row, said: str) -> bool:
    return said.casefold() in (row.name.casefold(), row.module.casefold())
