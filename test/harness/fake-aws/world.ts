/**
 * What there is in the fake AWS: instances, and who may sign with which key. STS, EC2 and IMDS beside this file speak about
 * one such world; tests change it through the methods here, as an operator or an attacker changes the real one.
 */
import { randomBytes } from 'node:crypto';
import { newInstance, type FakeInstance, type InstanceSpec } from './machine/instance.ts';
import { regionCa, signIdentityDocument } from './machine/region-ca.ts';

export interface Credential {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary ones; who signs must send it. */
  readonly sessionToken?: string;
  readonly expiresAt?: number;
  readonly principal: Principal;
}

/** As GetCallerIdentity tells it. */
export interface Principal {
  readonly account: string;
  readonly arn: string;
  readonly userId: string;
  /** Actions it may take, such as `ec2:DescribeInstances`; `*` for all. */
  readonly allows: readonly string[];
  /** Of a session with transitive tags: they go with it into each role that it assumes. */
  readonly transitiveTags?: true;
}

export interface FakeRole {
  readonly arn: string;
  readonly account: string;
  readonly name: string;
  readonly roleId: string;
  readonly allows: readonly string[];
  /** ARNs of principals that may assume it; absent = every principal, for a test that does not look at the trust policy. */
  readonly trusts?: readonly string[];
  readonly externalId?: string;
}

export interface FakeAws {
  /** In milliseconds. */
  readonly now: () => number;
  readonly instances: ReadonlyMap<string, FakeInstance>;

  /** A running instance, its metadata service at its disposal at once. */
  launch(spec?: InstanceSpec): FakeInstance;
  /** It stays in descriptions, bare, until `forget`. */
  terminate(instanceId: string): void;
  /** As EC2 does about an hour after the end. */
  forget(instanceId: string): void;
  stop(instanceId: string): void;
  /** A later launch and pending time, hence a new identity document. */
  start(instanceId: string): void;
  reboot(instanceId: string): void;
  /** Another disk under the root device, attached now: what a thief of a node does. */
  swapRootVolume(instanceId: string): void;
  /** Any other state, tags, options … : the fields that EC2 tells. */
  change(instanceId: string, change: Partial<FakeInstance>): void;

  /** The exact bytes of `dynamic/instance-identity/document`, also of an instance that is gone: a reader keeps it. */
  identityDocument(instanceId: string): string;
  /** `dynamic/instance-identity/rsa2048`: made once a start, the same text ever after. */
  rsa2048(instanceId: string): string;
  /** DER, as the product takes them. */
  regionCertificates(...regions: readonly string[]): ReadonlyMap<string, readonly Uint8Array[]>;

  /** The role of the instance itself, `assumed-role/aws:ec2-instance/<instance id>`. */
  identityCredential(instanceId: string): Credential;
  /** Of the role in its instance profile. */
  profileCredential(instanceId: string): Credential;
  createUser(account: string, name: string, allows?: readonly string[]): Credential;
  createRole(role: Partial<Omit<FakeRole, 'arn' | 'roleId'>> & { readonly arn: string }): FakeRole;
  findRole(arn: string): FakeRole | undefined;
  /** A session of a role, without a check: sts.ts asks the trust policy first. */
  session(
    role: Pick<FakeRole, 'arn' | 'account' | 'name' | 'roleId' | 'allows'>,
    name: string,
    seconds?: number,
    tags?: Pick<Principal, 'transitiveTags'>,
  ): Credential;
  addCredential(credential: Credential): Credential;
  credential(accessKeyId: string): Credential | undefined;
  secretOf(accessKeyId: string): string | undefined;
}

