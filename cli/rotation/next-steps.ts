/** What an operator does next, by the phase of a rotation. */
import type { CaConfiguration } from '../../core/configuration/model/cluster.ts';
import { caConfiguration } from '../../core/configuration/parse.ts';
import { stackNames } from '../../core/configuration/resolve/deployment.ts';
import { kubeadmSignerName } from '../../core/policy/signer-names.ts';
import { lacksNew } from '../../core/rotation/phase.ts';
import type { Rotation } from '../../core/rotation/phase.ts';
import type { RotatingCa } from '../../core/rotation/deployment.ts';
import { durationText, formatOutput } from '../output/output.ts';
import { instantText } from '../output/tofu-text.ts';

export interface ReportContext {
  readonly cluster: string;
  /** Certificates that end later were not read. */
  readonly until: number;
  /** Its keys are files of this machine. */
  readonly embedded: boolean;
}

/** One step a line; a block of YAML has several. Nothing of it was done. */
export function nextSteps(rotation: Rotation, context: ReportContext): readonly string[] {
  const { phase, old, next } = rotation;
  const { cluster, embedded } = context;
  const show = embedded ? 'countersign ca show --data DIR' : `countersign ca show --cluster ${cluster}`;
  switch (phase) {
    case 'noSuccessor':
      return old.configuration === undefined ? [] : addSuccessor(old.configuration);
    case 'notInForce':
      return [
        ...(next?.fault === undefined ? [] : [next.fault]),
        next?.configuration?.kind === 'imported'
          ? `countersign ca csr and ca import --name ${next.name} (docs/ca/sources.md)`
          : 'Deploy. Then run this command again.',
      ];
    case 'trust':
      return [
        ...trustBoth(rotation),
        `${show} --name ${next?.name} -o pem prints the certificate to add.`,
        ...(next?.record?.chain.length === 0
          ? []
          : ['Consumers of serving certificates take its root instead (docs/ca/trust.md).']),
        onlyForClients(rotation),
      ];
    case 'switch':
      return switchSigning(rotation);
    case 'drain':
      return drain(rotation, context);
    case 'retire':
      return retire(rotation, context);
    case 'done':
      return [...byHand(rotation), ...removeKey(old, context)];
  }
}

function addSuccessor(ca: CaConfiguration): readonly string[] {
  const name = successorName(ca.name);
  const block = formatOutput('yaml', { cas: { [name]: successorOf(ca) } }, () => '').trimEnd();
  return [
    `Add a CA to countersign.yaml beside ${ca.name}, and deploy. Nothing signs with it yet:`,
    block,
    `${ca.name} itself is never changed: verifiers trust its certificate, and records and trust bundles name it.`,
    ...(ca.crlDistributionPoint === undefined
      ? []
      : [`Its crlDistributionPoint must be another URL than ${ca.crlDistributionPoint}: each CA has its own CRL.`]),
  ];
}

/** nodes → nodes-2 → nodes-3 */
function successorName(name: string): string {
  const [, base = name, number = '1'] = /^(.*?)-(\d{1,3})$/.exec(name) ?? [];
  return `${base.slice(0, 58)}-${Number(number) + 1}`;
}

/** As the schema writes it, without what is a default. */
function successorOf(ca: CaConfiguration): object {
  const { kind, keySpec, signatureAlgorithm, subject, pathLen } = ca;
  // An existing key that an operator imported stays with the old CA: KMS makes the new one.
  const made = kind === 'imported' && ca.keyMaterial === 'imported' ? 'selfSigned' : kind;
  const validity = ca.kind === 'imported' ? {} : { validity: durationText(ca.validitySeconds) };
  const usual = caConfiguration(ca.name, { keySpec, subject });
  const usualAlgorithm = usual.ok && usual.value.signatureAlgorithm === signatureAlgorithm;
  return {
    replaces: ca.name,
    ...(made === 'selfSigned' ? {} : { kind: made }),
    ...(ca.kind === 'issued' ? { issuedBy: ca.issuedBy } : {}),
    keySpec,
    ...(usualAlgorithm ? {} : { signatureAlgorithm }),
    subject: { ...subject, commonName: successorSubject(subject.commonName) },
    ...validity,
    ...(pathLen === 0 ? {} : { pathLen }),
  };
}

/** Another name, so that people and OpenSSL tell the two apart. */
function successorSubject(commonName: string): string {
  const [, base = commonName, number = '1'] = /^(.*?) (\d{1,3})$/.exec(commonName) ?? [];
  return `${base.slice(0, 60)} ${Number(number) + 1}`;
}

