import {
  CreateRoleCommand,
  DeleteRoleCommand,
  DeleteRolePolicyCommand,
  PutRolePolicyCommand,
} from '@aws-sdk/client-iam';
import { noSuchEntity, undefinedIf } from '../../cli/aws/calls.ts';
import { callerRoleName } from '../../core/configuration/resolve/deployment.ts';
import { named } from '../world/names.ts';
import { assume, roleArn } from '../world/session.ts';
import type { Site, Step } from '../world/step.ts';

/** Trust policies name the relay's role, so it has to exist before the stacks. */
export const roles: Step = {
  id: 'roles',
  title: 'The roles of two relays',
  minute: 0,
  shows: 'roles that the trust policies of the stacks can name exist before the stacks',
  needs: [],
  statements: (place) => [
    {
      sid: 'RolesOfRelays',
      actions: ['iam:CreateRole', 'iam:PutRolePolicy', 'iam:DeleteRolePolicy', 'iam:DeleteRole'],
      resources: named('iam', place, 'role/'),
    },
    { sid: 'BecomeRelays', actions: ['sts:AssumeRole'], resources: named('iam', place, 'role/') },
  ],
  async run(site) {
    const { plan } = site;
    await site.check('a role that may assume the caller roles, with session tags', () =>
      createRole(site, plan.relay, ['sts:AssumeRole', 'sts:TagSession']),
    );
    await site.check('one that may not pass session tags', () => createRole(site, plan.untagged, ['sts:AssumeRole']));
    await site.check('IAM knows the new roles', async () => {
      for (const role of [plan.relay, plan.untagged]) await assume(site, roleArn(site, role));
      return 'both were assumed';
    });
  },
};

async function createRole(site: Site, name: string, actions: readonly string[]): Promise<string> {
  const { aws, undo, principal, plan } = site;
  const policy = (statement: object): string =>
    JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', ...statement }] });
  undo.register({
    what: `role ${name}`,
    command: `aws iam delete-role-policy --role-name ${name} --policy-name own; aws iam delete-role --role-name ${name}`,
    async undo() {
      const missing = undefinedIf(...noSuchEntity);
      await aws.iam.send(new DeleteRolePolicyCommand({ RoleName: name, PolicyName: 'own' })).catch(missing);
      await aws.iam.send(new DeleteRoleCommand({ RoleName: name })).catch(missing);
      return [];
    },
  });
  await aws.iam.send(
    new CreateRoleCommand({
      RoleName: name,
      Description: `Acceptance run ${site.name} of Countersign`,
      AssumeRolePolicyDocument: policy({ Action: 'sts:AssumeRole', Principal: { AWS: principal } }),
    }),
  );
  const callers = [plan.api, plan.url].map((cluster) => roleArn(site, callerRoleName(cluster)));
  await aws.iam.send(
    new PutRolePolicyCommand({
      RoleName: name,
      PolicyName: 'own',
      PolicyDocument: policy({ Action: actions, Resource: callers }),
    }),
  );
  return roleArn(site, name);
}
