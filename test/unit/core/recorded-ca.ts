import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** The CA of in-tree-certificates.json, in DER: valid from 2026 to 2060. Its key was thrown away. */
export const recordedCa: Uint8Array = (() => {
  const text = readFileSync(new URL('./in-tree-certificates.json', import.meta.url), 'utf8');
  return new X509Certificate((JSON.parse(text) as { ca: string }).ca).raw;
})();
