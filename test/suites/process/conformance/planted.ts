/**
 * Endpoints with one fault each: the real handler with one behaviour changed. For each, exactly the checks that must fail:
 * a check that fails because of another fault would point to the wrong place.
 */
import { createHash, randomUUID, X509Certificate } from 'node:crypto';
import type { HttpEvent } from '../../../../adapters/lambda/http.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { errorAnswer } from '../../../../adapters/lambda/answers.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { encodeSubject, newKey } from '../../../harness/x509/requests.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import {
  answering,
  causesOf,
  certifying,
  hearing,
  issuing,
  issuingDespite,
  isSign,
  jsonOf,
  outcomeOf,
  postedIn,
  refusingAsInvalid,
  refusingWith,
  restated,
  signingInstead,
  withExtension,
  withJson,
  withoutExtension,
} from './broken-handler.ts';
import type { Posted, Wrap } from './broken-handler.ts';

export interface Plant {
  /** As in the title of a bug report. */
  readonly fault: string;
  readonly caughtBy: readonly string[];
  readonly wrap: Wrap;
}

const basicConstraints = '551d13';
const caTrue = der.sequence(der.oid('2.5.29.19'), der.boolean(true), der.octets(der.sequence(der.boolean(true))));
const anyUsage = der.sequence(der.oid('2.5.29.37'), der.octets(der.sequence(der.oid('2.5.29.37.0'))));
const anotherKey = newKey('P-256');

const anotherCa = toPem(
  'CERTIFICATE',
  new X509Certificate((await createTestAuthority('another ca')).certificatePem).raw,
);

function withBundles(change: (signers: Record<string, string>) => Record<string, string>): Wrap {
  return answering((answer, { rawPath }) => {
    if (!rawPath.endsWith('/trust-bundles')) return answer;
    const json = jsonOf(answer) as { signers: Record<string, string> };
    return withJson(answer, { ...json, signers: change(json.signers) });
  });
}

// ── The faults ──────────────────────────────────────────────────────────────────────────────────────────────────────

