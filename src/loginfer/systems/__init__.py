"""Everything that can be trained and asked for confidences."""

from __future__ import annotations

from loginfer.systems.interface import CandidateScorer, Scorer, System, Watch
from loginfer.systems.registry import Entry, find_system, systems
from loginfer.systems.settings import Setting, configure, setting, settings_of
from loginfer.systems.tuning import tuned_settings
from loginfer.systems.view import choose_method, training_view

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
