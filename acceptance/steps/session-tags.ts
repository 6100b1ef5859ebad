import { callerRoleName } from '../../core/configuration/resolve/deployment.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { assume, roleArn } from '../world/session.ts';
import type { Step } from '../world/step.ts';

export const sessionTags: Step = {
  id: 'session-tags',
  title: 'Session tags, as EKS Pod Identity passes them',
  minute: 9,
  shows: 'a relay with sts:TagSession in its own policy gets a session of the caller role; what AWS does without',
  needs: ['deploy'],
  statements: () => [],
  async run(site) {
    const { plan } = site;
    const caller = roleArn(site, callerRoleName(plan.api));
    const tags = { 'eks-cluster-name': site.name, 'kubernetes-namespace': 'countersign-system' };
    const [relay, untagged] = [
      await assume(site, roleArn(site, plan.relay)),
      await assume(site, roleArn(site, plan.untagged)),
    ];
    await site.check('with sts:TagSession: a session with transitive tags', async () => {
      await assume(site, caller, { by: relay, tags });
      return 'permitted';
    });
    // In one account the trust policy may be enough; between accounts both sides have to permit.
    const without = await assume(site, caller, { by: untagged, tags, tries: 1 }).then(
      () => 'permitted',
      (error: unknown) => errorMessage(error),
    );
    site.seen('without sts:TagSession in its own policy, in one account', without.slice(0, 300));
    await site.check('without tags: the role that may not pass them', async () => {
      await assume(site, caller, { by: untagged });
      return 'permitted';
    });
  },
};
