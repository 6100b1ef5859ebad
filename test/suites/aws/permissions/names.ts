/** The permissions of any cluster by the names of tables.ts, which are those of cluster `demo` with the CA `ca`. */
import { permissionTables } from './tables.ts';
import { permissionsOf } from './statements.ts';

/** `cluster`: what the names of its resources are made of. Constructs may be called `State` and `Signer`, as in examples/cdk. */
export function permissionsNamed(
  template: Parameters<typeof permissionsOf>[0] | object,
  { name, cas }: { readonly name: string; readonly cas: readonly string[] },
): readonly string[] {
  return permissionsOf(template as Parameters<typeof permissionsOf>[0]).map((permission) => {
    let text = permission
      .replaceAll(/\b(State|Signer)(?=[A-Z])/g, '')
      .replaceAll('Signer', '')
      .replace(`v1clusters${name}`, 'v1clustersdemo')
      .replace(`countersign${name}`, 'countersigndemo');
    for (const ca of cas)
      text = text
        .replace(new RegExp(`^CaKey${ca}\\b`), 'CaKeyca')
        .replace(new RegExp(`(trustbundle|crl)${ca}(?=(Iam|Jwt)Api)`), '$1ca');
    return text
      .replace(/^(CallerRole - \S+) (?:role\/\S+|:root)$/, '$1 role/relay-demo')
      .replace(/^((?:CaKeyca|ChallengeKey) Administration \S+) (?:role|user)\/\S+$/, '$1 role/administrator')
      .replace(/^(CaKeyca Deletion \S+) (?:role|user)\/\S+$/, '$1 user/custodian');
  });
}

const known = new Set(
  permissionTables.flatMap(({ exercised, reviewed }) => [...Object.keys(exercised), ...Object.keys(reviewed)]),
);

export function inTables(permission: string): boolean {
  return known.has(permission);
}
