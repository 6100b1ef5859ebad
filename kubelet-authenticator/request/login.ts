/**
 * The node's login to the API server: its certificate, or its bootstrap credentials while it has none. The bootstrap
 * credentials are in a file that the kubelet does not read.
 */
import { rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { X509Certificate } from 'node:crypto';
import { isObject, objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { codeOf } from '../files/cache.ts';
import type { Credential } from '../files/check-credential.ts';
import { readOwnFile, UnsafeFileError } from '../files/own-files.ts';

export interface Login {
  /** `node`: with the node's certificate, so the request is a renewal. */
  readonly as: 'node' | 'bootstrap';
  /** The user name at the API server, if it follows from the credentials. */
  readonly username: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly certificatePem?: string;
  readonly keyPem?: string;
}

export function nodeLogin(nodeName: string, { certificatePem, keyPem }: Credential): Login {
  return { as: 'node', username: `system:node:${nodeName}`, headers: {}, certificatePem, keyPem };
}

/** The operator must correct the configuration. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
}

/**
 * Reads JSON `{"token": …}`, or a kubeconfig with a token or a client certificate, such as kubeadm's bootstrap-kubelet.conf.
 * From a kubeconfig only the user is read: server and CA are settings. Throws LoginError.
 */
export async function bootstrapLogin(file: string): Promise<Login> {
  const text = read(file, 'the bootstrap credentials', joinAgain);
  const document = await parse(text);
  if (!isObject(document)) throw new LoginError(`${file} is neither JSON nor a kubeconfig`);
  const user = typeof document['token'] === 'string' ? document : userOf(document);
  if (!isObject(user)) throw new LoginError(`${file} has no token and no user in its current context`);

  const path = (key: string): string | undefined =>
    typeof user[key] === 'string' ? resolve(dirname(file), user[key]) : undefined;
  const data = (key: string): string | undefined => {
    const encoded = user[`${key}-data`];
    if (typeof encoded === 'string') return Buffer.from(encoded, 'base64').toString('utf8');
    const from = path(key);
    return from === undefined ? undefined : read(from, `the ${key}`);
  };
  const tokenFile = path('tokenFile');
  const token = tokenFile === undefined ? user['token'] : read(tokenFile, 'the token').trim();
  if (typeof token === 'string' && token !== '') {
    // The token becomes a header, so it must not contain a line break.
    if (!/^[\x21-\x7e]+$/.test(token)) throw new LoginError(`${file} contains a token with invalid characters`);
    const id = bootstrapTokenId(token);
    const username = id === undefined ? undefined : `system:bootstrap:${id}`;
    return { as: 'bootstrap', username, headers: { authorization: `Bearer ${token}` } };
  }
  const [certificatePem, keyPem] = [data('client-certificate'), data('client-key')];
  if (certificatePem === undefined || keyPem === undefined)
    throw new LoginError(`${file} holds neither a token nor a client certificate with its key`);
  return { as: 'bootstrap', username: commonName(certificatePem), headers: {}, certificatePem, keyPem };
}

/** The token of the first join is removed after the first certificate, so the node needs a new one. */
const joinAgain = '; kubelet-authenticator join with a new token writes it, and keeps the node’s key';

function read(file: string, what: string, ifAbsent = ''): string {
  try {
    return readOwnFile(file);
  } catch (error) {
    if (error instanceof UnsafeFileError) throw new LoginError(`${what}: ${error.message}`);
    const code = codeOf(error);
    throw new LoginError(`${what} cannot be read: ${file} (${code})${code === 'ENOENT' ? ifAbsent : ''}`);
  }
}

/**
 * Removes a bootstrap token that is not needed any more: a reader of it could request certificates for other machines.
 * Removes only a file in the form that `join` writes, since a kubeconfig may have other uses. Returns whether it removed the
 * file. Throws the file system's error.
 */
export function removeBootstrapToken(file: string): boolean {
  let fields: JsonObject;
  try {
    fields = objectOf(JSON.parse(readOwnFile(file)));
  } catch (error) {
    if (error instanceof SyntaxError || codeOf(error) === 'ENOENT') return false;
    throw error;
  }
  const { token, ...others } = fields;
  const isOurs = typeof token === 'string' && bootstrapTokenId(token) !== undefined && Object.keys(others).length === 0;
  if (isOurs) rmSync(file);
  return isOurs;
}

function bootstrapTokenId(token: string): string | undefined {
  return /^([a-z0-9]{6})\.[a-z0-9]{16}$/.exec(token)?.[1];
}

/** Parser messages are dropped, since they quote the text. */
async function parse(text: string): Promise<unknown> {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // It may be YAML. The YAML reader is loaded only in this case.
  }
  const { readBoundedDocument } = await import('../../core/encoding/bounded-document.ts');
  const document = readBoundedDocument(text);
  return document.ok ? document.value : undefined;
}

/** The user of the current context, or the only user in the file. */
function userOf(kubeconfig: JsonObject): unknown {
  const [contexts, users] = [objectsOf(kubeconfig['contexts']), objectsOf(kubeconfig['users'])];
  const current = contexts.find(({ name }) => name === kubeconfig['current-context']);
  const { user: wanted } = objectOf(current?.['context']);
  return (users.find(({ name }) => name === wanted) ?? (users.length === 1 ? users[0] : undefined))?.['user'];
}

function objectsOf(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function commonName(certificatePem: string): string | undefined {
  try {
    return /^CN=(.*)$/m.exec(new X509Certificate(certificatePem).subject)?.[1];
  } catch {
    return undefined;
  }
}