function trustBoth(rotation: Rotation): readonly string[] {
  const { consumers, next, old } = rotation;
  const lacking = consumers.filter(lacksNew);
  const steps = [
    ...(lacking.length === 0 ? [] : [`Let these trust ${next?.name} beside ${old.name}:`]),
    ...lacking.map(({ name, place, change }) => `- ${name} (${place}): ${change}`),
    ...byHand(rotation),
    ...notRead(rotation),
  ];
  if (steps.length > 0) return steps;
  return [`The cluster was not read: check yourself that it trusts ${next?.name} (docs/ca/rotation.md).`];
}

/** What the operator has to look at. */
function byHand({ consumers }: Rotation): readonly string[] {
  const hidden = consumers.filter(
    ({ needed, trusts, unread }) => needed && trusts === undefined && unread === undefined,
  );
  if (hidden.length === 0) return [];
  return [
    'Check by hand, since no object of the cluster shows it:',
    ...hidden.map(({ name, place, change }) => `- ${name} (${place}): ${change}`),
  ];
}

function notRead({ consumers }: Rotation): readonly string[] {
  return consumers.flatMap(({ name, place, unread }) =>
    unread === undefined ? [] : [`Not read, for want of a right: ${name} (${place}): ${unread}`],
  );
}

function onlyForClients({ profiles, next, old }: Rotation): string {
  const forClients = profiles.some(({ kind }) => kind !== 'kubelet-serving');
  return forClients
    ? 'An API server behind a load balancer is one of several: look at each (docs/ca/rotation.md).'
    : `${old.name} and ${next?.name} issue no client certificates: they do not belong into --client-ca-file.`;
}

function switchSigning({ profiles, issued, old, next }: Rotation): readonly string[] {
  const waiting = profiles.filter(({ ca }) => ca === old.name);
  return [
    ...(waiting.length === 0
      ? []
      : [`Give these profiles ca: ${next?.name}, and deploy. All at once, or one after another:`]),
    ...waiting.map(({ signerName }) => `- ${signerName}`),
    ...issued.map(
      (name) => `CA ${name} is issued by ${old.name}: rotate it first (countersign ca rotate --name ${name}).`,
    ),
    `The way back: ca: ${old.name}, and deploy.`,
  ];
}

function drain({ leaves, old, next }: Rotation, { cluster, embedded, until }: ReportContext): readonly string[] {
  const place = embedded ? '--data DIR' : `--cluster ${cluster}`;
  const renewed = !leaves.more && leaves.holders.every((holder) => holder.renewed);
  return [
    `Wait until ${leaves.last === undefined ? '-' : instantText(leaves.last)}, when the last certificate of ${old.name} ends. Until then keep it in countersign.yaml (its CRL and its place in the trust bundles depend on that) and in what the cluster trusts.`,
    'Kubelets renew by themselves after 70 to 90 % of a lifetime. Sooner: remove kubelet-server-current.pem of a serving certificate and restart the kubelet; for the client certificate let the node join again.',
    ...(leaves.signers.some(({ signerName }) => signerName === kubeadmSignerName)
      ? ['Control-plane machines: countersign kubeadm renew (docs/ca/kubeadm.md).']
      : []),
    `Or revoke what you will not wait for: countersign cert revoke --serial SERIAL --reason superseded --note ... ${place}. A revoked certificate does not count here.`,
    ...(renewed
      ? [
          `Each holder has a certificate of ${next?.name ?? 'another CA'} since. Kubelets use their newest: nothing breaks if ${old.name} is distrusted once each holder uses it.`,
        ]
      : []),
    `Certificates that end after ${instantText(until)} were not looked at: --days looks further.`,
  ];
}

function retire(rotation: Rotation, { cluster, embedded }: ReportContext): readonly string[] {
  const { consumers, old, next } = rotation;
  const keeping = consumers.filter(({ trusts }) => trusts?.keepsOld === true);
  return [
    ...(old.configuration === undefined
      ? []
      : [
          `Remove ${old.name} from countersign.yaml, with replaces: ${old.name} of ${next?.name}, and deploy${embedded ? '' : ` only the stack of the service: npm run cdk -- deploy ${stackNames(cluster).service} --exclusively`}.`,
          `The way back: add both again, and deploy.`,
        ]),
    ...(keeping.length === 0 ? [] : [`Take ${old.name} out of:`]),
    ...keeping.map(({ name, place, change }) => `- ${name} (${place}): ${change}`),
    ...byHand(rotation),
    ...notRead(rotation),
    'Then run this command again.',
  ];
}

function removeKey({ name, record }: RotatingCa, { cluster, embedded }: ReportContext): readonly string[] {
  if (embedded) return [`Its folder ${name} may be removed.`];
  return [
    `Deploy ${stackNames(cluster).state} if it still has the key. This is final: a CA ${name} would get another key.`,
    `Then the key may be scheduled for deletion: aws kms schedule-key-deletion --pending-window-in-days 30 --key-id ${record?.keyId ?? ''}`,
  ];
}