export function createFakeAws(options: { readonly now?: () => number } = {}): FakeAws {
  const now = options.now ?? Date.now;
  const instances = new Map<string, FakeInstance>();
  const credentials = new Map<string, Credential>();
  const roles = new Map<string, FakeRole>();
  /** Made when the instance starts; what happens to it later changes nothing in them. */
  const documents = new Map<string, { readonly region: string; readonly text: string; rsa2048?: string }>();
  const instanceSessions = new Map<string, Credential>();
  let made = 0;

  /** Counted, so that tests can name them; of the form AWS's have. */
  function uniqueId(prefix: string): string {
    made += 1;
    return prefix + String(made).padStart(20 - prefix.length, '0');
  }

  function instance(instanceId: string): FakeInstance {
    const found = instances.get(instanceId);
    if (found === undefined) throw new Error(`the fake AWS has no instance ${instanceId}`);
    return found;
  }

  function change(instanceId: string, changed: Partial<FakeInstance>): void {
    instances.set(instanceId, { ...instance(instanceId), ...changed });
  }

  function addCredential(credential: Credential): Credential {
    credentials.set(credential.accessKeyId, credential);
    return credential;
  }

  function temporary(principal: Principal, seconds: number): Credential {
    return addCredential({
      accessKeyId: uniqueId('ASIA'),
      secretAccessKey: randomBytes(30).toString('base64'),
      // Long, and with every character of base64: they must survive two encodings on their way.
      sessionToken: `IQoJb3JpZ2luX2VjE+/${randomBytes(600).toString('base64')}`,
      expiresAt: now() + seconds * 1_000,
      principal,
    });
  }

  /** IMDS gives the same credentials for hours. */
  function instanceSession(instanceId: string, kind: string, make: () => Principal): Credential {
    const key = `${kind} ${instanceId}`;
    const known = instanceSessions.get(key);
    if (known?.expiresAt !== undefined && known.expiresAt > now() + 300_000) return known;
    const fresh = temporary(make(), 21_600);
    instanceSessions.set(key, fresh);
    return fresh;
  }

  function createRole(role: Partial<Omit<FakeRole, 'arn' | 'roleId'>> & { readonly arn: string }): FakeRole {
    const [, , , , account = '', path = ''] = role.arn.split(':');
    const name = path.split('/').at(-1) ?? '';
    const created: FakeRole = { account, name, roleId: uniqueId('AROA'), allows: [], ...role };
    roles.set(role.arn, created);
    return created;
  }

  function document(instanceId: string) {
    const found = documents.get(instanceId);
    if (found === undefined) throw new Error(`the fake AWS has no instance ${instanceId}`);
    return found;
  }

  return {
    now,
    instances,
    launch(spec = {}) {
      const fresh = newInstance(spec, now());
      instances.set(fresh.instanceId, fresh);
      documents.set(fresh.instanceId, { region: fresh.region, text: identityDocument(fresh) });
      return fresh;
    },
    terminate: (instanceId) =>
      change(instanceId, { state: 'terminated', interfaces: [], volumes: [], privateDnsName: '', publicDnsName: '' }),
    forget: (instanceId) => void instances.delete(instanceId),
    stop: (instanceId) => change(instanceId, { state: 'stopped' }),
    start(instanceId) {
      change(instanceId, { state: 'running', launchTime: now(), pendingTime: now() });
      const started = instance(instanceId);
      documents.set(instanceId, { region: started.region, text: identityDocument(started) });
    },
    // Neither launch time nor document move (as Vault's provider found).
    reboot: (instanceId) => change(instanceId, {}),
    swapRootVolume(instanceId) {
      const { volumes, rootDeviceName } = instance(instanceId);
      const others = volumes.filter(({ deviceName }) => deviceName !== rootDeviceName);
      const swapped = {
        deviceName: rootDeviceName,
        volumeId: `vol-${randomBytes(8).toString('hex')}`,
        attachTime: now(),
      };
      change(instanceId, { volumes: [swapped, ...others] });
    },
    change,
    identityDocument: (instanceId) => document(instanceId).text,
    rsa2048(instanceId) {
      const made = document(instanceId);
      made.rsa2048 ??= signIdentityDocument(made.text, made.region);
      return made.rsa2048;
    },
    regionCertificates: (...regions) => new Map(regions.map((region) => [region, [regionCa(region).certificateDer]])),
    identityCredential: (instanceId) =>
      instanceSession(instanceId, 'identity', () => {
        const { account, partition } = instance(instanceId);
        return {
          account,
          arn: `arn:${partition}:sts::${account}:assumed-role/aws:ec2-instance/${instanceId}`,
          userId: `${account}:aws:ec2-instance:${instanceId}`,
          allows: [],
        };
      }),
    profileCredential(instanceId) {
      const { instanceProfile, account, partition } = instance(instanceId);
      if (instanceProfile === undefined) throw new Error(`${instanceId} has no instance profile`);
      const arn = `arn:${partition}:iam::${account}:role/${instanceProfile.roleName}`;
      const role = roles.get(arn) ?? createRole({ arn });
      return instanceSession(instanceId, 'profile', () => sessionPrincipal(role, instanceId));
    },
    createUser: (account, name, allows = []) =>
      addCredential({
        accessKeyId: uniqueId('AKIA'),
        secretAccessKey: randomBytes(30).toString('base64'),
        principal: { account, arn: `arn:aws:iam::${account}:user/${name}`, userId: uniqueId('AIDA'), allows },
      }),
    createRole,
    findRole: (arn) => roles.get(arn),
    session: (role, name, seconds = 3_600, tags = {}) =>
      temporary({ ...sessionPrincipal(role, name), ...tags }, seconds),
    addCredential,
    credential: (accessKeyId) => credentials.get(accessKeyId),
    secretOf: (accessKeyId) => credentials.get(accessKeyId)?.secretAccessKey,
  };
}

/** A role's path is not part of its sessions' ARN. */
function sessionPrincipal(
  { arn, account, name, roleId, allows }: Pick<FakeRole, 'arn' | 'account' | 'name' | 'roleId' | 'allows'>,
  session: string,
): Principal {
  const [, partition = 'aws'] = arn.split(':');
  return {
    account,
    arn: `arn:${partition}:sts::${account}:assumed-role/${name}/${session}`,
    userId: `${roleId}:${session}`,
    allows,
  };
}

/** In AWS's order, with a space on either side of the colon as AWS prints it. */
function identityDocument(instance: FakeInstance): string {
  const fields = {
    accountId: instance.account,
    architecture: instance.architecture,
    availabilityZone: instance.availabilityZone,
    billingProducts: null,
    devpayProductCodes: null,
    marketplaceProductCodes: null,
    imageId: instance.imageId,
    instanceId: instance.instanceId,
    instanceType: instance.instanceType,
    kernelId: null,
    pendingTime: new Date(instance.pendingTime).toISOString().replace(/\.\d+Z$/, 'Z'),
    privateIp: instance.interfaces[0]?.addresses[0]?.address ?? null,
    ramdiskId: null,
    region: instance.region,
    version: '2017-09-30',
  };
  return JSON.stringify(fields, null, 2).replace(/^( {2}"\w+"):/gm, '$1 :');
}
