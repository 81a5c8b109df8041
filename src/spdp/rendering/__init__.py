"""Renderers: HTML cards and pages, and pictures."""
