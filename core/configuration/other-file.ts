/** Says in one sentence that a file is not a countersign.yaml, where the reader of YAML would list each line. */
import { quoted } from '../outcome/printable-text.ts';

const ownKeys = ['version', 'clusters', 'defaults'] as const;

export interface Contents {
  readonly text: string;
  /** Of the first document; undefined if it is no map. */
  readonly keys: readonly unknown[] | undefined;
  /** The value of its key `kind`. */
  readonly kind: unknown;
  readonly hasSyntaxErrors: boolean;
}

/** What the file is instead, or undefined. */
export function otherFile({ text, keys, kind, hasSyntaxErrors }: Contents): string | undefined {
  const [, pem] = /^\s*-----BEGIN ([A-Z0-9 ]{1,40})-----/.exec(text) ?? [];
  if (pem !== undefined) return `this is a PEM file (${pem}), not a countersign.yaml`;
  if (text.includes('\0')) return 'this is not a text file, and not a countersign.yaml';
  if (keys?.includes('apiVersion') && keys.includes('kind'))
    return `this is a Kubernetes object of kind ${quoted(String(kind))}, not a countersign.yaml`;
  const isOurs = hasSyntaxErrors
    ? /^[ {]*["']?(version|clusters|defaults)["']?\s*:/m.test(text)
    : keys === undefined || !keys.some((key) => typeof key === 'string') || ownKeys.some((key) => keys.includes(key));
  return isOurs ? undefined : `this is not a countersign.yaml: it lacks all of the keys ${ownKeys.join(', ')}`;
}
