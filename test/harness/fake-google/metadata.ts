/**
 * The metadata server of one VM, on loopback: it answers only with the header that Google demands, knows the paths that Google
 * documents, and signs identity tokens for the audience that is asked for. For the same audience it gives the same token again.
 */
import type { ReceivedRequest } from '../aws/sigv4-verifier.ts';
import { plain, startService } from '../fake-aws/service.ts';
import type { Answer, Service } from '../fake-aws/service.ts';
import type { FakeVm } from './google.ts';
import { claimsOf, writeToken } from './identity-token.ts';
import type { GoogleKey } from './identity-token.ts';

export interface FakeMetadata extends Service {
  /** `127.0.0.1:<port>`, as GCE_METADATA_HOST. */
  readonly host: string;
  /** The audiences of all tokens, in order. */
  readonly audiences: readonly string[];
  /** Read for each request. */
  vm: FakeVm & { readonly hostname?: string; readonly serviceAccount?: false };
}

interface Options {
  readonly vm: FakeMetadata['vm'];
  readonly key: GoogleKey;
  readonly now: () => number;
}

const flavor = { 'metadata-flavor': 'Google' };

export async function startFakeMetadata({ vm: first, key, now }: Options): Promise<FakeMetadata> {
  const audiences: string[] = [];
  const tokens = new Map<string, string>();

  function handle({ method, target, headers }: ReceivedRequest): Answer {
    if (method !== 'GET') return plain(405, 'Method Not Allowed', flavor);
    // A proxy that is open to the world passes requests on with this header.
    if (headers['metadata-flavor'] !== 'Google' || headers['x-forwarded-for'] !== undefined)
      return plain(403, 'Forbidden', flavor);
    if (headers['host'] !== 'metadata.google.internal') return plain(404, 'Not Found', flavor);
    const [, path, query = ''] = /^\/computeMetadata\/v1\/([^?]+)(?:\?(.*))?$/.exec(target) ?? [];
    const text = path === undefined ? undefined : tell(path, query);
    return typeof text === 'object' ? text : plain(text === undefined ? 404 : 200, text ?? 'Not Found', flavor);
  }

  function tell(path: string, query: string): string | Answer | undefined {
    const { vm } = metadata;
    if (path === 'instance/service-accounts/default/identity')
      return vm.serviceAccount === false ? undefined : identity(query);
    if (query !== '') return undefined;
    switch (path) {
      case 'project/project-id':
        return vm.projectId;
      case 'project/numeric-project-id':
        return vm.projectNumber;
      case 'instance/zone':
        return `projects/${vm.projectNumber}/zones/${vm.zone}`;
      case 'instance/name':
        return vm.name;
      case 'instance/id':
        return vm.id;
      case 'instance/hostname':
        return vm.hostname ?? `${vm.name}.${vm.zone}.c.${vm.projectId}.internal`;
      case 'instance/network-interfaces/0/ip':
        return '10.156.0.7';
      default:
        return undefined;
    }
  }

  function identity(query: string): string | Answer {
    const pairs = [...new URLSearchParams(query)];
    const { audience = '', format, ...others } = Object.fromEntries(pairs);
    if (audience === '' || pairs.length !== 2 || format !== 'full' || Object.keys(others).length > 0)
      return plain(400, 'non-empty audience parameter required', flavor);
    audiences.push(audience);
    const kept = tokens.get(audience);
    if (kept !== undefined) return kept;
    const token = writeToken({ claims: claimsOf(metadata.vm, audience, now()), key });
    tokens.set(audience, token);
    return token;
  }

  const service = await startService(handle);
  const metadata: FakeMetadata = { ...service, host: `127.0.0.1:${service.port}`, audiences, vm: first };
  return metadata;
}
