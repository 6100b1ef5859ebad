/** The part of a trace that concerns what broke: a whole one has a thousand lines, and most are about others. */

/** Names by which a line can be about something: requests, machines and their identities, nodes, addresses. */
const mentioned = /\b(csr-\d+|null#\w+|insecure#[\w-]+|node-[a-z]|m\d+x*|edge|10\.\d+\.\d+\.\d+)\b/g;
const doer = /^ *[\d.]+ {2}((?:sign|attest)#\d+)\b/;
const life = /^ *[\d.]+ {2}machine (m\d+x*) /;
/** Lines that concern every part. */
const common =
  /^ *[\d.]+ {2}(seed |BROKEN|the operator|new rules|the end)|^ *[\d.]+ {2}relay-\w+ (starts|dies|is told|stands)/;

/**
 * Lines about the requests and machines that `failure` names, and about what those calls did besides. Requests first:
 * a failure that names one is about that, and of its machine only the life is told.
 */
export function relevantTrace(lines: readonly string[], failure: string): readonly string[] {
  const all = new Set((failure.match(mentioned) ?? []).flatMap((name) => [name, name.replace('null#', '')]));
  const requests = [...all].filter((name) => name.startsWith('csr-'));
  const names = requests.length > 0 ? requests : [...all];
  if (names.length === 0) return lines;
  const about = new RegExp(`(?<![\\w-])(${names.map((name) => name.replaceAll('.', '\\.')).join('|')})(?![\\w])`);
  const doers = new Set(lines.filter((line) => about.test(line)).map((line) => doer.exec(line)?.[1]));
  return lines.filter((line) => {
    const [who, machine] = [doer.exec(line)?.[1], life.exec(line)?.[1]];
    if (about.test(line) || common.test(line)) return true;
    return (who !== undefined && doers.has(who)) || (machine !== undefined && all.has(machine));
  });
}
