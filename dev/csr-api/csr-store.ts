/** The CertificateSigningRequests of a stand-in API server, in memory, under the rules of csr-rules.ts. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { success } from '../../core/outcome/result.ts';
import { invalid, metaTime, pick, problem, specProblem, textOf, written } from './csr-rules.ts';
import type { Stored } from './csr-rules.ts';
import { createObjectHistory } from './object-history.ts';
import type { Change } from './object-history.ts';

export interface Requester {
  readonly username: string;
  readonly groups: readonly string[];
}

export interface CsrStore {
  create(object: JsonObject, requester: Requester): Stored;
  get(name: string): Stored;
  /** PUT on a subresource. It never changes the spec. */
  update(name: string, subresource: 'approval' | 'status', object: JsonObject): Stored;
  /** Sorted by name; only names after `after`. */
  list(after: string): readonly JsonObject[];
  readonly version: () => number;
  /** All changes after this version, now and later. Undefined if some are no longer known: the client must list again. */
  readonly watch: (version: number, each: (change: Change) => void) => (() => void) | undefined;
}

/** Number of changes kept for watches that resume. A real server keeps them for some minutes. */
const keptChanges = 1_000;

export function createCsrStore(now: () => Instant, history = createObjectHistory(keptChanges)): CsrStore {
  return {
    create(object, requester) {
      const metadata = objectOf(object['metadata']);
      const name =
        metadata['name'] ?? `${textOf(metadata['generateName'])}${randomBytes(3).toString('hex').slice(0, 5)}`;
      if (typeof name !== 'string' || !/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name))
        return invalid('metadata.name: must be a lower-case DNS name');
      if (history.get(name) !== undefined)
        return problem(409, 'AlreadyExists', `certificatesigningrequests "${name}" already exists`);
      const spec = { ...objectOf(object['spec']), username: requester.username, groups: requester.groups };
      const wrong = specProblem(spec);
      if (wrong !== undefined) return invalid(wrong);
      const created = history.put({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: {
          name,
          uid: randomUUID(),
          creationTimestamp: metaTime(now()),
          ...pick(metadata, 'generateName', 'labels', 'annotations'),
        },
        spec,
        status: {},
      });
      return success(created);
    },

    get: (name) => found(history.get(name), name),

    update(name, subresource, object) {
      const old = found(history.get(name), name);
      if (!old.ok) return old;
      const updated = written(old.value, subresource, object, now());
      // A write that changes nothing causes no event and keeps the resourceVersion.
      if (!updated.ok || updated.value === old.value) return updated;
      return success(history.put(updated.value));
    },

    list: (after) =>
      history
        .names()
        .filter((name) => name > after)
        .toSorted()
        .map((name) => history.get(name) ?? {}),
    version: history.version,
    watch: history.watch,
  };
}

function found(object: JsonObject | undefined, name: string): Stored {
  return object === undefined
    ? problem(404, 'NotFound', `certificatesigningrequests.certificates.k8s.io "${name}" not found`)
    : success(object);
}
