"""Codes that only `octavo lint` finds, as data; those of a build are `findings.CODES`, and lint reports them too.

Codes and severities of the official ExpertPack validator are its own, so that a suppression means the same in both.
"""

from __future__ import annotations

from octavo_build.lint.okf.codes import OF_THE_BUILD, OKF

OFFICIAL: dict[str, tuple[str, str]] = {
    # code: (severity, what the author can do)
    "manifest-missing": ("error", "write a manifest.yaml; without it the folder is no ExpertPack"),
    "manifest-parse": ("error", "mend the manifest's YAML; nothing in it is used"),
    "manifest-type": ("error", "use person, product, process or composite"),
    "duplicate-basename": ("error", "rename one of the files; links name files without their folder"),
    "missing-prefix": ("error", "begin the file's name with the prefix of its folder"),
    "broken-related": ("error", "mend related; no document of the pack has that name"),
    "broken-wikilink": ("error", "mend the wikilink; no document of the pack has that name"),
    "missing-vbt-to-sum": ("error", "name the summary in related of the verbatim file"),
    "missing-sum-to-vbt": ("error", "name the verbatim file in related of the summary"),
    "broken-canonical-verbatim": ("error", "mend canonical_verbatim; no document of the pack has that name"),
    "E-MCP-01": ("error", "mend source in mcp.prompts; it is the path or the id of a document"),
    "no-frontmatter": ("warning", "begin the file with frontmatter (title, type, tags, pack)"),
    "missing-fm-field": ("warning", "add the field to the frontmatter"),
    "type-dir-mismatch": ("warning", "give the file the type of its folder, or move it"),
    "missing-index": ("warning", "add an _index.md that says what the folder holds"),
    "path-in-related": ("warning", "write the bare file name; it survives a move"),
    "verbatim-no-summary": ("warning", "write the summary of the verbatim file, or name it in related"),
    "markdown-links": ("warning", "write wikilinks between files of the pack"),
    "unidirectional-related": ("warning", "name the file in related of the other one too"),
    "orphaned": ("warning", "relate the file to others, or link to it"),
    "file-too-large": ("warning", "split the file, or declare it atomic"),
    "W-HUB-01": ("warning", "split the file, or declare concept_scope: reference or multi"),
    "W-RETR-01": ("warning", "merge the aggregate into its atoms, or declare retrieval_model: full-context"),
    "W-V40-01": ("warning", "delete the superseded file, or take it out of supersedes"),
    "W-V40-02": ("warning", "mend parent_concept; no document of the pack has that name"),
    "W-V40-03": ("warning", "declare the parent concept_scope: composite"),
    "W-V40-04": ("warning", "split the concept; it exceeds 1,500 tokens"),
    "W-V41-01": ("warning", "split the concept; it exceeds 1,000 tokens"),
    "W-V41-02": ("warning", "use independent atoms and requires; schema 4.1 has no composite concepts"),
    "W-V41-03": ("warning", "fold the key propositions into the text"),
    "W-V41-04": ("warning", "mend requires; no document of the pack has that name"),
    "W-V41-05": ("warning", "look at the boundary of the atoms; they require each other"),
    "W-PROV-01": ("warning", "say in verified_at when the file was last verified"),
    "W-PROV-02": ("warning", "verify the file again and renew content_hash"),
    "W-PROV-03": ("warning", "verify the file again; it is older than its refresh cycle"),
    "W-PROV-04": ("warning", "give the file an id that survives renames"),
    "W-PROV-05": ("warning", "mend the dates; a file cannot be verified before it is valid"),
    "W-PROV-06": ("warning", "write confidence as expert-verified, crawled or inferred"),
    "W-AKS-01": ("warning", "give the file an id; an agent's knowledge records are known by it"),
    "W-AKS-02": ("warning", "say in verified_at when the file was last verified; its record has no date"),
    "W-AKS-03": ("warning", "record content_hash; without one a later change of the text goes unseen"),
    "W-AKS-04": ("warning", "open the file with a sentence that says what it holds; its record has no statement"),
    "W-TIER-01": ("warning", "keep the always tier small and name its files; every session pays for it"),
    "W-TIER-02": ("warning", "declare retrieval_strategy: navigation; the file leads to others and answers nothing"),
    "W-TIER-03": ("warning", "take volatile files out of context.always; what a session begins with should hold"),
    "W-GRAPH-01": ("warning", "move its entities and relations to ontology.yaml and remove the file; nothing reads it"),
    "W-AUTH-01": ("warning", "say in authority_boundary what the pack answers and what it does not"),
    "W-AUTH-02": ("warning", "write authority_boundary with in_scope and out_of_scope"),
    "W-EVAL-01": ("warning", "add questions that the pack must refuse, at least 3 in all"),
    "W-MCP-01": ("warning", "name a document of type workflow as the prompt's source"),
    "W-MCP-02": ("warning", "declare the prompt's source retrieval_strategy: atomic; it is given whole"),
    "W-MCP-03": ("warning", "write mcp.instructions as a text of at most 500 characters"),
}

