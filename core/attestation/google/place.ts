/** Which VM: the numbers and names by which Google tells its VMs apart, and the identities on record that are made of them. */

export interface VmPlace {
  /** Decimal: an unsigned number of 64 bits, which a JavaScript number cannot hold. */
  readonly projectNumber: string;
  readonly zone: string;
  /** Decimal, like `projectNumber`. Google never gives it to another VM. */
  readonly instanceId: string;
}

/** https://cloud.google.com/compute/docs/naming-resources (RFC 1035) */
export const label = '[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?';
/** Old projects are in a domain: `example.com:my-project`. */
export const projectId = `(?:[a-z0-9.-]{1,63}:)?${label}`;
export const number = '[1-9][0-9]{0,19}';

type GoogleProvider = 'gce' | 'gce-vtpm';

/**
 * `gce#<project number>/<zone>/<instance id>`. Google gives none of the three numbers and names to another project, zone or VM,
 * while a project id in a domain and the name of a VM can be used again.
 */
export function identityOf(provider: GoogleProvider, { projectNumber, zone, instanceId }: VmPlace): string {
  return `${provider}#${projectNumber}/${zone}/${instanceId}`;
}

const identityText = new RegExp(`^([a-z-]+)#(${number})/(${label})/(${number})$`);

/** `undefined` for the identity of another provider. */
export function placeOf(provider: GoogleProvider, identity: string): VmPlace | undefined {
  const [, of, projectNumber = '', zone = '', instanceId = ''] = identityText.exec(identity) ?? [];
  return of === provider ? { projectNumber, zone, instanceId } : undefined;
}
