import { readBundledAccess } from '../../core/configuration/bundled-configuration.ts';
import type { BundledAccess } from '../../core/configuration/bundled-configuration.ts';

/**
 * JSON text of this cluster's access rules (`bundleAccess`), put in by the bundler. Policy is not read from the
 * environment: whoever may change that must not be able to let somebody in.
 */
declare const __COUNTERSIGN_CLUSTER__: string | undefined;

/** What the bundle was made with, or nothing if that cannot be used. */
export function bundledAccess(): BundledAccess | undefined {
  return usableAccess(typeof __COUNTERSIGN_CLUSTER__ === 'undefined' ? undefined : __COUNTERSIGN_CLUSTER__);
}

/**
 * The text comes from the same release, checked at synth. It is looked at once more, since an empty list or an
 * `undefined` here must mean "nobody", whatever the checks that follow make of it.
 */
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
