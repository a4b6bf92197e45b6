"""Evaluation: datasets, runs, measures, significance tests, sweeps, tuning and reports.

>>> from trivet.evaluate import Lab, compare, evaluate, load
>>> with Lab.fill(load("demo")) as lab:
...     print(evaluate(lab, trivet.PROFILES["default"]).mean("nDCG@10"))
"""

from __future__ import annotations

from trivet.evaluate.comparison import Comparison, compare
from trivet.evaluate.dataset import Dataset, Topic, load, splits
from trivet.evaluate.evaluation import Evaluation, evaluate, judge, read_evaluation
from trivet.evaluate.feedback import from_feedback
from trivet.evaluate.lab import Lab
from trivet.evaluate.measures import MEASURES, score
from trivet.evaluate.quality_gate import Verdict, gate
from trivet.evaluate.run import Answer, Run, read_run
from trivet.evaluate.significance import Paired, paired
from trivet.evaluate.space import Space
from trivet.evaluate.sweeps import Headroom, Sweep, headroom, sweep
from trivet.evaluate.tuning import tune
from trivet.evaluate.tuning_result import Tuned

__all__ = [
    "MEASURES",
    "Answer",
    "Comparison",
    "Dataset",
    "Evaluation",
    "Headroom",
    "Lab",
    "Paired",
    "Run",
    "Space",
    "Sweep",
    "Topic",
    "Tuned",
    "Verdict",
    "compare",
    "evaluate",
    "from_feedback",
    "gate",
    "headroom",
    "judge",
    "load",
    "paired",
    "read_evaluation",
    "read_run",
    "score",
    "splits",
    "sweep",
    "tune",
]
