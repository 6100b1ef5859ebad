/**
 * Untrusted JSON or YAML: a requester's object, a cluster-info ConfigMap, a kubeconfig. Reading takes time proportional to the
 * length, for any text:
 *
 *   JSON first        JSON.parse is linear; the caller caps the bytes it reads
 *   YAML, capped      at 64 KiB, without the library's check for duplicate keys, which compares each key with all others
 *   no aliases        a short text could unfold to gigabytes
 */
import { parseDocument } from 'yaml';
import type { Problem } from './der-reader.ts';
import { printable } from '../outcome/printable-text.ts';
import { errorMessage } from '../outcome/error-message.ts';

export const maxYamlCharacters = 65_536;

/** The value, or what is wrong with the text: one line that quotes at most 80 characters of it. */
export function readBoundedDocument(text: string): { readonly value: unknown } | Problem {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    // It may be YAML.
  }
  if (text.length > maxYamlCharacters)
    return { problem: `it is no JSON, and too long to be read as YAML (${maxYamlCharacters / 1_024} KiB at most)` };
  try {
    const document = parseDocument(text, { uniqueKeys: false, prettyErrors: false, logLevel: 'silent' });
    const [error] = document.errors;
    if (error !== undefined) return notYaml(error.message);
    return { value: document.toJS({ maxAliasCount: 0 }) as unknown };
  } catch (error) {
    return notYaml(errorMessage(error));
  }
}

function notYaml(message: string): Problem {
  const [line = ''] = message.split('\n');
  return { problem: `it is neither JSON nor YAML: ${printable(line)}` };
}
