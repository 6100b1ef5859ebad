/**
 * Bootstrap tokens (kubernetes.io, "Authenticating with Bootstrap Tokens"): a public id, a secret, and the Secret in kube-system
 * that holds both. Messages are the same as kubeadm's where it has one, because operators search for them. But our messages
 * never quote the token.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Instant } from '../ports/instant.ts';
import { printable, quoted } from '../outcome/printable-text.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { objectOf } from '../encoding/json-object.ts';
import type { JsonObject } from '../encoding/json-object.ts';

export interface BootstrapToken {
  /** Public: it names the Secret, the user `system:bootstrap:<id>` and the signature in cluster-info. */
  readonly id: string;
  readonly secret: string;
}

export const bootstrapTokenForm = String.raw`\A([a-z0-9]{6})\.([a-z0-9]{16})\z`;
export const bootstrapTokenIdForm = String.raw`\A([a-z0-9]{6})\z`;
export const tokenSecretType = 'bootstrap.kubernetes.io/token';
/** The group in kubeadm's ClusterRoleBindings. */
export const defaultTokenGroup = 'system:bootstrappers:kubeadm:default-node-token';
export const tokenUsages = ['signing', 'authentication'] as const;

/** The object for which the token was created and on which its lifetime depends (Cluster API's proposal, "Changes to token rotation"). */
export interface TokenOwner {
  readonly kind: 'machine' | 'pool';
  readonly namespace: string;
  readonly name: string;
}

export interface TokenRecord {
  readonly token: BootstrapToken;
  readonly description: string;
  /** Absent if the token never expires. */
  readonly expires?: Instant;
  readonly usages: readonly string[];
  /** Without `system:bootstrappers`, which every token has. */
  readonly groups: readonly string[];
  readonly owner?: TokenOwner;
}

/** The owner, on the Secret: its kind as a label, to select by; its name as an annotation, because a label may be too short. */
export const ownerLabel = 'countersign.dev/token-for';
const ownerNamespaceAnnotation = 'countersign.dev/token-for-namespace';
const ownerNameAnnotation = 'countersign.dev/token-for-name';

export function parseBootstrapToken(text: string): Result<BootstrapToken, string> {
  const [, id, secret] = /^([a-z0-9]{6})\.([a-z0-9]{16})$/.exec(text) ?? [];
  if (id === undefined || secret === undefined)
    return failure(`the bootstrap token was not of the form "${bootstrapTokenForm}"`);
  return success({ id, secret });
}

export function isTokenId(text: string): boolean {
  return /^[a-z0-9]{6}$/.test(text);
}

export function tokenText({ id, secret }: BootstrapToken): string {
  return `${id}.${secret}`;
}

export function tokenSecretName(id: string): string {
  return `bootstrap-token-${id}`;
}

/** About 31 bits of id and 83 of secret, as in kubeadm. */
export function generateBootstrapToken(randomBytes: (count: number) => Uint8Array): BootstrapToken {
  const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz';
  const characters: string[] = [];
  while (characters.length < 22)
    for (const byte of randomBytes(32)) {
      // 252 is 7 times 36: with the bytes 252 to 255 the first four characters would be more likely than the others.
      const character = byte < 252 ? alphabet[byte % 36] : undefined;
      if (character !== undefined && characters.length < 22) characters.push(character);
    }
  const text = characters.join('');
  return { id: text.slice(0, 6), secret: text.slice(6) };
}

export function usageProblem(usages: readonly string[]): string | undefined {
  const unknown = usages.filter((usage) => !(tokenUsages as readonly string[]).includes(usage));
  return unknown.length === 0
    ? undefined
    : `invalid bootstrap token usage string: ${unknown.map(printable).join(',')}, valid usage options: ${tokenUsages.join(',')}`;
}

export function groupProblem(groups: readonly string[]): string | undefined {
  const bad = groups.find((group) => !/^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/.test(group));
  return bad === undefined
    ? undefined
    : `bootstrap group ${quoted(bad)} is invalid (must match \\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\\z)`;
}

