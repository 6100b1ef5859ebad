/** What those who live in a simulated cluster have in common: the world, what is true of it, and ways to ask and decide. */
import { createHash } from 'node:crypto';
import { decodeRequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import { requestDigest } from '../../../core/kubernetes/request-digest.ts';
import type { NullPlatform } from '../../harness/attestation/null-provider.ts';
import type { SimulatedAttestations } from '../ports/attestations.ts';
import type { Authorizer } from '../ports/authorizer.ts';
import type { Connect } from '../ports/endpoint.ts';
import { servingSigners } from '../scenario.ts';
import type { Scenario } from '../scenario.ts';
import type { Oracle } from '../oracle/oracle.ts';
import type { Random } from '../random.ts';
import type { SimulatedRequests } from '../ports/request-api.ts';
import { types } from '../ports/stored.ts';
import { epoch } from '../runtime.ts';
import type { Runtime } from '../runtime.ts';
import type { MachineFacts, GroundTruth } from '../ground-truth.ts';

export interface SimulatedCluster {
  readonly runtime: Runtime;
  readonly scenario: Scenario;
  readonly platform: NullPlatform;
  readonly attestations: SimulatedAttestations;
  readonly requests: SimulatedRequests;
  readonly authorizer: Authorizer;
  readonly connect: Connect;
  readonly oracle: Oracle;
  readonly truths: Map<string, GroundTruth>;
  /** By identity. */
  readonly facts: Map<string, MachineFacts>;
}

export type Asker = { readonly username: string; readonly groups: readonly string[] };

/** A request, and what is true of it; most of that is so unless it is said otherwise. */
export interface Asked extends Partial<Omit<GroundTruth, 'uid' | 'digest' | 'requestSha256' | 'createdAt'>> {
  readonly what: string;
  readonly signerName: string;
  readonly request: string;
  readonly spki: Uint8Array;
  readonly by: Asker;
  readonly usages?: readonly string[];
  /** What fills the object, in labels. */
  readonly padding?: string;
  /** Instead of a new one. */
  readonly name?: string;
}

/** SimulatedCluster, and what a life in it needs. */
export interface Life extends SimulatedCluster {
  readonly random: Random;
  /** In virtual milliseconds. Most of what happens happens early, so that it ends while there is trouble. */
  readonly sometime: (from?: number) => number;
  readonly at: (when: number, run: () => void) => void;
  /** Within that time, if there is still trouble then. */
  readonly soon: (milliseconds: number, run: () => void) => void;
  /** As all clocks should show it. */
  instant(): number;
  /** The UID of the new request. */
  ask(asked: Asked): string;
  decide(name: string, uid: string, type: 'Approved' | 'Denied'): void;
  truthOf(object: JsonObject): GroundTruth | undefined;
}

export const bootstrap: Asker = {
  username: 'system:bootstrap:abcdef',
  groups: ['system:bootstrappers', 'system:authenticated'],
};
export const nodeUser = (node: string): Asker => ({
  username: `system:node:${node}`,
  groups: ['system:nodes', 'system:authenticated'],
});
export const person = (username: string): Asker => ({ username, groups: ['system:authenticated'] });
export const nodes = ['node-a', 'node-b', 'node-c'] as const;

/** Life of one kind of people, with chance of their own. */
export function createLives(cluster: SimulatedCluster): (name: string) => Life {
  const { runtime, requests, truths } = cluster;
  const { timeline } = runtime;
  const end = runtime.rates.until;
  const uids = runtime.random.stream('uids');
  let made = 0;

  function ask({ what, signerName, request, spki, by, usages, padding, name, ...more }: Asked): string {
    made += 1;
    const uid = uidFrom(uids);
    const called = name ?? `csr-${made}`;
    const purpose = servingSigners.has(signerName) ? 'server auth' : 'client auth';
    const object = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: called, uid, ...(padding === undefined ? {} : { labels: { padding } }) },
      spec: { request, signerName, usages: usages ?? ['digital signature', purpose], ...by },
      status: {},
    };
    truths.set(uid, {
      genuine: false,
      evidence: false,
      sound: true,
      plain: false,
      unpermitted: false,
      ...more,
      uid,
      what: `${called} (${what})`,
      signerName,
      digest: digestOf(object, cluster.scenario.epochs[0].cluster.name),
      spkiSha256: createHash('sha256').update(spki).digest('hex'),
      requestSha256: createHash('sha256').update(Buffer.from(request, 'base64')).digest('hex'),
      username: by.username,
      byNode: by.username.startsWith('system:node:'),
      createdAt: timeline.now(),
    });
    runtime.tell(() => `${called}/${uid.slice(0, 4)} is created: ${what}`);
    requests.create(object);
    return uid;
  }

  function decide(name: string, uid: string, type: 'Approved' | 'Denied'): void {
    const found = requests.find(name);
    if (found?.metadata.uid !== uid || types(found).length > 0) return;
    runtime.tell(() => `a user makes ${name} ${type}`);
    const condition = { type, status: 'True', reason: 'ByHand', message: '' };
    requests.change(name, (old) => ({ ...old, status: { ...old.status, conditions: [condition] } }));
  }

  return (name) => {
    const random = runtime.random.stream(`life of ${name}`);
    return {
      ...cluster,
      random,
      sometime: (from = 0) => from + (end - from) * random.next() ** 2,
      at: (when, run) => void timeline.after(when - timeline.now(), run),
      soon: (milliseconds, run) =>
        void timeline.after(random.between(0, milliseconds), () => runtime.troubled() && run()),
      instant: () => epoch + Math.floor(timeline.now()),
      ask,
      decide,
      truthOf: (object) => truths.get((object['metadata'] as { readonly uid: string }).uid),
    };
  };
}

/** An unreadable request has none. */
function digestOf(json: JsonObject, cluster: string): string {
  const decoded = decodeRequestObject(json);
  return decoded.ok ? requestDigest(cluster, decoded.value, decoded.value.signerName ?? '') : '';
}

function uidFrom(random: Random): string {
  const hex = Buffer.from(random.bytes(16)).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