export const plants: readonly Plant[] = [
  {
    fault: 'answers 200 without the certificate',
    caughtBy: ['issued'],
    wrap: issuing((object) => ({ ...object, status: { ...object.status, certificate: undefined } })),
  },
  {
    fault: 'keeps no record: a repeat gets another certificate',
    caughtBy: ['repeat', 'repeat-metadata', 'concurrent', 'uid-reuse'],
    wrap: hearing((posted) => ({ ...posted, metadata: { ...posted.metadata, uid: randomUUID() } })),
  },
  {
    fault: 'answers a refusal with 200',
    caughtBy: ['uid-reuse', 'refused', 'outcome-header'],
    wrap: answering((answer) => (answer.statusCode === 422 ? { ...answer, statusCode: 200 } : answer)),
  },
  {
    fault: 'answers v1 to v1beta1',
    caughtBy: ['v1beta1'],
    wrap: issuing((object) => ({ ...object, apiVersion: 'certificates.k8s.io/v1' })),
  },
  {
    fault: 'replaces status instead of adding status.certificate',
    caughtBy: ['unchanged'],
    wrap: issuing((object) => ({ ...object, status: { certificate: object.status['certificate'] } })),
  },
  {
    fault: 'drops labels',
    caughtBy: ['unchanged'],
    wrap: issuing((object) => ({ ...object, metadata: { ...object.metadata, labels: undefined } })),
  },
  {
    fault: 'certifies another key',
    caughtBy: ['key'],
    wrap: certifying(() => ({ spki: anotherKey.spki })),
  },
  {
    fault: 'sends Retry-After when busy',
    caughtBy: ['no-retry-after'],
    wrap: answering((answer) =>
      answer.statusCode === 503 ? { ...answer, headers: { ...answer.headers, 'retry-after': '1' } } : answer,
    ),
  },
  {
    fault: 'returns the certificate of a UID to each request with that UID',
    caughtBy: ['uid-reuse'],
    wrap: ({ handler }) => {
      const first = new Map<string, unknown>();
      return async (event) => {
        const posted = isSign(event) ? postedIn(event) : undefined;
        const answer = await handler(event);
        if (posted === undefined) return answer;
        const { uid } = posted.metadata;
        const certificate = first.get(uid);
        if (outcomeOf(answer) === 'issued') first.set(uid, (jsonOf(answer) as unknown as Posted).status['certificate']);
        else if (certificate !== undefined && answer.statusCode === 422) {
          const object = { ...posted, status: { ...posted.status, certificate } };
          return {
            ...answer,
            statusCode: 200,
            headers: { ...answer.headers, 'x-countersign-outcome': 'issued' },
            body: JSON.stringify(object),
          };
        }
        return answer;
      };
    },
  },
  {
    fault: 'shows the first certificate in the refusal of a reused UID',
    caughtBy: ['uid-reuse', 'nothing-disclosed'],
    wrap: ({ handler }) => {
      const first = new Map<string, unknown>();
      return async (event) => {
        const posted = isSign(event) ? postedIn(event) : undefined;
        const answer = await handler(event);
        if (posted === undefined) return answer;
        if (outcomeOf(answer) === 'issued')
          first.set(posted.metadata.uid, (jsonOf(answer) as unknown as Posted).status['certificate']);
        else if (causesOf(answer).some(({ reason }) => reason === 'UidReused'))
          return withJson(answer, { ...jsonOf(answer), issuedBefore: first.get(posted.metadata.uid) });
        return answer;
      };
    },
  },
  {
    fault: 'copies the CA bit out of the request',
    caughtBy: ['extensions-dropped'],
    wrap: certifying(({ extensions }, posted) => {
      const pem = Buffer.from(String(posted?.spec['request']), 'base64').toString();
      const request = Buffer.from(pem.replaceAll(/-----[^-]+-----|\n/g, ''), 'base64');
      const asked = request.includes(der.sequence(der.boolean(true), der.integer(3)));
      return asked ? { extensions: withExtension(extensions, basicConstraints, caTrue) } : {};
    }),
  },
  {
    fault: 'leaves basicConstraints out',
    caughtBy: ['not-ca', 'extensions-dropped'],
    wrap: certifying(({ extensions }) => ({ extensions: withoutExtension(extensions, basicConstraints) })),
  },
  {
    fault: 'certifies for any extended usage',
    caughtBy: ['usages'],
    wrap: certifying(({ extensions }) => ({ extensions: withExtension(extensions, '551d25', anyUsage) })),
  },
  {
    fault: 'issues for another subject',
    caughtBy: ['names'],
    wrap: certifying(() => ({ subject: encodeSubject({ O: 'system:nodes', CN: 'system:node:another' }) })),
  },
  {
    fault: 'loses subjectAltNames',
    caughtBy: ['names'],
    wrap: certifying(({ extensions }) => ({ extensions: withoutExtension(extensions, '551d11') })),
  },
  {
    fault: 'gives all certificates serial number 1',
    caughtBy: ['serial'],
    wrap: certifying(() => ({ serial: Buffer.from([1]) })),
  },
  {
    fault: 'dates certificates back to 2020',
    caughtBy: ['validity', 'lifetime'],
    wrap: certifying(() => ({ notBefore: der.tlv(0x17, Buffer.from('200101000000Z')) })),
  },
  {
    fault: 'ignores expirationSeconds',
    caughtBy: ['lifetime', 'uid-reuse'],
    wrap: hearing((posted) => ({ ...posted, spec: { ...posted.spec, expirationSeconds: undefined } })),
  },
  {
    fault: 'puts DER into status.certificate',
    caughtBy: ['pem'],
    wrap: issuing((object) => {
      const pem = Buffer.from(String(object.status['certificate']), 'base64');
      const certificate = new X509Certificate(pem).raw.toString('base64');
      return { ...object, status: { ...object.status, certificate } };
    }),
  },
  {
    fault: 'includes the root in the chain',
    caughtBy: ['chain'],
    wrap: (site) =>
      issuing((object) => {
        const leaf = Buffer.from(String(object.status['certificate']), 'base64').toString();
        const chain = `${leaf}${toPem('CERTIFICATE', site.authority.certificate)}`;
        return { ...object, status: { ...object.status, certificate: Buffer.from(chain).toString('base64') } };
      })(site),
  },
  {
    fault: 'treats a changed resourceVersion as another request',
    caughtBy: ['repeat-metadata'],
    wrap: hearing((posted) => {
      const { uid, resourceVersion } = posted.metadata;
      const hash = createHash('sha256')
        .update(`${uid} ${String(resourceVersion)}`)
        .digest('hex');
      return { ...posted, metadata: { ...posted.metadata, uid: hash.slice(0, 32) } };
    }),
  },
  {
    fault: 'issues two certificates for two simultaneous deliveries',
    caughtBy: ['concurrent'],
    wrap: (site) => {
      const underWay = new Map<string, number>();
      return async (event) => {
        const uid = (isSign(event) ? postedIn(event)?.metadata.uid : undefined) ?? '';
        const others = underWay.get(uid) ?? 0;
        underWay.set(uid, others + 1);
        try {
          if (uid === '' || others === 0) return await site.handler(event);
          return await hearing((posted) => ({ ...posted, metadata: { ...posted.metadata, uid: randomUUID() } }))(site)(
            event,
          );
        } finally {
          underWay.set(uid, (underWay.get(uid) ?? 1) - 1);
        }
      };
    },
  },
  {
    fault: 'signs a request that is not approved',
    caughtBy: ['ignored'],
    wrap: hearing((posted) =>
      (posted.status['conditions'] as readonly unknown[]).length > 0
        ? posted
        : { ...posted, status: { conditions: [{ type: 'Approved', status: 'True' }] } },
    ),
  },
  {
    fault: 'refuses a request that is not yet approved',
    caughtBy: ['ignored'],
    wrap: answering((answer) => (answer.statusCode === 409 ? restated(answer, 422, 'refused') : answer)),
  },
  {
    fault: 'stops at the first violation',
    caughtBy: ['refused-all'],
    wrap: refusingWith((causes) => causes.slice(0, 1)),
  },
  {
    fault: 'puts its own text before the in-tree text',
    caughtBy: ['refused-text'],
    wrap: refusingWith(([first, ...more]) =>
      first === undefined ? more : [{ ...first, message: `refused: ${first.message}` }, ...more],
    ),
  },
  {
    fault: 'refuses with an unknown reason',
    caughtBy: ['refused-reason'],
    wrap: refusingWith((causes) => [...causes, { reason: 'BadMood', message: 'not today' }]),
  },
  {
    fault: 'answers 400 to an unreadable request',
    caughtBy: ['refused-unreadable', 'refused-lookalike'],
    wrap: refusingAsInvalid('RequestMalformed'),
  },
  {
    fault: 'answers 400 to an invalid self-signature',
    caughtBy: ['refused-possession'],
    wrap: refusingAsInvalid('SignatureInvalid'),
  },
  {
    fault: 'answers 400 to a weak key',
    caughtBy: ['refused-key'],
    wrap: refusingAsInvalid('KeyNotPermitted'),
  },
  {
    fault: 'answers 400 to a reserved name',
    caughtBy: ['refused-name', 'refused-reserved', 'refused-serving-name'],
    wrap: refusingAsInvalid('NameReserved'),
  },
  {
    fault: 'reserves system: names and no others',
    caughtBy: ['refused-reserved'],
    wrap: issuingDespite(/"(kubeadm:|front-proxy-|kube-apiserver-|etcd-)/i),
  },
  {
    fault: 'compares reserved names case-sensitively',
    caughtBy: ['refused-reserved'],
    wrap: issuingDespite(/"ETCD-/),
  },
  {
    fault: 'issues names with a blank at an end',
    caughtBy: ['refused-lookalike'],
    wrap: issuingDespite(/a blank at an end/),
  },
  {
    fault: 'issues names with hidden characters',
    caughtBy: ['refused-lookalike'],
    wrap: issuingDespite(/a hidden character/),
  },
  {
    fault: 'issues empty common names and organizations',
    caughtBy: ['refused-lookalike'],
    wrap: issuingDespite(/an empty (CN|O)$/),
  },
  {
    fault: 'accepts any text as a DNS name',
    caughtBy: ['refused-lookalike'],
    wrap: issuingDespite(/a DNS name/),
  },
  {
    fault: 'issues serving certificates for names that no node may have',
    caughtBy: ['refused-serving-name'],
    wrap: signingInstead(/no kubelet serves under it/, { dns: ['b.invalid'] }),
  },
  {
    fault: 'issues serving certificates for DNS names that are not host names',
    caughtBy: ['refused-serving-name'],
    wrap: signingInstead(/is a wildcard|reads as an address|is not a host name/, { dns: ['b.invalid'] }),
  },
  {
    fault: 'checks only the first 256 names',
    caughtBy: ['refused-many-names'],
    wrap: signingInstead(/257 subjectAltNames/, {}),
  },
  {
    fault: 'adds usages to a request without usages',
    caughtBy: ['refused-usage'],
    wrap: hearing((posted) =>
      (posted.spec['usages'] as readonly unknown[]).length > 0
        ? posted
        : { ...posted, spec: { ...posted.spec, usages: ['digital signature', 'client auth'] } },
    ),
  },
  {
    fault: 'crashes on a body that is not JSON',
    caughtBy: ['invalid', 'outcome-header', 'error-shape'],
    wrap:
      ({ handler }) =>
      async (event) => {
        const body = Buffer.from(event.body ?? '', 'base64').toString();
        if (isSign(event) && event.requestContext.http.method === 'POST') JSON.parse(body);
        return handler(event);
      },
  },
  {
    fault: 'answers 400 to a request that is too large, so that clients repeat it for ever',
    caughtBy: ['too-large', 'refused-many-names'],
    wrap: answering((answer) => (answer.statusCode === 413 ? restated(answer, 400, 'invalid') : answer)),
  },
  {
    fault: 'answers for unknown clusters',
    caughtBy: ['unknown-cluster'],
    wrap:
      ({ handler }) =>
      async (event) =>
        handler({ ...event, rawPath: event.rawPath.replace(/\/no-such-[^/]+/, '/demo') }),
  },
  {
    fault: 'answers any method',
    caughtBy: ['wrong-method'],
    wrap: ({ handler }) => {
      const http = (event: HttpEvent, method: string): HttpEvent => ({
        ...event,
        requestContext: { http: { ...event.requestContext.http, method } },
      });
      return async (event) => handler(http(event, isSign(event) ? 'POST' : 'GET'));
    },
  },
  {
    fault: 'treats the query as part of the path',
    caughtBy: ['timeout-query'],
    wrap: answering((answer, { rawQueryString }) =>
      rawQueryString === '' ? answer : errorAnswer(404, 'invalid', 'no such path'),
    ),
  },
  {
    fault: 'omits x-countersign-outcome when it ignores a request',
    caughtBy: ['outcome-header'],
    wrap: answering((answer) => {
      const { 'x-countersign-outcome': outcome, ...headers } = answer.headers;
      return outcome === 'ignored' ? { ...answer, headers } : answer;
    }),
  },
  {
    fault: 'has no error.message, so that the webhook client shows nothing',
    caughtBy: ['error-shape'],
    wrap: answering((answer) => {
      if (answer.statusCode === 200) return answer;
      return withJson(answer, { ...jsonOf(answer), error: undefined });
    }),
  },
  {
    fault: 'closes the connection after each answer',
    caughtBy: ['keep-alive'],
    wrap: answering((answer) => ({ ...answer, headers: { ...answer.headers, connection: 'close' } })),
  },
  {
    fault: 'has an empty trust bundle',
    caughtBy: ['trust-bundle'],
    wrap: answering((answer, { rawPath }) =>
      answer.statusCode === 200 && rawPath.endsWith('/trust-bundle') ? { ...answer, body: '' } : answer,
    ),
  },
  {
    fault: 'has another CA in its trust bundle than in /healthz and in its certificates',
    caughtBy: ['healthz'],
    wrap: answering((answer, { rawPath }) => {
      if (!rawPath.endsWith('/healthz')) return answer;
      const json = jsonOf(answer) as { cas: readonly object[] };
      return withJson(answer, { ...json, cas: json.cas.map((ca) => ({ ...ca, fingerprintSha256: '00'.repeat(32) })) });
    }),
  },
  {
    fault: 'returns the whole bundle for each CA’s name',
    caughtBy: ['trust-bundle-ca'],
    wrap:
      ({ handler }) =>
      async (event) =>
        handler({ ...event, rawPath: event.rawPath.replace(/\/trust-bundle\/.*/, '/trust-bundle') }),
  },
  {
    fault: 'does not say whom the verifiers of a signer trust',
    caughtBy: ['trust-bundles'],
    wrap: withBundles(() => ({})),
  },
  {
    fault: 'gives the verifiers of client certificates another CA too, below which others log in',
    caughtBy: ['trust-bundles'],
    wrap: withBundles((signers) =>
      Object.fromEntries(Object.entries(signers).map(([name, pem]) => [name, `${pem}${anotherCa}`])),
    ),
  },
];
