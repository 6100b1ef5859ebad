/** Whose requests the relay works on and how: from flags alone, or from the reviewed file that the functions have too. */
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import type { RelayOptions } from './options.ts';

export type SignerOptions = Pick<RelayOptions, 'signerNames' | 'policies' | 'inFlightPerRequester'>;

/** As `limits.inFlightPerRequester` of countersign.yaml. */
export const defaultInFlightPerRequester = 24;

/** Without the file somebody else approves, and nothing is attested before the sign function does it. */
export function signersOf(signerNames: readonly string[], inFlightPerRequester: number): SignerOptions {
  return { signerNames, policies: new Map(), inFlightPerRequester };
}

/**
 * Of the whole file the relay obeys `approval`, `limits.inFlightPerRequester`, and of profiles who they are for; all of a
 * profile only where no attest function applies it.
 */
export function signersIn(
  yamlText: string,
  fileName: string,
  cluster: string,
): SignerOptions | { readonly problem: string } {
  const parsed = parseConfiguration(yamlText, fileName);
  if (!parsed.ok)
    return {
      problem: parsed.problems
        .map(({ file, line, column, path, message }) => `${file}:${line}:${column}: ${path} ${message}`)
        .join('\n'),
    };
  const { clusters, deployments } = parsed.configuration;
  const configuration = clusters.get(cluster);
  const limits = deployments.get(cluster)?.limits;
  if (configuration === undefined || limits === undefined)
    return { problem: `${fileName} has no cluster ${cluster} (it has ${[...clusters.keys()].join(', ')})` };
  const { profiles, approval } = configuration;
  const policies = new Map(
    [...profiles.values()].map((profile) => {
      const { signerName, kind, attestation } = profile;
      const policy = {
        approval: approval.get(signerName) ?? 'manual',
        kind,
        ...(attestation === undefined ? {} : { attestation }),
        ...(configuration.attestation === undefined ? { judgedHere: profile } : {}),
      } as const;
      return [signerName, policy];
    }),
  );
  return { signerNames: [...profiles.keys()], policies, inFlightPerRequester: limits.inFlightPerRequester };
}
