"""Drilling down: from an outline to sections to evidence paragraphs."""
