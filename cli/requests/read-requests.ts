/** Requests as the API server has them. The typed client would drop fields that it does not know. */
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { allPages, failIfRefused } from '../cluster/object-answers.ts';
import { requestView } from './request-view.ts';
import type { RequestView } from './request-view.ts';

const resource = { group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' } as const;

export async function listRequests({ custom }: Pick<ClusterConnection, 'custom'>): Promise<readonly RequestView[]> {
  interface Listed {
    readonly items: readonly object[];
    readonly metadata?: { readonly continue?: string };
  }
  const page = async (from: { readonly limit: number; readonly _continue?: string }) => {
    const { items, metadata = {} } = (await custom.listClusterCustomObject({ ...resource, ...from })) as Listed;
    // A list names version and kind once, for all its items.
    const whole = items.map((item) => ({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      ...item,
    }));
    return { items: whole, metadata: metadata.continue ? { _continue: metadata.continue } : {} };
  };
  const objects = await allPages(page, 'the list of requests', {
    Forbidden: 'it needs the verb list on certificatesigningrequests',
  });
  return objects.flatMap((object) => requestView(object) ?? []);
}

/** As the API server sends it. */
export function readRequest({ custom }: Pick<ClusterConnection, 'custom'>, name: string): Promise<unknown> {
  return failIfRefused<unknown>(custom.getClusterCustomObject({ ...resource, name }), name, {
    NotFound: 'countersign csr list shows what is there; requests are deleted an hour after they were answered',
    Forbidden: 'reading a request needs the verb get on certificatesigningrequests',
  });
}

export function viewOf(raw: unknown, name: string): RequestView {
  const view = requestView(raw);
  if (view === undefined) throw new CommandFailure(exitCodes.refused, `${name} is not a certificate signing request`);
  return view;
}
