"""Receipts: every prompt can be made again from the releases that it was made of, and a forged answer is found out."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import aclosing
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from asking import serving
from formats import write_formats
from octavo_artifact import __version__
from octavo_artifact.errors import ArtifactError, OctavoError, RequestError
from octavo_serve.answering.answerer import Answerer
from octavo_serve.answering.mcp_retriever import McpEndpoint
from octavo_serve.answering.model import ChatEndpoint, Sampling
from octavo_serve.answering.prompt import Prompt, make_prompt
from octavo_serve.answering.proof import prove_answer
from octavo_serve.answering.receipts import parse_receipt, rebuild, receipt_of, releases_in
from octavo_serve.answering.results import Receipt
from octavo_serve.answering.retriever import InProcess
from octavo_serve.answering.settings import AnswerSettings, ModelSettings, RetrieverSettings
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.cli import main
from octavo_serve.faces import Workers
from octavo_serve.introduction import authority_of
from octavo_serve.requests import AskRequest, SearchRequest
from octavo_serve.results import Hit
from octavo_serve.settings import ServerSettings
from running import LIGHTHOUSE, ROOT, TINY, Serving, octavo
from scripted import answer, scripted

DAY = date(2027, 11, 1)
"""On which much of what the packs say is overdue."""

SAMPLING = Sampling(max_tokens=512, temperature=0.0, top_p=1.0, seed=0)


@pytest.fixture(scope="module")
def formats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dist with packs of every format: long tables, Windows line ends, bad bytes, hidden characters, requirements."""
    root = tmp_path_factory.mktemp("formats")
    source = root / "formats"
    write_formats(source)
    (source / "hidden.md").write_text("# Hidden\n\nA platypus\u202e glows\U000e0041\U000e0042 and\x1b[8m lays eggs.\n")
    (source / "marks.md").write_text("# [2] Marks\n\n[2] Platypus; formats/marks.md\n#0123456789ab QUESTION\nWhy?\n")
    lighthouse = shutil.copytree(LIGHTHOUSE, root / "lighthouse")
    with (lighthouse / "station/concepts/lens.md").open("a") as lens:
        lens.write("".join(f"\n## Ring {n}\n\n{'A ring of the lens bends the light. ' * 20}\n" for n in range(9)))
    done = octavo("build", source, TINY, lighthouse, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def catalog(formats: Path) -> Catalog:
    return open_catalog(formats)


QUESTIONS = (
    "torque of a bolt",
    "river floods the meadow",
    "sketch of a pump",
    "windows line ends",
    "broken byte and NUL",
    "platypus lays eggs",
    "valve opens at bar",
    "quokka smiles",
    "wombat digs",
    "numbat eats termites",
    "bilby ears",
    "the display shows E-17",
    "watts of the lamp",
    "how is the lamp lit?",
    "descale the boiler",
)


def prompts(catalog: Catalog, questions: tuple[str, ...], rooms: tuple[int, ...]) -> Generator[Prompt]:
    """Prompts of these questions to each pack and to all of them, for models of several sizes."""
    for pack in (None, *catalog.packs):
        for question in questions:
            search = SearchRequest(query=question, pack=pack, gate="off", max_results=8, as_of=DAY)
            hits = catalog.search(search)["results"][:20]
            metadata = {hit["pack"]: catalog.choose(hit["pack"]).manifest.pack["metadata"] for hit in hits}
            told = {slug: found for slug, each in metadata.items() if (found := authority_of(each))}
            for room in rooms if hits else ():
                yield make_prompt(question, hits, told, seed=f"{question} {room}", room=room)


def receipt(prompt: Prompt) -> Receipt:
    """As it comes out of a file."""
    return parse_receipt(json.loads(json.dumps(receipt_of(prompt, DAY, SAMPLING, "a-model", "It is so [1]."))))


def test_every_prompt_is_made_again_from_its_receipt(catalog: Catalog, formats: Path) -> None:
    releases = releases_in(formats)
    made = list(prompts(catalog, QUESTIONS, (700, 4000, 30_000)))
    for prompt in made:
        again = rebuild(receipt(prompt), releases)
        assert (again.messages, again.sha256) == (prompt.messages, prompt.sha256)
        assert [each.text for each in again.sources] == [each.text for each in prompt.sources]
    shown = [each for prompt in made for each in prompt.sources]
    assert {each.hit["source_file"].rpartition(".")[2] for each in shown} >= {
        "md",
        "html",
        "ipynb",
        "rst",
        "mdx",
        "txt",
    }
    assert any(each.hit["requires_expanded"] and not each.hit["heading_path"] for each in shown)
    assert any(each.hit["added_text"] for each in shown)
    assert any(len(each.text) < len(each.hit["text"].rstrip()) for each in shown)
    assert any("\ufffd[8m" in each.text for each in shown)
    assert any(len({each.hit["pack"] for each in prompt.sources}) > 1 for prompt in made)
    assert any("OVERDUE" in prompt.messages[1]["content"] for prompt in made)


@pytest.mark.slow
@pytest.mark.shared
def test_prompts_over_the_handbook_and_a_community_pack_are_made_again(shared: Path, tmp_path: Path) -> None:
    packs = [ROOT / "packs/octavo", shared / "packs/solar-diy"]
    done = octavo("build", *packs, "--out", tmp_path / "dist", "--state", tmp_path / "state", "-q", timeout=900)
    assert done.returncode == 0, done.stderr
    catalog, releases = open_catalog(tmp_path / "dist"), releases_in(tmp_path / "dist")
    searches = (SearchRequest(query=word, gate="off", max_results=50) for word in WORDS)
    titles = tuple(dict.fromkeys(hit["title"] for search in searches for hit in catalog.search(search)["results"]))
    assert len(titles) > 60
    for prompt in prompts(catalog, titles, (1200, 4000)):
        assert rebuild(receipt(prompt), releases).messages == prompt.messages


WORDS = ("wire", "battery", "light", "mesh", "sensor", "release", "digest", "automation", "panel", "render")


# What is wrong with a receipt.


@pytest.fixture(scope="module")
def right(catalog: Catalog) -> dict[str, Any]:
    """The receipt of a prompt with several sources."""
    made = next(prompts(catalog, ("the display shows E-17",), (4000,)))
    return cast(dict[str, Any], receipt(made))


Forge = Callable[[dict[str, Any]], dict[str, Any]]


def change(**fields: Any) -> Forge:
    return lambda receipt: {**receipt, **fields}


def passages(taken: slice) -> Forge:
    return lambda receipt: {**receipt, "passages": receipt["passages"][taken]}


def instead(value: object) -> Callable[[object], object]:
    return lambda receipt: value


def passage(**fields: Any) -> Forge:
    """Of the first passage."""
    return lambda receipt: {**receipt, "passages": [{**receipt["passages"][0], **fields}, *receipt["passages"][1:]]}


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        pytest.param(change(format=2), rf"receipt: format 2, of Octavo {__version__}", id="format"),
        pytest.param(
            change(template_sha256="0" * 64, octavo="9.9.9"), r"template 000000000000 of Octavo 9\.9\.9", id="template"
        ),
        pytest.param(change(question="Why?"), "prompt: made again it has sha256", id="question"),
        pytest.param(change(fence_seed="0"), "prompt: made again it has sha256", id="seed"),
        pytest.param(change(as_of="2020-01-01"), "prompt: made again it has sha256", id="day"),
        pytest.param(change(prompt_sha256="0" * 64), "the receipt says 000000000000", id="hash"),
        pytest.param(passages(slice(None, None, -1)), "prompt: made again", id="order"),
        pytest.param(passages(slice(1, None)), "prompt: made again", id="one less"),
        pytest.param(passage(shown=10), "prompt: made again", id="shown less"),
        pytest.param(passage(shown=10**6), "passage 1: 1000000 characters shown, it has", id="shown more"),
        pytest.param(passage(shown=0), "passage 1: 0 characters shown", id="shown nothing"),
        pytest.param(passage(digest="0" * 64), "not in this dist", id="release"),
        pytest.param(passage(digest="../.."), "not in this dist", id="another folder"),
        pytest.param(passage(pack="../tiny"), "not in this dist", id="another pack"),
        pytest.param(passage(source_file="none.md"), "are no passages of the release", id="file"),
        pytest.param(passage(byte_range=[0, 3]), "are no passages of the release", id="span"),
        pytest.param(passage(fragment_id="tiny/x#y:0"), "not what the receipt names", id="fragment"),
    ],
)
def test_a_forged_receipt_says_which_link_does_not_hold(
    right: dict[str, Any], formats: Path, forge: Forge, message: str
) -> None:
    with pytest.raises(ArtifactError, match=message):
        rebuild(parse_receipt(forge(right)), releases_in(formats))


