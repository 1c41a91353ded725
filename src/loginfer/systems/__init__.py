"""Everything that can be trained and asked for confidences."""

from __future__ import annotations

from loginfer.settings import Setting, configure, setting, settings_of
from loginfer.systems.interface import CandidateScorer, Scorer, System, Watch, choose_method, training_view
from loginfer.systems.registry import SystemEntry as Entry
from loginfer.systems.registry import find_system, systems, tuned_settings

__all__ = [
    "CandidateScorer",
    "Entry",
    "Scorer",
    "Setting",
    "System",
    "Watch",
    "choose_method",
    "configure",
    "find_system",
    "setting",
    "settings_of",
    "systems",
    "training_view",
    "tuned_settings",
]
