"""The training sources: repository, commit, licence and what is read from each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A public repository at one commit. ``reader`` names a function of ``readers.py``; ``cap`` limits passages."""

    name: str
    repository: str
    commit: str
    licence: str
    reader: str
    kind: str
    argument: str = ""
    cap: int = 0


INSTRUCTIONS = ("code-krishna/natural-instructions", "fae1ce4af9b5146f2d88a84ed6c9aeb38e727d58")
#: name, file number of the task, licence as the task file states it, kind of passage
TASKS = (
    ("cosmosqa", "023", "CC BY 4.0", "prose"),
    ("qasc", "040", "CC BY 4.0", "prose"),
    ("ropes", "060", "CC BY 4.0", "prose"),
    ("quartz", "178", "CC BY 4.0", "prose"),
    ("iirc", "235", "CC BY 4.0", "prose"),
    ("tweetqa", "240", "CC BY-SA 4.0", "prose"),
    ("boolq", "381", "CC BY-SA 3.0", "prose"),
    ("boolq_questions", "1660", "CC BY-SA 3.0", "prose"),
    ("torque", "389", "Apache-2.0", "prose"),
    ("qasper", "461", "CC BY 4.0", "abstract"),
    ("mocha", "596", "CC BY-SA 4.0", "prose"),
    ("qed", "769", "CC BY-SA, GFDL", "prose"),
    ("pubmedqa", "846", "MIT", "abstract"),
    ("xlsum", "1358", "CC BY-SA 4.0", "prose"),
    ("doqa_cooking", "1439", "CC BY-SA 4.0", "prose"),
    ("doqa_movies", "1442", "CC BY-SA 4.0", "prose"),
    ("peerread", "1540", "CC BY 4.0", "abstract"),
    ("scitail", "1552", "Apache-2.0", "prose"),
)
#: name, repository, commit, licence, folder of the documentation; Python functions are read from the whole tree
CODE = (
    ("django", "django/django", "03988c5a5ba248c3b9b11ea96fd4fda5e98849aa", "BSD-3-Clause"),
    ("scikit-learn", "scikit-learn/scikit-learn", "be5a8a8bd493747a5d52c7700dc0f1d47b645be6", "BSD-3-Clause"),
    ("pandas", "pandas-dev/pandas", "66d98e5d527ed7beb50feaa85a6d222938dd713d", "BSD-3-Clause"),
    ("sqlalchemy", "sqlalchemy/sqlalchemy", "f35da7e2b9349a08b8de1f6bd3b07c8bf8616790", "MIT"),
    ("scrapy", "scrapy/scrapy", "11079cb1c85b9e75a39a7269943c69d1a975d485", "BSD-3-Clause"),
    ("networkx", "networkx/networkx", "cfc6b79fc53f583aa15a79b2187ae30bd4f480ed", "BSD-3-Clause"),
    ("sympy", "sympy/sympy", "e950d313a932bc6cccbc95376b3821cd2f8b5af4", "BSD-3-Clause"),
    ("scipy", "scipy/scipy", "3dbf660a919b1479cdf30d533176053b428d08d3", "BSD-3-Clause"),
    ("transformers", "huggingface/transformers", "d56c55bf564ddb176759eb6ec199442682564916", "Apache-2.0"),
    ("celery", "celery/celery", "5dc781f0bd5f36186bfcc74e0a4f9f654452c69b", "BSD-3-Clause"),
    ("pytest", "pytest-dev/pytest", "df87db7b0462fb764ef73fa00561adf8ad047572", "MIT"),
    ("astropy", "astropy/astropy", "1fdfae1fe1881234e08855ac662dae86e538ed7c", "BSD-3-Clause"),
    ("kubernetes-website", "kubernetes/website", "56464fe6c846523da555b49fbb012f0e270871ae", "CC BY 4.0"),
    ("dask", "dask/dask", "817e5ffc1208346630b111860571024b0c6ec9bd", "BSD-3-Clause"),
    ("tornado", "tornadoweb/tornado", "e530031405e2154654dedc4c84d5656b557ea310", "Apache-2.0"),
    ("twisted", "twisted/twisted", "64661601a1e492a9448ac1011deb9cd9467a9e30", "MIT"),
    ("airflow", "apache/airflow", "4e4d0608c42f405e248df502184b4d6df99bf774", "Apache-2.0"),
    ("statsmodels", "statsmodels/statsmodels", "82c59e378bdfb5ae324006c477954879ad3e24be", "BSD-3-Clause"),
    ("synapse", "matrix-org/synapse", "be65a8ec0195955c15fdb179c9158b187638e39a", "Apache-2.0"),
    ("salt", "saltstack/salt", "8b63e700637e40d76f80a00d95c60471797c73b9", "Apache-2.0"),
    ("home-assistant", "home-assistant/core", "702a9cb7289e535927f5279190bcad6ffc5d3fd0", "Apache-2.0"),
)

SOURCES = (
    *(Source(name, *INSTRUCTIONS, licence, "instructions", kind, task) for name, task, licence, kind in TASKS),
    Source("qamr", "uwnlp/qamr", "956b0eb2d5857f4aafa1af257ba06fa6cb683b99", "MIT", "qamr", "prose"),
    Source("policyqa", "wasiahmad/PolicyQA", "775538bc6d932e9d0dd16975d4373659cf8964fe", "MIT", "policyqa", "prose"),
    Source(
        "covidqa",
        "deepset-ai/COVID-QA",
        "fb2eb5e249618457e5359806601086c635c8eb8f",
        "Apache-2.0",
        "covidqa",
        "abstract",
    ),
    Source(
        "friendsqa", "emorynlp/FriendsQA", "9ce6c98a6acf13c87d96b6811e4409b5de43bdfe", "Apache-2.0", "friendsqa", "turn"
    ),
    Source("qmsum", "Yale-LILY/QMSum", "83d7768c1f2b4dfeb091385d3dc7e239b8e5bb7e", "MIT", "qmsum", "turn"),
    Source(
        "schema_dialogues",
        "google-research-datasets/dstc8-schema-guided-dialogue",
        "e852981ae34990f4358979625854259302feaa78",
        "CC BY-SA 4.0",
        "schema_dialogues",
        "turn",
    ),
    Source(
        "taskmaster",
        "google-research-datasets/Taskmaster",
        "d92cb6af3005f1dc09c39e75e7daf4a04905e00b",
        "CC BY 4.0",
        "taskmaster",
        "turn",
    ),
    Source(
        "persona_chat",
        "google-research-datasets/Synthetic-Persona-Chat",
        "1f367a0f05d388ca96ebbbc9e5752ab19ac76510",
        "CC BY 4.0",
        "persona_chat",
        "turn",
    ),
    Source(
        "irc",
        "jkkummerfeld/irc-disentanglement",
        "82ed04f9627a45d0d6f2ec3c8683c88eb408a0d5",
        "CC BY 4.0",
        "irc",
        "turn",
    ),
    Source(
        "questions",
        "google-research-datasets/query-wellformedness",
        "fb69c21416195cddc797277ea9e4d393226571d2",
        "CC BY-SA 4.0",
        "questions",
        "prose",
    ),
    *(
        Source(f"{name}-code", repo, commit, licence, "functions", "code", "6000")
        for name, repo, commit, licence in CODE
    ),
    *(
        Source(f"{name}-docs", repo, commit, licence, "sections", "docs", "4000")
        for name, repo, commit, licence in CODE
    ),
)
