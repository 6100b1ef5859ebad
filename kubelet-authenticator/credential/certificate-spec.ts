/**
 * The two certificates that a node requests, client and serving, as input of obtain.ts. Loaded only when a certificate is
 * requested, since a cached call of the kubelet needs none of it.
 */
import { isIP } from 'node:net';
import { noNames } from '../files/check-credential.ts';
import type { Credential } from '../files/check-credential.ts';
import type { Slot } from '../files/cache.ts';
import { clientSlot } from './credential.ts';
import type { Dependencies } from './credential.ts';
import type { NodeProviderPort } from '../providers/provider.ts';
import type { UseTpm } from '../providers/tpm.ts';
import type { ClusterApi, ClusterPlace } from '../request/cluster.ts';
import type { Login } from '../request/login.ts';
import { clientUsages, servingUsages } from '../request/request.ts';
import type { Wanted } from '../request/request.ts';
import { nitroTpmKeyKind } from '../settings/settings.ts';
import type { Settings } from '../settings/settings.ts';

export interface CertificateSpec {
  readonly settings: Settings;
  readonly slot: Slot;
  readonly wanted: Wanted;
  readonly provider: NodeProviderPort;
  /** Set only for a serving certificate: the client certificate in use, which authenticates its request. */
  readonly login: Credential | undefined;
  readonly dependencies: Dependencies;
  readonly connect?: (place: ClusterPlace, login: Login, now: () => number) => ClusterApi;
}

export async function clientSpec(settings: Settings, dependencies: Dependencies): Promise<CertificateSpec> {
  const wanted = { signerName: settings.signerName, usages: clientUsages, names: noNames };
  const provider = await makeProvider(settings);
  return { settings, dependencies, slot: clientSlot(settings), wanted, provider, login: undefined };
}

export type ServingSettings = Settings & { readonly servingSignerName: string };

export async function servingSpec(
  settings: ServingSettings,
  login: Credential,
  dependencies: Dependencies,
): Promise<CertificateSpec> {
  const provider = await makeProvider(settings);
  const machine = await provider.describe();
  // The node name is always included: the API server connects to it if the Node object lists no address.
  const all = [...new Set([...machine.names, ...settings.servingNames, settings.nodeName])].toSorted();
  const names = { ip: all.filter((name) => isIP(name) !== 0), dns: all.filter((name) => isIP(name) === 0) };
  const wanted = { signerName: settings.servingSignerName, usages: servingUsages, names };
  return { settings, dependencies, slot: { ...clientSlot(settings), name: 'serving' }, wanted, provider, login };
}

async function makeProvider(settings: Settings): Promise<NodeProviderPort> {
  const { evidenceVersion } = settings;
  const provider = await providerOf(settings);
  return evidenceVersion === undefined ? provider : { ...provider, versions: [evidenceVersion] };
}

async function providerOf(settings: Settings): Promise<NodeProviderPort> {
  switch (settings.provider) {
    case 'aws':
      return instanceProvider();
    case 'aws-nitrotpm': {
      const [aws, useTpm, { awsNitroTpmProvider }] = await Promise.all([
        instanceProvider(),
        tpmOf(settings),
        import('../providers/aws-nitrotpm.ts'),
      ]);
      return awsNitroTpmProvider(aws, useTpm, nitroTpmKeyKind(settings));
    }
    case 'tpm': {
      const [useTpm, { tpmProvider }] = await Promise.all([tpmOf(settings), import('../providers/tpm.ts')]);
      return tpmProvider(useTpm, settings.endorsementKey);
    }
    case 'x509': {
      const [{ x509Provider }, { readOwnFile, readOwnSecret }] = await Promise.all([
        import('../providers/x509.ts'),
        import('../files/own-files.ts'),
      ]);
      const { attestationCertificateFile: certificate = '', attestationKeyFile: key = '', attestationName } = settings;
      // Read for each proof, because programs such as spiffe-helper replace the files when they renew the certificate.
      return x509Provider(
        () => ({ certificatePem: readOwnFile(certificate), keyPem: readOwnSecret(key) }),
        attestationName,
      );
    }
    case 'gce': {
      const [{ gceProvider }, { connectMetadata }] = await Promise.all([
        import('../providers/gce.ts'),
        import('../../adapters/google/metadata.ts'),
      ]);
      return gceProvider(connectMetadata({ host: process.env['GCE_METADATA_HOST'] }));
    }
    case 'insecure': {
      const { insecureProvider } = await import('../providers/insecure.ts');
      return insecureProvider(settings.nodeName);
    }
  }
}

async function instanceProvider(): Promise<NodeProviderPort> {
  const [{ awsProvider }, { connectImds }, { signIdentityProof }] = await Promise.all([
    import('../providers/aws.ts'),
    import('../../adapters/aws/imds.ts'),
    import('../../adapters/aws/sigv4-identity.ts'),
  ]);
  const imds = connectImds({ endpoint: process.env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] });
  return awsProvider(imds, signIdentityProof);
}

async function tpmOf({ cacheDirectory: directory }: Settings): Promise<UseTpm> {
  const { withTpm } = await import('../providers/tpm-tools.ts');
  const { TPM2TOOLS_TCTI: tcti, PATH: path } = process.env;
  return (work) => withTpm({ directory, tcti, path }, work);
}
