import { Client, StreamableHTTPClientTransport as Http } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio } from "@modelcontextprotocol/client/stdio";
import { QUESTION, look, mode, print, transportTo } from "./look.mjs";

const options = mode === "auto" ? { versionNegotiation: { mode } } : {};
const client = new Client({ name: "typescript-v2", version: "1" }, options);
await client.connect(transportTo({ Http, Stdio }));
const told = [];
const onprogress = ({ message }) => told.push(message);
await client.callTool({ name: "ep_ask", arguments: { question: QUESTION } }, { onprogress });
print({ told, version: client.getNegotiatedProtocolVersion(), ...(await look(client)) });
await client.close();
