/**
 * Reads untrusted JSON or YAML: a requester's object, a cluster-info ConfigMap, a kubeconfig. The time is proportional to the length:
 *
 *   JSON       tried first, because JSON.parse takes linear time; the caller limits the length
 *   YAML       at most 64 KiB; without the library's check for duplicate keys, which takes quadratic time
 *   aliases    refused, because a short text with aliases could expand to gigabytes
 */
import { parseDocument } from 'yaml';
import { printable } from '../outcome/printable-text.ts';
import { errorMessage } from '../outcome/error-message.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

export const maxYamlCharacters = 65_536;

/** The value, or the problem: one line that quotes at most 80 characters of the text. */
export function readBoundedDocument(text: string): Result<unknown, string> {
  try {
    return success(JSON.parse(text) as unknown);
  } catch {
    // It may be YAML.
  }
  if (text.length > maxYamlCharacters)
    return failure(`it is no JSON, and too long to be read as YAML (${maxYamlCharacters / 1_024} KiB at most)`);
  try {
    const document = parseDocument(text, { uniqueKeys: false, prettyErrors: false, logLevel: 'silent' });
    const [error] = document.errors;
    if (error !== undefined) return notYaml(error.message);
    return success(document.toJS({ maxAliasCount: 0 }) as unknown);
  } catch (error) {
    return notYaml(errorMessage(error));
  }
}

function notYaml(message: string): Result<never, string> {
  const [line = ''] = message.split('\n');
  return failure(`it is neither JSON nor YAML: ${printable(line)}`);
}
