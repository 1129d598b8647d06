import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { IPodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import type { IContainer } from 'kubernetes-models/v1/Container';
import { describe, expect, it } from 'vitest';
import { environmentName, readSettings, type Settings } from '../../src/app/settings/settings.js';
import { SETTINGS } from '../../src/app/settings/settings-table.js';
import { leaseTiming } from '../../src/core/lease/model/lease-timing.js';
import { WIND_UP_MS } from '../lib/stop-timing.js';
import { type Manifest, parseManifests, readManifests, schemaFault, typeFaults } from './manifests.js';

const files = await readManifests();
const all = [...files.values()].flat();
const find = <T>(file: string, kind: string) =>
  files.get(file)?.find((manifest) => manifest.kind === kind) as T;

/**
 * Of a file: its deployment, the container of nodelease in it, and that container's settings as nodelease
 * reads them.
 */
function deployed(file: string) {
  const deployment = find<IDeployment>(file, 'Deployment');
  const pod = deployment.spec?.template.spec;
  const containers: readonly IContainer[] = [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])];
  const lease = containers.find(({ command }) => command?.[0] === 'nodelease') as IContainer;
  const env = Object.fromEntries((lease.env ?? []).map(({ name, value }) => [name, value]));
  const settings: Settings = readSettings({ flags: {}, env, hostname: 'host' });
  return { deployment, pod, containers, lease, env, settings };
}

describe('the manifests', () => {
  it.each([...files.keys()])('of %s are what their schemas ask for', (file) => {
    for (const manifest of files.get(file) ?? [])
      expect(schemaFault(manifest), manifest.metadata.name).toBeUndefined();
  });

  it('have no field that their kinds do not know', async () => {
    expect(all.map(({ kind }) => kind).sort()).toEqual([
      'Deployment',
      'Deployment',
      'PodDisruptionBudget',
      'PodDisruptionBudget',
      'PodMonitor',
      'ServiceAccount',
      'ServiceAccount',
    ]);
    expect(await typeFaults(all)).toEqual([]);
  });

  it('would be refused with a misspelt field at any depth, a wrong type, and a missing field', async () => {
    const changed = (file: string, from: string, to: string) => {
      const text = JSON.stringify(files.get(file));
      expect(text).toContain(from);
      return JSON.parse(text.replace(from, to)) as Manifest[];
    };
    for (const [from, to] of [
      ['"terminationGracePeriodSeconds"', '"terminationGraceSeconds"'],
      ['"readOnlyRootFilesystem"', '"readonlyRootFilesystem"'],
      ['"failureThreshold"', '"failureTreshold"'],
    ] as const) {
      expect((await typeFaults(changed('run.yaml', from, to))).join('\n'), to).toContain(to.slice(1, -1));
    }
    expect(await typeFaults(changed('monitoring.yaml', '"credentials"', '"credential"'))).not.toEqual([]);
    expect(
      changed('run.yaml', '"replicas":3', '"replicas":"3"').some((manifest) =>
        schemaFault(manifest)?.includes('replicas'),
      ),
    ).toBe(true);
    expect(
      changed('run.yaml', '"selector":{', '"selectors":{').some((manifest) =>
        schemaFault(manifest)?.includes('selector'),
      ),
    ).toBe(true);
    expect(() => parseManifests('kind: A\nkind: B\n')).toThrow('unique');
  });
});

