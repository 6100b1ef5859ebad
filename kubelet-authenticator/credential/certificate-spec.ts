/** The two certificates a node asks for, and with what means: the wiring of obtain.ts. Loaded only when one is asked for. */
import { isIP } from 'node:net';
import type { Credential } from '../files/check-credential.ts';
import { clientSlot } from './credential.ts';
import type { World } from './credential.ts';
import type { Order } from './obtain.ts';
import type { NodeProviderPort } from '../providers/provider.ts';
import { clientUsages, servingUsages } from '../request/request.ts';
import type { Settings } from '../settings/settings.ts';

export async function clientOrder(settings: Settings, world: World): Promise<Omit<Order, 'login'>> {
  return {
    settings,
    world,
    slot: clientSlot(settings),
    wanted: { signerName: settings.signerName, usages: clientUsages, names: { ip: [], dns: [] } },
    provider: await makeProvider(settings),
  };
}

export async function servingOrder(
  settings: Settings & { readonly servingSignerName: string },
  login: Credential,
  world: World,
): Promise<Order> {
  const provider = await makeProvider(settings);
  const { names } = await provider.describe();
  // The node's own name is always among them: it is what the API server calls when it has nothing better.
  const all = [...new Set([...names, ...settings.servingNames, settings.nodeName])].toSorted();
  const [ip, dns] = [all.filter((name) => isIP(name) !== 0), all.filter((name) => isIP(name) === 0)];
  return {
    settings,
    world,
    slot: { ...clientSlot(settings), name: 'serving' },
    wanted: { signerName: settings.servingSignerName, usages: servingUsages, names: { ip, dns } },
    provider,
    login,
  };
}

async function makeProvider(settings: Settings): Promise<NodeProviderPort> {
  const { evidenceVersion } = settings;
  const provider = await providerOf(settings);
  return evidenceVersion === undefined ? provider : { ...provider, versions: [evidenceVersion] };
}

async function providerOf({ provider, nodeName }: Settings): Promise<NodeProviderPort> {
  switch (provider) {
    case 'aws': {
      const [{ awsProvider }, { connectImds }, { signIdentityProof }] = await Promise.all([
        import('../providers/aws.ts'),
        import('../../adapters/aws/imds.ts'),
        import('../../adapters/aws/sigv4-identity.ts'),
      ]);
      const imds = connectImds({ endpoint: process.env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] });
      return awsProvider(imds, signIdentityProof);
    }
    case 'insecure': {
      const { insecureProvider } = await import('../providers/insecure.ts');
      return insecureProvider(nodeName);
    }
  }
}
