import { Client, StreamableHTTPClientTransport as Http } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio } from "@modelcontextprotocol/client/stdio";
import { look, mode, print, transportTo } from "./look.mjs";

const options = mode === "auto" ? { versionNegotiation: { mode } } : {};
const client = new Client({ name: "typescript-v2", version: "1" }, options);
await client.connect(transportTo({ Http, Stdio }));
print({ version: client.getNegotiatedProtocolVersion(), ...(await look(client)) });
await client.close();