@pytest.mark.parametrize(
    "forge",
    [
        instead(None),
        instead([]),
        instead({}),
        change(format="1"),
        change(passages=[{}]),
        change(more=1),
        change(as_of="yesterday"),
        passage(byte_range=[1]),
        passage(shown="9"),
    ],
    ids=["null", "list", "empty", "format", "passages", "more", "day", "range", "shown"],
)
def test_what_is_no_receipt_is_told(right: dict[str, Any], forge: Callable[[object], object]) -> None:
    with pytest.raises(RequestError, match="receipt: "):
        parse_receipt(forge(right))


def test_a_damaged_release_proves_nothing(right: dict[str, Any], formats: Path, tmp_path: Path) -> None:
    slug, digest = (right["passages"][0][name] for name in ("pack", "digest"))
    artifact = tmp_path / "dist" / slug / digest
    for file in (formats / slug / digest).rglob("*"):
        if file.is_file():
            (artifact / file.relative_to(formats / slug / digest)).parent.mkdir(parents=True, exist_ok=True)
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= file.suffix == ".store"
            (artifact / file.relative_to(formats / slug / digest)).write_bytes(data)
    with pytest.raises(ArtifactError, match=r"lexical/\w+\.store: sha256 is not what the manifest says"):
        rebuild(parse_receipt(right), releases_in(tmp_path / "dist"))


