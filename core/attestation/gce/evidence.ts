/** The DATA block of gce evidence (docs/attestation/gce.md): an identity token of the VM, and the nonce that its audience covers. */
import { readEvidence } from '../../encoding/strict-json.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';

/** What is known of the provider before it is loaded (providers.ts). */
export const gceFacts = { name: 'gce', versions: ['gce/v1'], secure: true } as const;

export interface GceEvidence {
  readonly token: string;
  readonly nonce: string;
}

/** Google's tokens have about 1 KiB. */
const maxTokenLength = 8_192;

/**
 * The audience of the token. `binding`: B in hex (binding-digest.ts). The text before it makes the token worthless to every
 * other system that compares audiences.
 */
export function audienceFor(binding: string): string {
  return `csr-attest/gce/v1/${binding}`;
}

/** The problem is a whole clause: `the attestation data has an unknown key`. */
export function readGceEvidence(data: Uint8Array): Result<GceEvidence, string> {
  const read = readEvidence(data, { required: ['v', 'token', 'nonce'] });
  if (!read.ok) return wrongData(read.problem);
  const { v, token, nonce } = read.value;
  if (v !== 1) return wrongData('is not of gce/v1');
  if (typeof token !== 'string' || token.length > maxTokenLength || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
    return wrongData('has no token');
  if (typeof nonce !== 'string' || !/^[\w-]{16,128}$/.test(nonce)) return wrongData('has an invalid nonce');
  return success({ token, nonce });
}

function wrongData(problem: string): Result<never, string> {
  return failure(`the attestation data ${problem}`);
}
