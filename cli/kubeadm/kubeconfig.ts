/** Reads and changes the login in a kubeconfig: the user and the cluster of its current context. Everything else stays as it is. */
import { parseDocument } from 'yaml';
import type { Document } from 'yaml';
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';

export interface Login {
  /** PEM. Undefined if the kubeconfig does not hold them itself. */
  readonly key: string | undefined;
  readonly certificate: string | undefined;
  /** Whether the kubeconfig says which CA the server's certificate is of. */
  readonly hasAuthority: boolean;
}

export interface NewLogin {
  /** PEM. */
  readonly certificate: string;
  /** PEM; without it the key stays. */
  readonly key?: string;
  /** PEM: the CA of the server, if the kubeconfig names none. */
  readonly authority: string;
}

export function readLogin(path: string, text: string): Login {
  const { user, cluster } = entries(path, parse(path, text));
  const { 'client-key-data': key, 'client-certificate-data': certificate } = user.fields;
  const { 'certificate-authority-data': data, 'certificate-authority': file } = cluster.fields;
  return {
    key: decoded(key),
    certificate: decoded(certificate),
    hasAuthority: [data, file].some((each) => typeof each === 'string' && each !== ''),
  };
}

export function withLogin(path: string, text: string, { certificate, key, authority }: NewLogin): string {
  const document = parse(path, text);
  const { user, cluster } = entries(path, document);
  document.setIn([...user.path, 'client-certificate-data'], base64(certificate));
  document.deleteIn([...user.path, 'client-certificate']);
  if (key !== undefined) {
    document.setIn([...user.path, 'client-key-data'], base64(key));
    document.deleteIn([...user.path, 'client-key']);
  }
  if (!readLogin(path, text).hasAuthority)
    document.setIn([...cluster.path, 'certificate-authority-data'], base64(authority));
  return document.toString({ lineWidth: 0 });
}

interface Entry {
  readonly path: readonly (string | number)[];
  readonly fields: JsonObject;
}

function entries(path: string, document: Document): { readonly user: Entry; readonly cluster: Entry } {
  const content = objectOf(document.toJS({ maxAliasCount: 0 }));
  const entry = (list: 'contexts' | 'users' | 'clusters', field: string, name: unknown): Entry => {
    const all = Array.isArray(content[list]) ? (content[list] as readonly unknown[]).map(objectOf) : [];
    const index = all.findIndex((each) => each['name'] === name);
    const found = all[index];
    if (found === undefined || typeof name !== 'string') throw unusable(path, `its ${list} have no ${String(name)}`);
    return { path: [list, index, field], fields: objectOf(found[field]) };
  };
  const context = entry('contexts', 'context', content['current-context']);
  return {
    user: entry('users', 'user', context.fields['user']),
    cluster: entry('clusters', 'cluster', context.fields['cluster']),
  };
}

function parse(path: string, text: string): Document {
  const document = parseDocument(text, { version: '1.2', prettyErrors: false });
  // The message would quote the text, which has a private key.
  if (document.errors.length > 0) throw unusable(path, 'it is not YAML');
  return document;
}

function unusable(path: string, why: string): CommandFailure {
  return new CommandFailure(exitCodes.configuration, `${path} cannot be used as a kubeconfig: ${why}`);
}

function decoded(data: unknown): string | undefined {
  return typeof data === 'string' && data !== '' ? Buffer.from(data, 'base64').toString('utf8') : undefined;
}

function base64(pem: string): string {
  return Buffer.from(pem).toString('base64');
}
