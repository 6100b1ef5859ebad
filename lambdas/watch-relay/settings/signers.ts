/** The signers to relay for, and who approves for each: from flags alone, or from the file that the functions have too. */
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import { failure, success } from '../../../core/outcome/result.ts';
import type { Result } from '../../../core/outcome/result.ts';
import type { ClusterConfiguration } from '../../../core/configuration/model/cluster.ts';
import type { ClusterApiOptions } from '../cluster-api/session.ts';
import { namedSigners } from '../cluster-api/named-signers.ts';
import type { RelayOptions } from './options.ts';

export type SignerOptions = Pick<RelayOptions, 'signerNames' | 'policies' | 'inFlightPerRequester'> & {
  /** With `attestation.machines: clusterApi`. `signers`: those that the configuration has for attested nodes. */
  readonly clusterApi?: Required<ClusterApiOptions>;
};

/** The default of `limits.inFlightPerRequester` in countersign.yaml too. */
export const defaultInFlightPerRequester = 24;

/** Without the file another approver decides, and nothing is attested before sign asks for it. */
export function signersFromFlags(signerNames: readonly string[], inFlightPerRequester: number): SignerOptions {
  return { signerNames, policies: new Map(), inFlightPerRequester };
}

/**
 * The relay uses `approval`, `limits.inFlightPerRequester`, and the kind and attestation of each profile. It uses whole
 * profiles only if the cluster has no attest function that applies them. A problem is text for the operator.
 */
export function signersFromFile(yamlText: string, fileName: string, cluster: string): Result<SignerOptions, string> {
  const parsed = parseConfiguration(yamlText, fileName);
  if (!parsed.ok)
    return failure(
      parsed.problem
        .map(({ file, line, column, path, message }) => `${file}:${line}:${column}: ${path} ${message}`)
        .join('\n'),
    );
  const { clusters, deployments } = parsed.value.configuration;
  const configuration = clusters.get(cluster);
  const limits = deployments.get(cluster)?.limits;
  if (configuration === undefined || limits === undefined)
    return failure(`${fileName} has no cluster ${cluster} (it has ${[...clusters.keys()].join(', ')})`);
  const { profiles, approval } = configuration;
  const policies = new Map(
    [...profiles.values()].map((profile) => {
      const { signerName, kind, attestation, requestBlocks } = profile;
      const policy = {
        approval: approval.get(signerName) ?? 'manual',
        kind,
        ...(attestation === undefined ? {} : { attestation }),
        ...(requestBlocks === undefined ? {} : { requestBlocks }),
        ...(configuration.attestation === undefined ? { localProfile: profile } : {}),
      } as const;
      return [signerName, policy];
    }),
  );
  const clusterApi = clusterApiOf(configuration);
  return success({
    signerNames: [...profiles.keys()],
    policies,
    inFlightPerRequester: limits.inFlightPerRequester,
    ...(clusterApi === undefined ? {} : { clusterApi }),
  });
}

function clusterApiOf({ attestation, profiles }: ClusterConfiguration): SignerOptions['clusterApi'] {
  const reference = attestation?.clusterApi;
  const signers = namedSigners([...profiles.values()]);
  // With machines: clusterApi a profile demands attestation; one for serving certificates alone names no client signer.
  if (attestation === undefined || reference === undefined || signers === undefined) return undefined;
  return { reference, hints: attestation.retireTerminated, signers };
}
