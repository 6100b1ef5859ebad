/**
 * The configuration of aws-nitrotpm is that of aws: an instance has one identity for both, so one policy says which may join. A
 * profile that takes this evidence switches the provider on.
 */
import type { Place } from '../fields/place.ts';

/** The provider whose keys under `attestation` a provider reads. */
export function configuredBy(provider: string): string {
  return provider === 'aws-nitrotpm' ? 'aws' : provider;
}

/** `providers`: those of all profiles. `at`: the key `attestation` of the cluster. */
export function resolveAwsNitroTpm(providers: ReadonlySet<string>, at: Place): { readonly awsNitroTpm?: true } {
  if (!providers.has('aws-nitrotpm')) return {};
  if (providers.has('aws'))
    at('aws').warning(
      'a machine that is not on record yet may join with evidence of aws, without its TPM: take aws out of the profiles when every node sends aws-nitrotpm',
    );
  return { awsNitroTpm: true };
}