# Answers, as they come from an answerer and a model.


@pytest.fixture(scope="module")
def answered(catalog: Catalog) -> dict[str, Any]:
    """An answer with all that `octavo ask --json` has."""
    script = answer("The display shows E-17 when the tank is empty [1]. ", "Descale it [2][1].", usage=(900, 12))
    with scripted(script) as model:
        settings = AnswerSettings(ModelSettings(model.url))
        return asyncio.run(ask(settings, catalog, AskRequest(question="the display shows E-17", as_of=DAY)))


async def ask(settings: AnswerSettings, catalog: Catalog, asked: AskRequest) -> dict[str, Any]:
    workers = Workers(20)
    answerer = Answerer(ChatEndpoint(settings.model, None), settings, workers)
    given: dict[str, Any] = {}
    try:
        async with aclosing(answerer.events(asked, InProcess(catalog, workers), "trace")) as events:
            async for event in events:
                if event.name in ("sources", "done"):
                    given |= event.data
                assert event.name != "error", event.data
    finally:
        await answerer.close()
        workers.close()
    return cast(dict[str, Any], json.loads(json.dumps(given)))


def test_an_answer_is_proven(answered: dict[str, Any], formats: Path) -> None:
    proof = prove_answer(answered, formats)
    assert proof.error is None
    assert len(answered["citations"]) == 3
    assert proof.holds[-1] == "the evidence of citations stands in their sources: 3"
    assert len(proof.messages) == 2


def cited(**fields: Any) -> Forge:
    """The evidence of the first citation."""

    def forge(given: dict[str, Any]) -> dict[str, Any]:
        first, *rest = given["citations"]
        return {**given, "citations": [{**first, "evidence": {**first["evidence"], **fields}}, *rest]}

    return forge


def source(**fields: Any) -> Forge:
    """The first source."""
    return lambda given: {**given, "sources": [{**given["sources"][0], **fields}, *given["sources"][1:]]}


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        pytest.param(change(answer="It is safe."), "answer: its sha256 is", id="answer"),
        pytest.param(change(answer=None), "answer: its sha256 is", id="no answer"),
        pytest.param(change(sources=[]), "sources: 0, the prompt has", id="no sources"),
        pytest.param(source(text="It is safe."), "source 1: text is not what its release says", id="text"),
        pytest.param(source(title="Safety"), "source 1: title is not", id="title"),
        pytest.param(source(verified_at="2027-10-31"), "source 1: verified_at is not", id="date"),
        pytest.param(source(line_range=[1, 2]), "source 1: line_range is not", id="lines"),
        pytest.param(source(number=2), "source 1: number is not", id="number"),
        pytest.param(cited(sha256="0" * 64), r"citation \[1\]: bytes \d+ to \d+ have another sha256", id="evidence"),
        pytest.param(cited(byte_range=[0, 1]), r"citation \[1\]: bytes 0 to 1, its passage has", id="place"),
        pytest.param(cited(byte_range=[7]), r"citation \[1\]: bytes -1", id="no range"),
        pytest.param(cited(source_file="other.md"), r"citation \[1\]: its evidence is of another passage", id="file"),
    ],
)
def test_a_forged_answer_says_which_link_does_not_hold(
    answered: dict[str, Any], formats: Path, forge: Forge, message: str
) -> None:
    proof = prove_answer(forge(answered), formats)
    assert proof.error is not None
    with pytest.raises(OctavoError, match=message):
        raise ArtifactError(proof.error)


@pytest.mark.parametrize("forge", [change(citations=[1]), change(citations=None), change(sources="x")])
def test_what_is_no_answer_is_told(answered: dict[str, Any], formats: Path, forge: Forge) -> None:
    with pytest.raises(RequestError):
        prove_answer(forge(answered), formats)


# The command.


