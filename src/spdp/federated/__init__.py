"""Releases over sites of which nobody sees another's records or exact sums.

A *study* is a file that all sites agree on and sign. A *round* is one query of it. Each
site answers with its exact total, its share of the noise and pairwise masks, modulo
2⁶⁴. Masks cancel in the sum over all sites and nowhere else (:mod:`.masks`).

:mod:`.study` has the study, its cards and seals; :mod:`.messages` queries as plain
values; :mod:`.site` what a site does; :mod:`.rounds` what the coordinator does;
:mod:`.transcript` what is published of the rounds, and how it is checked;
:mod:`.folder` and :mod:`.flare` carry messages.
"""
