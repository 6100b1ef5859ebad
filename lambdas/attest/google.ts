/** How this function reads VMs of Google: with the credentials of its own role, which Google's token service exchanges. */
import { computeEndpoint } from '../../adapters/google/compute.ts';
import type { AwsCredentials } from '../../adapters/google/subject-token.ts';
import type { Environment } from '../../adapters/lambda/environment.ts';
import type { ProviderPorts } from '../../core/attestation/providers.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';

/** `environment`: where Lambda puts region and credentials of the role. They are read for each login. */
export function readsVms(environment: Environment, now: () => number): NonNullable<ProviderPorts['compute']> {
  const text = (name: string): string => {
    const value = environment[name] ?? '';
    if (value === '') throw new MisconfigurationError(`${name} is not set`);
    return value;
  };
  const credentials = (): AwsCredentials => ({
    accessKeyId: text('AWS_ACCESS_KEY_ID'),
    secretAccessKey: text('AWS_SECRET_ACCESS_KEY'),
    sessionToken: text('AWS_SESSION_TOKEN'),
  });
  return (federation) => computeEndpoint({ federation, region: text('AWS_REGION'), credentials, now });
}