describe.each(['run.yaml', 'sidecar.yaml'])('the pods of %s', (file) => {
  const { deployment, pod, containers, lease, env, settings } = deployed(file);

  it('have settings that nodelease knows and takes', () => {
    expect(
      Object.keys(env).filter((name) => !SETTINGS.some((setting) => environmentName(setting.name) === name)),
    ).toEqual([]);
    expect(settings.store).toMatch(/^s3:/);
    // A copy that keeps the store by mistake is refused.
    expect(settings.clusterName).toBe(deployment.metadata?.name);
  });

  it('get no variables that begin as settings do from a Service by the name of nodelease', () => {
    expect(pod?.enableServiceLinks).toBe(false);
  });

  it('never run in greater number than there are node ids, also while they are replaced', () => {
    const surge = deployment.spec?.strategy?.rollingUpdate?.maxSurge;
    expect(typeof surge).toBe('number');
    expect((deployment.spec?.replicas ?? 0) + Number(surge)).toBeLessThanOrEqual(settings.nodes ?? 0);
  });

  it('have longer to stop than a lease lasts without renewal, and nodelease takes to tidy up', () => {
    expect((pod?.terminationGracePeriodSeconds ?? 0) * 1_000).toBeGreaterThanOrEqual(
      (settings.durationMs ?? 0) + WIND_UP_MS,
    );
  });

  it('are sent work only while the lease is valid, and are not restarted for waiting for one', () => {
    expect(lease.readinessProbe).toMatchObject({
      httpGet: { path: '/readyz', port: 'nodelease' },
      failureThreshold: 1,
    });
    expect(lease.livenessProbe).toMatchObject({ httpGet: { path: '/livez', port: 'nodelease' } });
    expect(lease.ports).toEqual([{ name: 'nodelease', containerPort: settings.http?.port }]);
    expect(settings.http?.host).toBe('0.0.0.0');
  });

  it('ask for a token where they listen beyond loopback, from a secret that is mounted there', () => {
    const [mount] = lease.volumeMounts ?? [];
    expect(env.NODELEASE_BEARER_TOKEN_FILE).toBe(`${mount?.mountPath}/token`);
    expect(pod?.volumes?.find(({ name }) => name === mount?.name)?.secret).toMatchObject({
      secretName: 'nodelease',
      defaultMode: 0o440,
      items: [{ key: 'token', path: 'token' }],
    });
  });

  it('run neither as root nor with any power, on files that they cannot change', () => {
    expect(pod?.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    for (const { securityContext } of containers) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
    expect(pod?.automountServiceAccountToken).toBe(false);
  });

  it('are never throttled, and have bounds to their memory', () => {
    for (const { resources } of containers) {
      expect(resources?.limits).toEqual({ memory: expect.any(String) });
      expect(resources?.requests).toEqual({ cpu: expect.any(String), memory: expect.any(String) });
    }
  });

  it('are found by their deployment and by their disruption budget, and have their service account', () => {
    const labels = deployment.spec?.template.metadata?.labels;
    expect(deployment.spec?.selector.matchLabels).toEqual(labels);
    expect(find<IPodDisruptionBudget>(file, 'PodDisruptionBudget').spec).toEqual({
      maxUnavailable: 1,
      selector: { matchLabels: labels },
    });
    expect(pod?.serviceAccountName).toBe(find<Manifest>(file, 'ServiceAccount').metadata.name);
  });
});

describe('the pod monitor', () => {
  const { spec } = find<IPodMonitor>('monitoring.yaml', 'PodMonitor');
  const labels = ['run.yaml', 'sidecar.yaml'].map(
    (file) => deployed(file).deployment.spec?.template.metadata?.labels ?? {},
  );

  it('finds the pods of both services, and gives each its own job, by which alerts and dashboard distinguish clusters', () => {
    const jobs = labels.map((label) => label[spec.jobLabel ?? '']);
    expect(jobs).toEqual([expect.any(String), expect.any(String)]);
    expect(new Set(jobs).size).toBe(2);
    const [expression, ...others] = spec.selector.matchExpressions ?? [];
    expect(others).toEqual([]);
    expect(expression?.operator).toBe('In');
    expect(labels.map((label) => label[expression?.key ?? ''])).toEqual(expression?.values);
  });
});

describe('the sidecar', () => {
  const { pod, lease, settings } = deployed('sidecar.yaml');
  const [work] = pod?.containers ?? [];

  it('is a native one, that the work waits for and that ends after it', () => {
    expect(pod?.initContainers).toEqual([lease]);
    expect(lease.restartPolicy).toBe('Always');
    expect(lease.startupProbe).toMatchObject({ httpGet: { path: '/readyz' } });
  });

  it('takes the work with it when it comes back with another node id', () => {
    const file = lease.args?.[2];
    expect(lease.args).toEqual(['serve', '--wait-file', file]);
    expect(work?.command?.[2]).toContain(`cp ${file} /tmp/node.json`);
    expect(work?.livenessProbe).toMatchObject({
      exec: { command: ['cmp', '-s', file, '/tmp/node.json'] },
      periodSeconds: 1,
      failureThreshold: 1,
    });
  });

  it('ends the work in the time that a holder has that cannot renew, and not in that of a regular end', () => {
    const { periodSeconds = 10, terminationGracePeriodSeconds } = work?.livenessProbe ?? {};
    const endMs = (periodSeconds + Number(terminationGracePeriodSeconds)) * 1_000;
    expect(endMs).toBeLessThanOrEqual(leaseTiming(settings.durationMs ?? 0).stopMarginMs);
  });

  it('keeps no id that has been retired: its work has ended without the wait file, and gets another id', () => {
    expect(settings.onRetire).toBe('stop');
  });

  it('can give its work NODE_ID, as the page says', async () => {
    const guide = await readFile(new URL('../../docs/guides/ecs.md', import.meta.url), 'utf8');
    const [, snippet = ''] = /put this in place of `exec "\$@"`:\n\n```sh\n(.*)\n```/.exec(guide) ?? [];
    const manifest = await readFile(new URL('../kubernetes/sidecar.yaml', import.meta.url), 'utf8');
    const [deployment] = parseManifests(manifest.replace('exec "$@"', () => snippet)).filter(
      ({ kind }) => kind === 'Deployment',
    ) as readonly IDeployment[];
    const folder = await mkdtemp(join(tmpdir(), 'nodelease-sidecar-'));
    try {
      const facts = { state: 'held', nodeId: 13, version: 3, taskId: 'web', idWidth: 8 };
      await writeFile(join(folder, 'node.json'), JSON.stringify(facts));
      const [shell = '', ...args] = deployment?.spec?.template.spec?.containers?.[0]?.command ?? [];
      const here = args.map((arg) =>
        arg
          .replace('cp /run/nodelease/node.json', `cp ${folder}/node.json`)
          .replaceAll('/tmp/node.json', `${folder}/copy.json`),
      );
      const { stdout } = await promisify(execFile)(shell, [...here, 'sh', '-c', 'echo "node $NODE_ID"']);
      expect(stdout).toBe('node 13\n');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