OWN: dict[str, tuple[str, str]] = {
    "schema-version": ("warning", "declare schema_version in the manifest; checks of schema 4 are skipped"),
    "composite-packs": ("warning", "mend packs or conflicts; a composite names its child packs, at most one as voice"),
    "context-duplicate": ("warning", "put the path into one tier; the last one counts"),
    "id-format": ("warning", "write the id as pack-slug/path-without-ending"),
    "value-kind": ("warning", "give the field a value of the expected kind"),
    "value-unknown": ("warning", "use one of the field's values"),
    "value-format": ("warning", "give the field a value of the expected form or range"),
    "activation-type": ("warning", "take activation out; workflows, decisions, gotchas and phases have one"),
    "link-anchor": ("warning", "mend the anchor; the document has no such heading"),
    "broken-markdown-link": ("warning", "mend the link; the pack has no such file"),
    "volatile-expired": ("warning", "fetch the data again"),
    "context-path": ("note", "remove the path; nothing in the pack has it"),
    "age-unchecked": ("note", "give --today YYYY-MM-DD to check ages"),
}

DEEP: dict[str, tuple[str, str]] = {
    "deep-injection": ("error", "take the text out, or quote it as code and say what it is; models may obey it"),
    "deep-secret": ("error", "take the credential out and revoke it; who has the release has it"),
    "deep-title-lost": ("warning", "give the document a title of its own, or say the title's words in its text"),
    "deep-unreachable": ("warning", "give the passage a heading that says what it holds, or merge it into another"),
    "deep-duplicate": ("warning", "keep one of the passages and link to it"),
    "deep-contradiction": ("warning", "find out which number holds, and say so in one place"),
    "deep-hidden-text": ("warning", "remove what a reader cannot see; a model reads it"),
    "deep-heading-lost": ("note", "write headings that can stand alone, where a reader would ask so"),
    "deep-injection-quoted": ("note", "nothing, if the page writes about such text; else take it out"),
}
"""What only a built artifact and its search show: `deep` has it from who can search."""

LINT_CODES: dict[str, tuple[str, str]] = {
    **OFFICIAL,
    **OWN,
    **DEEP,
    **{code: (severity, advice) for code, (severity, _, advice) in OKF.items()},
}

SOURCES: dict[str, str] = {**OF_THE_BUILD, **{code: source for code, (_, source, _) in OKF.items()}}
"""Who asks for what a code of OKF finds: `spec` or `convention`."""

PROVENANCE = frozenset(code for code in OFFICIAL if code.startswith("W-PROV-"))
"""Checked when asked for, as upstream does."""

AKS = frozenset(code for code in OFFICIAL if code.startswith("W-AKS-"))
"""Whether the pack can be exported as agent knowledge; checked when asked for, too."""
