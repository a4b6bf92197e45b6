// A profile that is being changed: its differences from the start, and its form as TOML, curl and Python.

export const SETTINGS = "settings"; // the profile in force, among the shipped ones' names
const MAPPINGS = ["weights", "depths", "gates", "timeouts"];
const SHOWN_ONLY = ["identity", "semanticWeight", "keywordWeight"]; // what the service says beside the profile

export function plain(profile) {
  const kept = structuredClone(profile);
  for (const name of SHOWN_ONLY) delete kept[name];
  return kept;
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// The changes for a request or for the settings.
export function changes(base, draft) {
  const found = {};
  for (const [name, value] of Object.entries(draft)) {
    if (same(value, base[name])) continue;
    if (!MAPPINGS.includes(name)) found[name] = value;
    else found[name] = Object.fromEntries(Object.entries(value).filter(([leg, given]) => given !== base[name]?.[leg]));
  }
  return found;
}

export function apply(base, given) {
  const draft = structuredClone(base);
  for (const [name, value] of Object.entries(given))
    draft[name] = MAPPINGS.includes(name) ? { ...draft[name], ...value } : value;
  return draft;
}

export function alpha(draft) {
  const { lexical = 0, dense = 0 } = draft.weights;
  return lexical + dense ? dense / (lexical + dense) : 0.5;
}

// As `Profile.to_toml` writes it: JSON's scalars are TOML's.
export function toml(draft) {
  const isTable = (value) => value !== null && typeof value === "object";
  const line = ([name, value]) => `${name} = ${JSON.stringify(value)}`;
  const lines = Object.entries(draft)
    .filter(([, value]) => !isTable(value))
    .map(line);
  for (const [name, table] of Object.entries(draft)) {
    if (isTable(table) && !Array.isArray(table) && Object.keys(table).length)
      lines.push("", `[${name}]`, ...Object.entries(table).map(line));
  }
  for (const step of draft.rerankers) lines.push("", "[[rerankers]]", ...Object.entries(step).map(line));
  return `${lines.join("\n")}\n`;
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curl(url, body, keyed) {
  const key = keyed ? ` \\\n  -H "Authorization: Bearer $TRIVET_KEY"` : "";
  return `curl ${quoted(url)} \\\n  -H "Content-Type: application/json"${key} \\\n  -d ${quoted(JSON.stringify(body))}\n`;
}

function literal(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, item]) => `${JSON.stringify(name)}: ${literal(item)}`)
      .join(", ")}}`;
  return JSON.stringify(value);
}

export function python(collection, body) {
  const given = [
    JSON.stringify(body.query),
    ...(body.k ? [`k=${body.k}`] : []),
    ...(body.where?.length ? [`where=${literal(body.where)}`] : []),
    ...(body.profile ? [`profile=${literal(body.profile)}`] : []),
  ];
  for (const [name, value] of Object.entries(body.overrides ?? {}))
    if (!(name === "k" && body.k)) given.push(`${name}=${literal(value)}`);
  return `import trivet\n\nmemory = trivet.open("memory.db", ${JSON.stringify(collection)})\nresults = memory.search(\n    ${given.join(",\n    ")},\n)\nfor hit in results:\n    print(hit.rank, hit.id, round(hit.relevance, 2), hit.text)\n`;
}
