/** A set-up that can work, for `countersign doctor`. */
import type { AccountView } from '../../../../cli/runtime/account-view.ts';
import type { Answers } from '../../../harness/kubernetes/answering-server.ts';
import { now } from '../run.ts';
import { account, region } from '../status/world.ts';

/** The calls that doctor makes; another one would be a TypeError. */
export function viewOf(change: Partial<AccountView> = {}): AccountView {
  const view: Partial<AccountView> = {
    region: async () => region,
    callerArn: async () => `arn:aws:sts::${account}:assumed-role/deployer/ada`,
    answeredAt: () => now,
    stack: async () => ({ status: 'UPDATE_COMPLETE', tags: new Map([['countersign:cluster', 'prod']]) }),
    close: () => undefined,
    ...change,
  };
  return view as AccountView;
}

export const apiServer: Answers = {
  'GET /version': [200, { major: '1', minor: '36', gitVersion: 'v1.36.3' }],
  'POST /apis/authentication.k8s.io/v1/selfsubjectreviews': [
    201,
    { metadata: { creationTimestamp: new Date(now).toISOString() }, status: { userInfo: { username: 'ada' } } },
  ],
  'POST /apis/authorization.k8s.io/v1/subjectaccessreviews': [201, { status: { allowed: false } }],
  'GET /apis/rbac.authorization.k8s.io/v1/clusterrolebindings': [200, { items: [] }],
  'GET /api/v1/namespaces/kube-system/pods': [200, { items: [] }],
};
