"""Rankers: a language model turns candidates into scores."""
