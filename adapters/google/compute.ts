/** Reads VMs from the Compute API (v1). core/attestation/ decides what the answers prove. */
import type { ComputeEndpoint, VmDescription } from '../../core/attestation/google/compute.ts';
import type { VmPlace } from '../../core/attestation/google/place.ts';
import { isObject } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import { accessTokens } from './access-token.ts';
import type { AccessTokenOptions } from './access-token.ts';
import { callGoogle } from './call.ts';

const host = 'compute.googleapis.com';

export function computeEndpoint(options: AccessTokenOptions): ComputeEndpoint {
  const tokens = accessTokens(options);

  /** The JSON of the VM, or of its `part`. */
  async function read({ projectNumber, zone, instanceId }: VmPlace, part: string): Promise<JsonObject | 'notFound'> {
    const path = `/compute/v1/projects/${projectNumber}/zones/${zone}/instances/${instanceId}${part}`;
    const { status, body } = await callGoogle({ host, path, token: await tokens.current() }, options);
    if (status === 200) return body;
    // Only Google's own answer says that a VM does not exist, not any page with this status.
    if (status === 404 && isObject(body['error']) && body['error']['code'] === 404) return 'notFound';
    if (status === 401) tokens.forget();
    if (status === 401 || status === 403)
      throw new MisconfigurationError(
        `Google does not let this function read VMs (status ${status}): see docs/attestation/gce-vtpm.md`,
      );
    throw new Error(`${host} answered with status ${status}`);
  }

  return {
    async describeInstance(place) {
      const answer = await read(place, '');
      return answer === 'notFound' ? answer : describe(answer);
    },
    async signingKey(place) {
      const answer = await read(place, '/getShieldedInstanceIdentity');
      if (answer === 'notFound') return { kind: 'notFound' };
      const pem = textOf(objectOf(answer['signingKey'])['ekPub']);
      return pem === undefined ? { kind: 'noKey' } : { kind: 'key', pem };
    },
  };
}

function describe(vm: JsonObject): VmDescription {
  const [id, name, zone, status] = [vm['id'], vm['name'], vm['zone'], vm['status']].map(textOf);
  if (id === undefined || name === undefined || zone === undefined || status === undefined)
    throw new Error(`${host} described a VM without id, name, zone or status`);
  const [first] = objectsOf(vm['networkInterfaces']);
  return {
    instanceId: id,
    name,
    // A URL: https://www.googleapis.com/compute/v1/projects/my-project/zones/us-central1-c
    zone: zone.slice(zone.lastIndexOf('/') + 1),
    status,
    vtpm: objectOf(vm['shieldedInstanceConfig'])['enableVtpm'] === true,
    labels: new Map(
      Object.entries(objectOf(vm['labels'])).flatMap(([key, value]) =>
        typeof value === 'string' ? [[key, value] as const] : [],
      ),
    ),
    serviceAccounts: objectsOf(vm['serviceAccounts']).flatMap(({ email }) => textOf(email) ?? []),
    addresses: first === undefined ? [] : addressesOf(first),
  };
}

/** Not alias ranges: those are for pods. */
function addressesOf(network: JsonObject): readonly string[] {
  const own = [network['networkIP'], network['ipv6Address']];
  const external = [
    ...objectsOf(network['accessConfigs']).map(({ natIP }) => natIP),
    ...objectsOf(network['ipv6AccessConfigs']).map(({ externalIpv6 }) => externalIpv6),
  ];
  return [...own, ...external].flatMap((address) => textOf(address) ?? []);
}

function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

function objectsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
