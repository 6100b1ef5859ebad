import { readBundledAccess } from '../../core/configuration/bundled-configuration.ts';
import type { BundledAccess } from '../../core/configuration/bundled-configuration.ts';

/**
 * JSON text of this cluster's access rules (`bundleAccess`), inserted by the bundler. It is not an environment variable,
 * since a principal with lambda:UpdateFunctionConfiguration must not be able to authorize callers.
 */
declare const __COUNTERSIGN_CLUSTER__: string | undefined;

/** The bundled access rules; undefined if they are unusable. */
export function bundledAccess(): BundledAccess | undefined {
  return usableAccess(typeof __COUNTERSIGN_CLUSTER__ === 'undefined' ? undefined : __COUNTERSIGN_CLUSTER__);
}

/** Synth checked the text. It is checked again, so that an empty list or a missing member authorizes no caller. */
export function usableAccess(text: string | undefined): BundledAccess | undefined {
  if (text === undefined) return undefined;
  let access: BundledAccess | null;
  try {
    access = readBundledAccess(text) as BundledAccess | null;
  } catch {
    return undefined;
  }
  const { cluster, jwt } = access ?? {};
  if (access === null || !isText(cluster) || jwt === undefined || jwt === null) return undefined;
  const { issuer, audience, subjects } = jwt;
  if (!isText(issuer) || !issuer.startsWith('https://') || !isText(audience)) return undefined;
  if (!Array.isArray(subjects) || subjects.length === 0 || !subjects.every(isText)) return undefined;
  return access;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
