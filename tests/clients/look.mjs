// What every client of this folder does with the server, and what it prints of that: see matrix.py.
import { createHash } from "node:crypto";

export const QUESTION = "the display shows E-17, what now?";

/** Where the server is: {url, key?} or {command: [program, ...arguments]}. */
export const target = JSON.parse(process.argv[2]);
export const mode = process.argv[3];

/** A transport to the target, from the classes of whichever SDK. */
export function transportTo({ Http, Stdio }) {
  if (target.command) {
    const [command, ...args] = target.command;
    return new Stdio({ command, args });
  }
  const headers = target.key ? { Authorization: `Bearer ${target.key}` } : {};
  return new Http(new URL(target.url), { requestInit: { headers } });
}

export async function look(client) {
  const { tools } = await client.listTools();
  const { resources } = await client.listResources();
  const { prompts } = await client.listPrompts();
  const found = await client.callTool({ name: "ep_search", arguments: { query: QUESTION } });
  const hit = found.structuredContent.results[0];
  const read = await client.callTool({ name: "ep_read", arguments: { id: hit.id } });
  const answer = await client.callTool({ name: "ep_ask", arguments: { question: QUESTION } });
  const [content] = (await client.readResource({ uri: hit.uri })).contents;
  return {
    tools: tools.map((tool) => tool.name),
    resources: resources.map((resource) => resource.uri),
    prompts: prompts.map((prompt) => prompt.name),
    found: hit.id,
    read: read.structuredContent.id,
    answered: answer.structuredContent.answer,
    resource: createHash("sha256").update(content.text).digest("hex"),
  };
}

export function print(seen) {
  console.log(JSON.stringify(seen));
}
