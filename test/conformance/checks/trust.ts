/** The CAs to trust, in the trust bundle and in the health answer. */
import type { X509Certificate } from 'node:crypto';
import { certificatesIn, record, statusAndMessage } from '../answers.ts';
import { at, unless } from '../check.ts';
import type { Check } from '../check.ts';
import type { Issuance } from '../world.ts';

const fingerprintOf = ({ fingerprint256 }: X509Certificate): string => fingerprint256.replaceAll(':', '').toLowerCase();

interface HealthCa {
  readonly name: string;
  readonly fingerprint: string;
  readonly notAfter: string;
}

function casIn(json: unknown): readonly HealthCa[] {
  const cas = record(json)['cas'];
  return Array.isArray(cas)
    ? cas.map((ca) => {
        const { name, fingerprintSha256, notAfter } = record(ca);
        return { name: String(name), fingerprint: String(fingerprintSha256).toLowerCase(), notAfter: String(notAfter) };
      })
    : [];
}

const isClient = ({ question }: Issuance): boolean => question.signerName.includes('kube-apiserver-client');

/** What is wrong with one bundle. */
function notAnchors(text: string): readonly string[] {
  if (!/^(-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n)+$/.test(text))
    return ['it is not a sequence of PEM CERTIFICATE blocks'];
  let certificates;
  try {
    certificates = certificatesIn(text);
  } catch {
    return ['a certificate in it cannot be parsed'];
  }
  const now = Date.now();
  const problems = certificates.flatMap((each) =>
    at(each.subject.replaceAll('\n', ', '), [
      ...unless(each.ca, 'is not a CA'),
      ...unless(each.validFromDate.getTime() <= now && now < each.validToDate.getTime(), 'is not valid now'),
    ]),
  );
  const different = new Set(certificates.map(fingerprintOf)).size;
  return [...problems, ...unless(different === certificates.length, 'it holds one certificate twice')];
}

export const trustChecks: readonly Check[] = [
  {
    id: 'trust-bundle',
    rule: 'GET …/trust-bundle is PEM of CA certificates, valid now, and nothing else',
    source: 'docs/signing-api.md; it is the content of kube-apiserver’s --client-ca-file',
    async run(world) {
      const answer = await world.get('/trust-bundle');
      if (answer.status === 404 && !(await world.issuances()).some(isClient))
        return { problems: [], note: 'no signer of clients of the API server' };
      if (answer.status !== 200) return { problems: [statusAndMessage(answer)] };
      const problems = notAnchors(answer.text);
      if (problems.length > 0) return { problems };
      const { length } = certificatesIn(answer.text);
      return { problems, note: `${length} CA certificate${length === 1 ? '' : 's'}` };
    },
  },
  {
    id: 'healthz',
    rule: 'GET …/healthz names this cluster and its CAs, those of the trust bundle among them: fingerprint and expiry',
    source: 'docs/signing-api.md',
    needs: ['trust-bundle'],
    async run(world) {
      const answer = await world.get('/healthz');
      if (answer.status !== 200) return { problems: [statusAndMessage(answer)] };
      const { json } = answer;
      const cluster = world.options.base.split('/').at(-1) ?? '';
      const shown = (all: readonly string[]): string => all.toSorted().join(', ');
      const reported = casIn(json).map(({ fingerprint, notAfter }) => `${fingerprint} until ${Date.parse(notAfter)}`);
      const { status, text } = await world.get('/trust-bundle');
      const held = (status === 200 ? certificatesIn(text) : []).map(
        (ca) => `${fingerprintOf(ca)} until ${ca.validToDate.getTime()}`,
      );
      return {
        problems: [
          ...unless(record(json)['cluster'] === cluster, `cluster is ${JSON.stringify(record(json)['cluster'])}`),
          ...unless(
            held.every((each) => reported.includes(each)),
            `it reports [${shown(reported)}], the bundle holds [${shown(held)}]`,
          ),
        ],
      };
    },
  },
  {
    id: 'trust-bundle-ca',
    rule: 'GET …/trust-bundle/{ca} is that CA alone; an unknown name is answered 404 (403 by API Gateway)',
    source: 'docs/signing-api.md; CAs of one cluster may be trusted by different parties',
    needs: ['healthz'],
    async run(world) {
      const cas = casIn((await world.get('/healthz')).json);
      const problems: string[] = [];
      for (const { name, fingerprint } of cas) {
        const { status, text } = await world.get(`/trust-bundle/${name}`);
        const found = status === 200 ? certificatesIn(text).map(fingerprintOf) : [];
        problems.push(
          ...at(name, unless(found.join() === fingerprint, `answered ${status} with ${found.length} certificates`)),
        );
      }
      const { status, byFrontDoor } = await world.deliver({
        path: '/trust-bundle/no-such-ca',
        frontDoorMayAnswer: true,
      });
      const right = status === 404 || (status === 403 && byFrontDoor);
      return {
        problems: [...problems, ...at('no-such-ca', unless(right, `answered ${status}`))],
        note: cas.map(({ name }) => name).join(', '),
      };
    },
  },
  {
    id: 'trust-bundles',
    rule: 'GET …/trust-bundles is JSON of this cluster: PEM of CA certificates for each signer; those of clients of the API server are in the trust bundle',
    source: 'docs/signing-api.md, docs/ca/trust.md; with a CA too many others can log in',
    needs: ['trust-bundle'],
    async run(world) {
      const clientBundle = await world.get('/trust-bundle');
      const clients = new Set(clientBundle.status === 200 ? certificatesIn(clientBundle.text).map(fingerprintOf) : []);
      const bundles = await world.bundles();
      const problems: string[] = [];
      for (const issuance of await world.issuances()) {
        const { signerName } = issuance.question;
        const pem = bundles.get(signerName) ?? '';
        const wrong = notAnchors(pem);
        const foreign =
          wrong.length > 0 || !isClient(issuance)
            ? []
            : certificatesIn(pem).filter((ca) => !clients.has(fingerprintOf(ca)));
        problems.push(
          ...at(signerName, [...wrong, ...unless(foreign.length === 0, 'the trust bundle lacks a CA of it')]),
        );
      }
      return { problems, note: [...bundles.keys()].join(', ') };
    },
  },
];
