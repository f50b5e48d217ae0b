"""Codes of an OKF bundle as data: severity, who asks for it, and what the author can do.

`spec` is the text of the format (0.2, or 0.1 where that stands alone), `convention` what its users have come to
expect. The severities are part of what we promise; they change only with a line in the changelog.
"""

from __future__ import annotations

SPEC, CONVENTION = "spec", "convention"

OKF: dict[str, tuple[str, str, str]] = {
    # listings and histories
    "okf-index-frontmatter": ("error", SPEC, "take the frontmatter out; only the root's index.md may have any"),
    "okf-index-keys": ("error", SPEC, "keep okf_version alone in the root's index.md"),
    "okf-index-empty": ("warning", SPEC, "give the listing a heading and links to what it lists"),
    "okf-index-missing": ("note", CONVENTION, "add an index.md with okf_version at the root"),
    "okf-index-stale": ("warning", CONVENTION, "take the link out; what it lists is gone"),
    "okf-not-indexed": ("warning", CONVENTION, "list the concept in the index.md of its folder"),
    "okf-version": ("note", SPEC, 'write okf_version: "0.2"; the bundle is read as well as can be'),
    "okf-log-date": ("error", SPEC, "head each group of the log with a day, ## YYYY-MM-DD"),
    "okf-log-order": ("warning", SPEC, "put the newest day first"),
    "okf-log-shape": ("warning", SPEC, "keep a list under each day, and nothing else but the title"),
    "okf-log-frontmatter": ("warning", SPEC, "take the frontmatter out; a log is no concept"),
    "okf-log-title": ("note", CONVENTION, "begin the log with a title, # ..."),
    # fields of a concept
    "okf-title-missing": ("warning", SPEC, "add a title; one is made from the text or the file's name"),
    "okf-description-missing": ("warning", SPEC, "say in one sentence what the concept is"),
    "okf-tags-missing": ("note", CONVENTION, "add a list of tags"),
    "okf-tags-shape": ("warning", SPEC, "write tags as a list of words: [a, b]; they are read as such"),
    "okf-tags-duplicate": ("warning", CONVENTION, "keep each tag once"),
    "okf-tags-case": ("note", CONVENTION, "write tags in lower case, so that equal ones are equal"),
    "okf-generated-missing": ("note", CONVENTION, "say in generated who made the concept, and when"),
    "okf-generated-shape": ("warning", SPEC, "write generated: {by, at}"),
    "okf-verified-shape": ("warning", SPEC, "write verified as a list of {by, at}; other entries do not count"),
    "okf-verified-order": ("warning", CONVENTION, "verify the concept again; it was made anew since"),
    "okf-actor": ("note", SPEC, "write producer/version, human:id or process:id"),
    "okf-status": ("warning", SPEC, "use draft, stable or deprecated"),
    "okf-draft": ("note", CONVENTION, "finish the draft, or leave it out of the release"),
    "okf-expired": ("note", SPEC, "verify the concept again, and renew stale_after"),
    "okf-instant": ("warning", SPEC, "write an ISO 8601 time with its offset, such as 2026-12-31T00:00:00Z"),
    "okf-instant-offset": ("warning", SPEC, "add time and offset, such as T00:00:00Z; until then it is read as UTC"),
    "okf-legacy": ("note", SPEC, "write generated.at for timestamp, sources for # Citations; version 0.1 is read too"),
    # provenance
    "okf-sources-shape": ("warning", SPEC, "write sources as a list of mappings that each have a resource"),
    "okf-source-duplicate": ("warning", SPEC, "give each source an id of its own"),
    "okf-source-unused": ("note", CONVENTION, "refer to the source by a footnote, or drop its id"),
    "okf-usage-count": ("warning", SPEC, "write usage_count as a whole number"),
    "okf-usage-window": ("note", SPEC, "say in usage_window over which time the uses were counted"),
    "okf-footnote-undefined": ("warning", SPEC, "write the footnote's text, or a source with that id"),
    "okf-footnote-source": ("warning", SPEC, "give the footnote's label to a source as its id"),
    # Attested Computation
    "okf-computation-runtime": ("warning", SPEC, "say in runtime what runs the computation"),
    "okf-computation-body": ("warning", SPEC, "give the computation once: in a fence under # Computation, or by path"),
    "okf-computation-parameter": ("warning", SPEC, "write parameters as a list of {name, type, required}"),
    "okf-computation-attester": ("note", CONVENTION, "name in attester what checks a receipt"),
    # links
    "okf-link-missing": ("warning", CONVENTION, "mend the link; the bundle has no such file"),
    "okf-link-outside": ("warning", CONVENTION, "link to an address; what lies outside the bundle is not followed"),
    "okf-link-case": ("warning", CONVENTION, "write the path in the case that the file has"),
    "okf-link-anchor": ("warning", CONVENTION, "mend the anchor; the page has no such heading"),
    "okf-link-folder": ("note", CONVENTION, "add an index.md to the folder, or link to a file"),
    "okf-link-self": ("note", CONVENTION, "take the link out; it leads to its own page"),
    "okf-link-deprecated": ("warning", CONVENTION, "link to what replaces the deprecated concept"),
    "okf-field-missing": ("warning", SPEC, "mend the path; the bundle has no such file"),
    "okf-field-root": ("note", SPEC, "begin the path with /; it is read from the root for want of a nearer file"),
    "okf-wikilinks": ("note", SPEC, "write Markdown links; OKF has no wikilinks"),
    "okf-orphan": ("warning", CONVENTION, "link to the concept, or list it in an index.md"),
    # text and names
    "okf-title-duplicate": ("note", CONVENTION, "give the concepts titles that tell them apart"),
    "okf-body-empty": ("warning", CONVENTION, "write the concept; nothing of it can be found"),
    "okf-body-stub": ("note", CONVENTION, "write more, or merge the concept into another"),
    "okf-heading-missing": ("note", CONVENTION, "give the text headings; passages and links go by them"),
    "okf-hidden-text": ("warning", CONVENTION, "remove the invisible characters; a reader cannot see what they say"),
    "okf-file-large": ("warning", CONVENTION, "split the file"),
    "okf-path-portable": ("warning", CONVENTION, "rename the file; some file systems cannot have that name"),
}  # fmt: skip

OF_THE_BUILD = {
    "okf-frontmatter-missing": SPEC,
    "okf-type-missing": SPEC,
    "okf-side-file": SPEC,
    "okf-ignore-limit": CONVENTION,
}
"""Who asks for what the build finds; its severities are in `findings.CODES`."""
