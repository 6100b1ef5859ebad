/**
 * The block VM IDENTITY: which VM the requester claims to be. Nothing signs it, so each value is compared with what the operator
 * configured and with what Google answers about the VM.
 */
import { label, number, projectId as project } from '../google/place.ts';
import type { VmPlace } from '../google/place.ts';

export interface VmIdentity extends VmPlace {
  readonly name: string;
  /** `my-project`; Google calls it the project's id, and the block its name. */
  readonly projectId: string;
}

/**
 * The one text that gke-exec-auth-plugin writes (encoding/json of nodeidentity.Identity): these keys in this order, no blanks. JSON
 * readers disagree about repeated keys and about numbers of 64 bits, and such a text has neither.
 */
const written = new RegExp(
  `^\\{"zone":"(${label})","id":(${number}),"name":"(${label})","project_id":(${number}),"project_name":"(${project})"\\}$`,
);

export function readVmIdentity(bytes: Uint8Array): VmIdentity | undefined {
  const found = written.exec(Buffer.from(bytes).toString('latin1'));
  if (found === null) return undefined;
  const [, zone = '', instanceId = '', name = '', projectNumber = '', projectId = ''] = found;
  return { zone, instanceId, name, projectNumber, projectId };
}
