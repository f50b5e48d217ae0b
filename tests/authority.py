"""An authorization server on a socket of this machine: Authlib's, with clients, scopes, resources and keys that change.

It knows one confidential client for each grant, lets every scope pass, and names the `resource` of a request (RFC 8707)
in the token's `aud`. Whoever is sent to it to sign in is `ada`, and agrees.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import jwt
import pytest
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants
from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, Response, jsonify, request
from joserfc.jwk import ECKey, Key, KeySet, OKPKey, RSAKey
from werkzeug.serving import WSGIRequestHandler, make_server

CLIENT, SECRET = "agent-7", "of the machine's own"
REDIRECT = "http://127.0.0.1:9/callback"
METADATA = "/.well-known/oauth-authorization-server"
JWKS = "/jwks"


@dataclass(frozen=True)
class Client(ClientMixin):
    """The one client, which may do everything."""

    def get_client_id(self) -> str:
        return CLIENT

    def get_default_redirect_uri(self) -> str:
        return REDIRECT

    def get_allowed_scope(self, scope: Collection[str] | str) -> str:
        return scope if isinstance(scope, str) else " ".join(scope or ())

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == REDIRECT

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method in ("client_secret_basic", "client_secret_post")

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in ("client_credentials", "authorization_code")


@dataclass(frozen=True)
class Person:
    name: str

    def get_user_id(self) -> str:
        return self.name


@dataclass(frozen=True)
class Code(AuthorizationCodeMixin):
    code: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


def new_key(kid: str, kind: str = "EC") -> Key:
    """A private key; RSA of 2048 bits, EC on P-256, OKP on Ed25519."""
    options: Any = {"kid": kid, "use": "sig"}
    match kind:
        case "RSA":
            return RSAKey.generate_key(2048, options)
        case "OKP":
            return OKPKey.generate_key("Ed25519", options)
        case curve:
            return ECKey.generate_key("P-256" if curve == "EC" else curve, options)


@dataclass
class Authority:
    """The server, and what a test may change of it."""

    url: str
    key: Key
    """Signs."""
    published: list[Mapping[str, Any]]
    """The key set, as it is."""
    metadata: dict[str, Any]
    asked: Counter[str] = field(default_factory=Counter[str])
    """How often each path was."""
    seen: list[str] = field(default_factory=list[str])
    """Every request that came: line and headers."""
    replies: dict[str, Response] = field(default_factory=dict[str, Response])
    """What a path answers instead of what it should."""
    gate: threading.Event = field(default_factory=threading.Event)
    """Closed, the key set is not answered."""

    def publish(self, *keys: Key) -> None:
        """Replace the key set."""
        self.published = [key.as_dict(private=False) for key in keys]

    def rotate(self, kid: str) -> None:
        """Sign with a new key, and publish it only."""
        self.key = new_key(kid)
        self.publish(self.key)

    def token(self, scope: str, resource: str) -> str:
        """One by client credentials."""
        form = {"grant_type": "client_credentials", "scope": scope, "resource": resource}
        answer = httpx2.post(f"{self.url}/token", data=form, auth=(CLIENT, SECRET))
        assert answer.status_code == 200, answer.text
        return answer.json()["access_token"]

    def signed(
        self, claims: Mapping[str, Any], header: Mapping[str, Any] | None = None, key: Key | None = None, alg: str = ""
    ) -> str:
        """A token that says just this, by another library than the server's; in the header None takes a field away."""
        key = key or self.key
        signer = jwt.PyJWK(dict(key.as_dict(private=True)), alg or None)
        fields = {"typ": "at+jwt", "kid": key.kid, **(header or {})}
        fields = {name: value for name, value in fields.items() if value is not None}
        return jwt.encode(dict(claims), signer, alg or signer.algorithm_name, headers=fields)


def _application(authority: Authority) -> Flask:
    app = Flask("authority")
    codes: dict[str, Code] = {}

    class Tokens(JWTBearerTokenGenerator):
        def get_jwks(self) -> KeySet:
            return KeySet([authority.key])

        def get_audiences(self, client: Any, user: Any, scope: str) -> str | list[str]:
            return request.form.getlist("resource") or authority.url

    class Codes(grants.AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

        def save_authorization_code(self, code: str, request: Any) -> None:
            asked = request.payload.data
            challenge = asked["code_challenge"], asked["code_challenge_method"]
            codes[code] = Code(code, asked["redirect_uri"], request.payload.scope, *challenge)

        def query_authorization_code(self, code: str, client: Any) -> Code | None:
            return codes.get(code)

        def delete_authorization_code(self, authorization_code: Code) -> None:
            del codes[authorization_code.code]

        def authenticate_user(self, authorization_code: Code) -> Person:
            return Person("ada")

    def query_client(client_id: str) -> Client | None:
        return Client() if client_id == CLIENT else None

    def save_token(token: Any, request: Any) -> None:
        """Nobody asks for it again."""

    server = AuthorizationServer(app, query_client, save_token)
    kind = "ES256" if authority.key.key_type == "EC" else "RS256"
    server.register_token_generator("default", Tokens(authority.url, kind))
    server.register_grant(grants.ClientCredentialsGrant)
    server.register_grant(Codes, [CodeChallenge(required=True)])

    @app.before_request
    def _() -> Response | None:
        authority.asked[request.path] += 1
        authority.seen.append(f"{request.method} {request.url} {dict(request.headers)}")
        return authority.replies.get(request.path)

    @app.get(METADATA)
    def metadata() -> Response:
        return jsonify(authority.metadata)

    @app.get(JWKS)
    def jwks() -> Response:
        assert authority.gate.wait(10)
        return jsonify({"keys": authority.published})

    @app.post("/token")
    def token() -> Any:
        return server.create_token_response()

    @app.get("/authorize")
    def authorize() -> Any:
        grant = server.get_consent_grant(end_user=Person("ada"))
        return server.create_authorization_response(grant=grant, grant_user=Person("ada"))

    return app


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002  # as in the base class
        pass


@contextmanager
def authority_running() -> Generator[Authority]:
    """An authority on a free port, ended with the context."""
    with pytest.MonkeyPatch.context() as patch:
        # Authlib wants https everywhere else, as it should.
        patch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
        key = new_key("first")
        authority = Authority("", key, [], {})
        authority.publish(key)
        authority.gate.set()
        server = make_server("127.0.0.1", 0, Flask("unnamed"), threaded=True, request_handler=_Quiet)
        authority.url = f"http://127.0.0.1:{server.server_port}"
        server.app = _application(authority)
        authority.metadata = {
            "issuer": authority.url,
            "authorization_endpoint": f"{authority.url}/authorize",
            "token_endpoint": f"{authority.url}/token",
            "jwks_uri": authority.url + JWKS,
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
        }
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield authority
        finally:
            authority.gate.set()
            server.shutdown()
            thread.join(10)
            server.server_close()


def claims(authority: Authority, audience: str, scope: str = "pack:tiny", **others: Any) -> dict[str, Any]:
    """Those of a good token; None takes one away."""
    now = int(time.time())
    said: dict[str, Any] = {
        "iss": authority.url,
        "aud": audience,
        "sub": "ada",
        "client_id": CLIENT,
        "iat": now,
        "exp": now + 600,
        "scope": scope,
        **others,
    }
    return {name: value for name, value in said.items() if value is not None}
