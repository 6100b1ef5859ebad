import { DescribeKeyCommand } from '@aws-sdk/client-kms';
import { stackNames } from '../../core/configuration/resolve/deployment.ts';
import { ask, questionFor } from '../../test/conformance/questions.ts';
import { removeResource } from '../resources/retained.ts';
import { checkDrift, resourcesOf, updateStack } from '../resources/stacks.ts';
import { publishAssets, synthesise } from '../resources/synthesis.ts';
import type { Assembly } from '../resources/synthesis.ts';
import { certificateIn, signed } from '../world/call.ts';
import { named } from '../world/names.ts';
import type { Site, Step } from '../world/step.ts';

export const changes: Step = {
  id: 'changes',
  title: 'A second deployment, and a CA that comes and goes',
  minute: 22,
  shows:
    'the same file again changes nothing; nothing has drifted; a CA is added, signs, and is taken out in the documented order, and its key stays',
  needs: ['deploy'],
  statements: (place) => {
    const { partition, account, region } = place;
    const stacks = named('cloudformation', place, 'stack/').map((arn) => `${arn}/*`);
    const own = (service: string, before: string) => named(service, place, before).slice(1);
    return [
      {
        sid: 'ChangeStacks',
        actions: [
          'cloudformation:UpdateStack',
          'cloudformation:DetectStackDrift',
          'cloudformation:DetectStackResourceDrift',
          'cloudformation:DescribeStackResourceDrifts',
        ],
        resources: stacks,
      },
      {
        sid: 'WaitForDrift',
        actions: [
          'cloudformation:DescribeStackDriftDetectionStatus',
          'cloudformation:BatchDescribeTypeConfigurations',
          // Drift detection reads each resource with the rights of the login.
          'logs:Describe*',
          'logs:List*',
          'logs:GetDataProtectionPolicy',
          'cloudwatch:List*',
        ],
        resources: ['*'],
      },
      {
        sid: 'ReadWhatMayDrift',
        actions: [
          'iam:Get*',
          'iam:List*',
          'lambda:Get*',
          'lambda:List*',
          'dynamodb:Describe*',
          'dynamodb:List*',
          'dynamodb:GetResourcePolicy',
          'events:Describe*',
          'events:List*',
          'kms:Describe*',
          'kms:Get*',
          'kms:List*',
          'apigateway:GET',
        ],
        resources: [
          ...own('iam', 'role/'),
          ...own('iam', 'policy/'),
          ...own('lambda', 'function:'),
          ...own('dynamodb', 'table/'),
          ...own('events', 'rule/'),
          `arn:${partition}:kms:${region}:${account}:key/*`,
          `arn:${partition}:apigateway:${region}::/apis/*`,
        ],
      },
    ];
  },
  async run(site) {
    const { plan } = site;
    const assembly = synthesise(site, plan.configuration);
    await site.check('a second deployment changes nothing', async () => {
      const changed = await deployAgain(site, assembly);
      if (changed.length > 0) throw new Error(`changed: ${changed.join(', ')}`);
      return `${assembly.stacks.length} stacks`;
    });
    for (const { name } of assembly.stacks)
      await site.check(`stack ${name} has not drifted`, () => checkDrift(site, name), 'drift');

    const { state, service } = stackNames(plan.api);
    const added = synthesise(site, plan.withNextCa);
    let key: string | undefined;
    const findKey = async (): Promise<string | undefined> => {
      const all = await resourcesOf(site, state);
      return [...all].find(([id]) => id.startsWith('CaKeynext'))?.[1];
    };
    site.undo.register({
      what: `the key of the CA that ${state} had for a while`,
      get command() {
        return key === undefined
          ? `aws cloudformation describe-stack-resources --stack-name ${state} --query "StackResources[?starts_with(LogicalResourceId, 'CaKeynext')].PhysicalResourceId"`
          : `aws kms schedule-key-deletion --key-id ${key} --pending-window-in-days 7`;
      },
      async undo() {
        key ??= await findKey();
        return key === undefined ? [] : removeResource(site, 'AWS::KMS::Key', key);
      },
    });
    await site.check('a CA is added: first the stack of the keys, then the functions', async () => {
      await publishAssets(site, added);
      const changed = await deployAgain(site, added, [state, service]);
      key = await findKey();
      if (changed.length !== 2) throw new Error(`changed: ${changed.join(', ')}`);
      if (key === undefined) throw new Error(`${state} has no key for it`);
      return changed.join(', ');
    });
    await site.check(
      'it signs for the signer that names it',
      async () => {
        const question = questionFor('kubernetes.io/kube-apiserver-client', { username: site.name, groups: [] });
        const { issuer } = certificateIn(await signed(site, plan.api, ask(question)));
        if (!issuer.includes(`${plan.api} next`)) throw new Error(issuer);
        return issuer;
      },
      'http-api',
    );
    // In the other order CloudFormation refuses: the functions still import the key's ARN.
    await site.check('it is taken out: first the functions, then the stack of the keys', async () => {
      const changed = await deployAgain(site, assembly, [service, state]);
      if (changed.length !== 2) throw new Error(`changed: ${changed.join(', ')}`);
      return changed.join(', ');
    });
    await site.check('its key is still there', async () => {
      const { KeyMetadata: metadata } = await site.aws.kms.send(new DescribeKeyCommand({ KeyId: key }));
      if (metadata?.KeyState !== 'Enabled') throw new Error(metadata?.KeyState ?? 'KMS does not say');
      return metadata.KeyState;
    });
  },
};

/** The stacks that changed. */
async function deployAgain(
  site: Site,
  { stacks }: Assembly,
  names: readonly string[] = stacks.map(({ name }) => name),
): Promise<readonly string[]> {
  const changed: string[] = [];
  for (const name of names) {
    const stack = stacks.find((each) => each.name === name);
    if (stack === undefined) throw new Error(`there is no stack ${name}`);
    if ((await updateStack(site, stack)) === 'changed') changed.push(name);
  }
  return changed;
}
