/** An API server with objects by path. */
import { answerWith } from '../../../harness/kubernetes/answering-server.ts';

export interface FakeApi {
  readonly url: string;
  readonly kubeconfig: string;
  readonly objects: Map<string, object>;
  readonly forbidden: RegExp[];
  readonly asked: string[];
}

export async function startFakeApi(): Promise<FakeApi> {
  const fake: Omit<FakeApi, 'kubeconfig' | 'url'> = { objects: new Map(), forbidden: [], asked: [] };
  const { kubeconfig, url } = await answerWith(({ method, path }) => {
    fake.asked.push(`${method} ${path}`);
    if (fake.forbidden.some((each) => each.test(path))) return [403, { kind: 'Status', message: `no ${path}` }];
    const found = fake.objects.get(path);
    return found === undefined ? [404, { kind: 'Status', message: `no ${path}` }] : [200, found];
  });
  return { ...fake, kubeconfig, url };
}

export const paths = {
  authentication: '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication',
  root: '/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt',
  info: '/api/v1/namespaces/kube-public/configmaps/cluster-info',
  pods: '/api/v1/namespaces/kube-system/pods',
  bundles: '/apis/certificates.k8s.io/v1beta1/clustertrustbundles',
  deployments: '/apis/apps/v1/deployments',
  kept: '/api/v1/namespaces/web/configmaps/serving-ca',
  validating: '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
  mutating: '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  services: '/apis/apiregistration.k8s.io/v1/apiservices',
  definitions: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
} as const;
