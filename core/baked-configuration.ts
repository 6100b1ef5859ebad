/**
 * What the functions know of countersign.yaml: put into their bundles as text when the stacks are synthesised, so that
 * changing policy is a deployment and leaves a trail. Each function gets what it obeys and nothing else.
 */
import type { ClusterConfiguration } from './configuration.ts';
import type { JwtAccess } from './deployment.ts';

/** For the sign and ca functions. The same rules give the same text, so the same bundle. */
export function bakeCluster({ name, cas, profiles, approval }: ClusterConfiguration): string {
  return JSON.stringify({ name, cas: [...cas], profiles: [...profiles], approval: [...approval] });
}

/** Of text that `bakeCluster` made, in the same release: nothing is checked again. */
export function readBakedCluster(text: string): ClusterConfiguration {
  type Entries<T> = T extends ReadonlyMap<infer K, infer V> ? readonly (readonly [K, V])[] : never;
  const { name, cas, profiles, approval } = JSON.parse(text) as {
    readonly name: string;
    readonly cas: Entries<ClusterConfiguration['cas']>;
    readonly profiles: Entries<ClusterConfiguration['profiles']>;
    readonly approval: Entries<ClusterConfiguration['approval']>;
  };
  return { name, cas: new Map(cas), profiles: new Map(profiles), approval: new Map(approval) };
}

/** For the authorizer: whose tokens open which cluster. */
export interface BakedAccess {
  readonly cluster: string;
  readonly jwt: JwtAccess;
}

export function bakeAccess({ cluster, jwt }: BakedAccess): string {
  return JSON.stringify({ cluster, jwt });
}

/** Of text that `bakeAccess` made. */
export function readBakedAccess(text: string): BakedAccess {
  return JSON.parse(text) as BakedAccess;
}