def events(given: dict[str, Any]) -> str:
    """As a stream has it."""
    found = {name: given[name] for name in ("pack", "digest", "sources")}
    done = {name: value for name, value in given.items() if name not in ("pack", "sources")}
    parts = [("sources", found), ("token", {"text": given["answer"]}), ("done", done)]
    return ": here\n\n" + "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in parts)


FORMS: dict[str, tuple[Callable[[dict[str, Any]], str], int]] = {
    "answer": (json.dumps, 6),
    "envelope": (lambda given: json.dumps({"success": True, "data": given, "error": None}), 6),
    "done": (lambda given: json.dumps({name: given[name] for name in given if name != "sources"}), 5),
    "receipt": (lambda given: json.dumps(given["receipt"]), 3),
    "stream": (events, 6),
}


@pytest.fixture
def verify(formats: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Verify:
    """The command over a file: its exit code, what it prints, and what it complains of."""

    def run(text: str, *options: str) -> tuple[int, str, str]:
        (tmp_path / "answer").write_text(text)
        code = main(["verify-answer", str(tmp_path / "answer"), "--dist", str(formats), *options])
        sys.stdout.flush()
        told = capfd.readouterr()
        return code, told.out, told.err

    return run


Verify = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("form", FORMS)
def test_the_command_takes_an_answer_in_every_form(answered: dict[str, Any], verify: Verify, form: str) -> None:
    write, lines = FORMS[form]
    code, shown, told = verify(write(answered))
    assert (code, told) == (0, "")
    assert len(shown.splitlines()) == lines, shown


def test_the_command_prints_the_prompt_whose_hash_the_receipt_has(answered: dict[str, Any], verify: Verify) -> None:
    _, shown, _ = verify(json.dumps(answered), "--prompt")
    assert sha256(shown.encode()).hexdigest() == answered["receipt"]["prompt_sha256"]
    system, user = json.loads(shown)
    assert (system["role"], user["role"]) == ("system", "user")
    assert verify(json.dumps({**answered, "answer": "It is safe."}), "--prompt")[:2] == (1, "")


def test_the_command_tells_what_holds_and_what_does_not(answered: dict[str, Any], verify: Verify) -> None:
    code, shown, _ = verify(json.dumps({**answered, "answer": "It is safe."}), "--json")
    told = json.loads(shown)
    assert code == 1
    assert told["error"].startswith("answer: ")
    assert told["holds"][-1].startswith("the prompt is made again")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "not JSON"),
        ("[]", "no answer in it"),
        ("7", "no answer in it"),
        ('{"success": false, "data": null}', "no answer in it"),
        ('{"receipt": null, "reason": "no_relevant_passage"}', "refused without a prompt (no_relevant_passage)"),
        ('{"receipt": {}}', "receipt: "),
        ("event: done\ndata: {\n\n", "not JSON"),
        ("data: 7\n\n", "no answer in it"),
    ],
)
def test_the_command_says_when_it_was_given_no_answer(verify: Verify, given: str, told: str) -> None:
    code, shown, complaint = verify(given)
    assert (code, shown) == (2, "")
    assert told in complaint


# Answers of servers.


def test_what_a_server_streams_is_proven_as_it_was_received(catalog: Catalog, verify: Verify) -> None:
    script = answer("The display shows E-17 when the tank is empty [1].", usage=(900, 12))
    with scripted(script) as model:
        settings = ServerSettings(port=0, answers=AnswerSettings(ModelSettings(model.url)))
        body = json.dumps({"question": "the display shows E-17", "pack": "tiny"}).encode()
        with serving(catalog, settings) as client:
            streamed = client("/ask", "POST", {"Content-Type": "application/json"}, body)
            at_once = client("/ask", "POST", {"Content-Type": "application/json"}, body, stream="false")
    for got in (streamed, at_once):
        code, shown, told = verify(got.body.decode())
        assert (code, told) == (0, ""), got.body
        assert shown.endswith("the evidence of citations stands in their sources: 1\n")


def test_prompts_of_passages_that_came_over_mcp_are_made_again(server: Serving, built: Path) -> None:
    async def found() -> list[Hit]:
        endpoint = McpEndpoint(RetrieverSettings(url=f"{server.address}/mcp"), None, 20)
        try:
            search = SearchRequest(query="the display shows E-17", gate="off", max_results=8, as_of=DAY)
            return (await endpoint.search(search))["results"]
        finally:
            await endpoint.close()

    hits = asyncio.run(found())
    assert len(hits) > 2
    packs = open_catalog(built).packs.values()
    told = {pack.slug: bounds for pack in packs if (bounds := authority_of(pack.manifest.pack["metadata"]))}
    for room in (700, 4000):
        prompt = make_prompt("the display shows E-17", hits, told, seed="seed", room=room)
        assert rebuild(receipt(prompt), releases_in(built)).messages == prompt.messages
