/**
 * The part of CloudWatch Logs' filter patterns that ours use, to hold them against lines of log: `{ selector = "text" }`,
 * `{ selector = "begin*" }`, `{ selector = * }`, `{ selector IS FALSE }` and several joined by `&&`.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
 */
export function matches(pattern: string, line: string): boolean {
  const inner = /^\{ (.+) \}$/.exec(pattern)?.[1];
  if (inner === undefined) throw new Error(`not a JSON pattern: ${pattern}`);
  const json: unknown = JSON.parse(line);
  return inner.split(' && ').every((term) => {
    const isFalse = /^\$((?:\.[\w-]+)+) IS FALSE$/.exec(term)?.[1];
    if (isFalse !== undefined) return select(json, isFalse) === false;
    const [, selector, expected] = /^\$((?:\.[\w-]+|\[\d+\])+) = (\*|"[^"*]*\*?")$/.exec(term) ?? [];
    if (selector === undefined || expected === undefined) throw new Error(`a term this does not know: ${term}`);
    const found = select(json, selector);
    if (expected === '*') return found !== undefined;
    const text = expected.slice(1, -1);
    if (text.endsWith('*')) return typeof found === 'string' && found.startsWith(text.slice(0, -1));
    return found === text;
  });
}

function select(json: unknown, selector: string): unknown {
  let node = json;
  for (const [step] of selector.matchAll(/[\w-]+/g)) {
    if (typeof node !== 'object' || node === null) return undefined;
    node = (node as Readonly<Record<string, unknown>>)[step];
  }
  return node;
}
