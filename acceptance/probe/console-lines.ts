/** Text on a serial console, where other programs write between the lines: each line says what it belongs to. */
import { createHash } from 'node:crypto';

/** A serial console wraps nothing, but is read by eye too. */
const charactersInLine = 120;

export function toLines(run: string, round: number, text: string): string {
  const encoded = Buffer.from(text, 'utf8').toString('base64url');
  const parts = encoded.match(new RegExp(`.{1,${charactersInLine}}`, 'g')) ?? [];
  const lines = parts.map(
    (part, index) => `${run} ${round} ${digestOf(encoded)} ${index + 1}/${parts.length} ${part}\n`,
  );
  return lines.join('');
}

/** The newest text that is complete, if it is of a later round than `after`. */
export function newestText(
  console: string,
  run: string,
  after: number,
): { readonly round: number; readonly text: string } | undefined {
  const rounds = new Map<
    number,
    { readonly digest: string; readonly parts: Map<number, string>; readonly of: number }
  >();
  const line = new RegExp(`${run} (\\d+) ([0-9a-f]{16}) (\\d+)/(\\d+) ([\\w-]+)`, 'g');
  for (const [, round = '', digest = '', index = '', of = '', part = ''] of console.matchAll(line)) {
    const known = rounds.get(Number(round)) ?? { digest, parts: new Map<number, string>(), of: Number(of) };
    known.parts.set(Number(index), part);
    rounds.set(Number(round), known);
  }
  const complete = [...rounds].flatMap(([round, { digest, parts, of }]) => {
    const encoded = Array.from({ length: of }, (_, index) => parts.get(index + 1) ?? '').join('');
    const isWhole = digestOf(encoded) === digest;
    return isWhole ? [{ round, text: Buffer.from(encoded, 'base64url').toString('utf8') }] : [];
  });
  return complete.filter(({ round }) => round > after).toSorted((a, b) => b.round - a.round)[0];
}

function digestOf(encoded: string): string {
  return createHash('sha256').update(encoded).digest('hex').slice(0, 16);
}
