import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { look, print, transportTo } from "./look.mjs";

const transport = transportTo({ Http, Stdio });
let version;
const set = transport.setProtocolVersion?.bind(transport);
// the only place where this SDK tells it, over either transport
transport.setProtocolVersion = (negotiated) => {
  version = negotiated;
  set?.(negotiated);
};
const client = new Client({ name: "typescript-v1", version: "1" });
await client.connect(transport);
print({ version, ...(await look(client)) });
await client.close();
