/**
 * PEM (RFC 7468) in two profiles:
 *
 *   strict    decodePem, for requests: only the expected blocks, in order, each at most once. Explanatory text, headers, blanks
 *             inside base64 and a second block of a label are refused, because readers disagree about them.
 *   lenient   pemBlocks, for bundles and files of operators: other blocks and the text around blocks are skipped, as in Go and
 *             OpenSSL.
 */
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

export interface PemBlock {
  readonly label: string;
  readonly content: Uint8Array;
}

const boundary = /^-----(BEGIN|END) ([ -~]*)-----$/;

/** `labels` in the permitted order; the first block is required. */
export function decodePem(text: Uint8Array, labels: readonly string[]): Result<readonly PemBlock[], string> {
  const [first = ''] = labels;
  const blocks: PemBlock[] = [];
  let open: { readonly label: string; readonly lines: string[] } | undefined;
  let remaining = labels;
  // Latin-1: each byte is one character. Characters outside ASCII match no pattern below.
  for (const ended of Buffer.from(text).toString('latin1').split('\n')) {
    const line = ended.endsWith('\r') ? ended.slice(0, -1) : ended;
    const [, edge, label] = boundary.exec(line) ?? [];
    if (open === undefined) {
      if (line === '') continue;
      if (edge !== 'BEGIN' || label === undefined) return outside(blocks.length);
      const position = remaining.indexOf(label);
      if (position === -1) return unexpected(label, labels, blocks);
      if (blocks.length === 0 && label !== first) return failure(`does not start with a ${first} block`);
      remaining = remaining.slice(position + 1);
      open = { label, lines: [] };
    } else if (edge === undefined) {
      if (line.includes(':')) return failure(`has a header in the ${open.label} block: leave only base64`);
      open.lines.push(line);
    } else {
      if (edge !== 'END' || label !== open.label) return failure(`lacks the line -----END ${open.label}-----`);
      const content = decodeBase64(open.lines);
      if (content === undefined) return failure(`has a ${open.label} block that is not canonical base64`);
      blocks.push({ label, content });
      open = undefined;
    }
  }
  if (open !== undefined) return failure(`lacks the line -----END ${open.label}-----`);
  return blocks.length === 0 ? failure(`has no ${first} block`) : success(blocks);
}

function outside(blocksBefore: number): Result<never, string> {
  const where = blocksBefore === 0 ? 'before the first block' : 'after a block';
  return failure(`has text ${where}: leave only the lines from BEGIN to END (openssl req without -text)`);
}

function unexpected(label: string, labels: readonly string[], blocks: readonly PemBlock[]): Result<never, string> {
  if (blocks.some((block) => block.label === label)) return failure(`has a second ${label} block`);
  if (labels.includes(label)) return failure(`has a ${label} block out of order`);
  // The label is not repeated in the message: the requester chose it.
  return failure(`has a block of another kind than ${labels.join(', ')}`);
}

/** Base64 without empty lines, padded only at the end, unused bits zero (RFC 4648 §3.5). Lines may have any length. */
function decodeBase64(lines: readonly string[]): Uint8Array | undefined {
  if (lines.includes('')) return undefined;
  const text = lines.join('');
  // Buffer's decoder skips unknown characters, so its result is encoded again and compared.
  const content = Buffer.from(text, 'base64');
  return content.toString('base64') === text ? new Uint8Array(content) : undefined;
}

/** The unchanged text of each block of this label. The content is not checked. */
export function pemBlocks(text: string, label: string): readonly string[] {
  return text.match(new RegExp(`-----BEGIN ${label}-----[^-]+-----END ${label}-----\\r?\\n?`, 'g')) ?? [];
}

/** As Go and OpenSSL write it: 64 characters a line, LF. */
export function toPem(label: string, der: Uint8Array): string {
  const base64 = Buffer.from(der).toString('base64');
  const lines = base64.match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}
