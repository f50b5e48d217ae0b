// Skills, every read verified by digest, size and frontmatter; a mismatch throws.
import { Client, StreamableHTTPClientTransport as Http } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio } from "@modelcontextprotocol/client/stdio";
import * as skills from "@olaservo/ext-skills/client";
import { look, print, transportTo } from "./look.mjs";

const client = new Client({ name: "ext-skills", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(transportTo({ Http, Stdio }));
if (!skills.serverSupportsSkills(client) || !skills.serverSupportsDirectoryRead(client)) {
  throw new Error("the server does not declare skills and their directories");
}
const files = [];
for (const listed of await skills.listSkills(client)) {
  const entry = await skills.getSkill(client, listed.uri);
  await skills.readSkill(client, entry);
  for (const { uri } of skills.manifestOf(entry)) {
    await skills.readSkillResource(client, entry, uri);
    files.push(uri);
  }
  const walked = await skills.walkDirectory(client, listed.uri.replace(/\/SKILL\.md$/, ""));
  const inDirectories = walked.map((each) => each.uri).sort();
  const inManifest = skills.manifestOf(entry).map((each) => each.uri).sort();
  if (JSON.stringify(inDirectories) !== JSON.stringify(inManifest)) {
    throw new Error(`directories hold ${inDirectories}, the manifest ${inManifest}`);
  }
}
print({ version: client.getNegotiatedProtocolVersion(), ...(await look(client)), skills: files.sort() });
await client.close();