/** The Secret that the API server, the bootstrap signer and the token cleaner read. */
export function secretOfToken({ token, description, expires, usages, groups, owner }: TokenRecord): JsonObject {
  const data: Record<string, string> = {
    'token-id': token.id,
    'token-secret': token.secret,
    ...(description === '' ? {} : { description }),
    ...(expires === undefined ? {} : { expiration: rfc3339(expires) }),
    ...Object.fromEntries(usages.map((usage) => [`usage-bootstrap-${usage}`, 'true'])),
    ...(groups.length === 0 ? {} : { 'auth-extra-groups': groups.join(',') }),
  };
  const owned =
    owner === undefined
      ? {}
      : {
          labels: { [ownerLabel]: owner.kind },
          annotations: { [ownerNamespaceAnnotation]: owner.namespace, [ownerNameAnnotation]: owner.name },
        };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: tokenSecretName(token.id), namespace: 'kube-system', ...owned },
    type: tokenSecretType,
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')]),
    ),
  };
}

/** Reads the Secret as kubeadm and the API server do. A Secret that one of them would refuse is a problem. */
export function tokenOfSecret(object: object): Result<TokenRecord, string> {
  const secret = objectOf(object);
  const metadata = objectOf(secret['metadata']);
  const name = textOr(metadata['name']);
  const encoded = Object.entries(objectOf(secret['data']));
  const data = new Map(encoded.map(([key, value]) => [key, Buffer.from(textOr(value), 'base64').toString('utf8')]));
  const id = data.get('token-id') ?? '';
  if (secret['type'] !== tokenSecretType) return failure(`${name} is no Secret of type ${tokenSecretType}`);
  if (id === '') return failure(`bootstrap Token Secret has no token-id data: ${name}`);
  if (name !== tokenSecretName(id))
    return failure(`bootstrap token name is not of the form 'bootstrap-token-(token-id)'. Actual: ${quoted(name)}`);
  const token = parseBootstrapToken(`${id}.${data.get('token-secret') ?? ''}`);
  if (!token.ok) return failure(`${name}: ${token.problem}`);
  const expiration = data.get('expiration') ?? '';
  const expires = expiration === '' ? undefined : Date.parse(expiration);
  if (expires !== undefined && Number.isNaN(expires))
    return failure(`can't parse expiration time of bootstrap token ${quoted(name)}`);
  const owner = ownerOf(metadata);
  return success({
    token: token.value,
    description: data.get('description') ?? '',
    ...(expires === undefined ? {} : { expires }),
    usages: [...data]
      .flatMap(([key, value]) => (key.startsWith('usage-bootstrap-') && value === 'true' ? [key.slice(16)] : []))
      .toSorted(),
    groups: (data.get('auth-extra-groups') ?? '').split(',').filter((group) => group !== ''),
    ...(owner === undefined ? {} : { owner }),
  });
}

function ownerOf(metadata: JsonObject): TokenOwner | undefined {
  const kind = objectOf(metadata['labels'])[ownerLabel];
  const annotations = objectOf(metadata['annotations']);
  const [namespace, name] = [annotations[ownerNamespaceAnnotation], annotations[ownerNameAnnotation]].map(textOr);
  if ((kind !== 'machine' && kind !== 'pool') || !namespace || !name) return undefined;
  return { kind, namespace, name };
}

/**
 * The detached JWS under `jws-kubeconfig-<id>` (RFC 7515 appendix F): HS256, keyed by the token's secret. The header is
 * generated here and compared, never parsed, so an attacker cannot choose the algorithm with it.
 */
export function detachedSignature(content: string, { id, secret }: BootstrapToken): string {
  const header = Buffer.from(JSON.stringify({ alg: 'HS256', kid: id })).toString('base64url');
  const payload = Buffer.from(content, 'utf8').toString('base64url');
  const signature = createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url');
  return `${header}..${signature}`;
}

/** Compares in constant time: otherwise an attacker could measure the time and find a valid signature byte by byte. */
export function isSignedBy(token: BootstrapToken, content: string, signature: string): boolean {
  const expected = Buffer.from(detachedSignature(content, token));
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** In whole seconds, as kubeadm writes times. */
export function rfc3339(instant: Instant): string {
  return new Date(instant).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

function textOr(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
