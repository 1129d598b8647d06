import { isFault } from '../../zookeeper/client/zookeeper-error.js';
import { dubboFacts, dubboText, isDubboFolder } from '../../zookeeper/services/instance/dubbo-instance.js';
import { mixedPayloads } from '../../zookeeper/services/instance/mixed-payloads.js';
import { checkServiceName } from '../../zookeeper/services/instance/new-instance.js';
import { instanceState, jsonPayload } from '../../zookeeper/services/instance/payload-codec.js';
import { instanceUrl } from '../../zookeeper/services/instance/uri-spec.js';
import { type InstanceWithStat, ServiceDirectory } from '../../zookeeper/services/service-directory.js';
import { servicePath } from '../../zookeeper/services/service-path.js';
import { answer, complain, withRows } from '../kit/answer.js';
import { onZooKeeper, type ZooKeeperCall } from '../kit/call.js';
import { ExitCode } from '../kit/exit-codes.js';
import type { Cell, Column } from '../kit/terminal/table.js';
import { formatAddress, pluralize, someOf } from '../kit/terminal/text.js';

/** A service, and who offers it. */
interface ServiceReport {
  readonly name: string;
  readonly instances: readonly InstanceWithStat<unknown>[];
}

const COLUMNS: readonly Column[] = [
  ['SERVICE', 8],
  ['ID', 12],
  ['ADDRESS', 12],
  ['TLS', 'right'],
  'TYPE',
  'STATE',
  ['SESSION', 12],
  'CHANGED',
  ['PAYLOAD', 12],
];

/**
 * `nodelease discovery services [NAME]`: shows the services that Curator knows of, and their instances. It
 * leaves out what it cannot decode, with a warning. Services whose instances it may not list make it fail in
 * the end.
 *
 * @throws {ConfigError} when no service could have the name
 */
export async function listServices(call: ZooKeeperCall, name?: string): Promise<number> {
  const { settings, io } = call;
  if (name !== undefined) checkServiceName(name, 'name');
  const { basePath, connect } = settings.zookeeper;
  return onZooKeeper(call, async (zookeeper, signal) => {
    const interfaces = new Set<string>();
    const onUnreadable = (path: string, problem: string) => {
      const [id, service = ''] = path.split('/').reverse();
      if (isDubboFolder(id)) interfaces.add(service);
      else complain(io, `warning: ${path} ${problem}: left out`);
    };
    const directory = new ServiceDirectory<unknown>({
      zookeeper,
      clock: io.clock,
      basePath,
      payload: jsonPayload,
      onUnreadable,
    });
    const services: ServiceReport[] = [];
    const denied: string[] = [];
    for (const each of name === undefined ? await directory.names({ signal }) : [name]) {
      try {
        services.push({ name: each, instances: await directory.instancesWithStat(each, { signal }) });
      } catch (error) {
        if (!isFault(error, 'no-auth')) throw error;
        denied.push(servicePath(basePath, each));
      }
    }
    const where = `${basePath} of ${connect.text}`;
    const total = services.reduce((sum, { instances }) => sum + instances.length, 0);
    const none = `No instance is registered ${name === undefined ? '' : `as ${name} `}at ${where}.`;
    const lines = [`${pluralize(services.length, 'service')}, ${pluralize(total, 'instance')} at ${where}`];
    if (interfaces.size > 0) lines.push(`With folders of Dubbo interfaces: ${someOf([...interfaces])}`);
    answer(call, {
      report: { zookeeper: connect.text, path: basePath, services: services.map(reportOf) },
      empty: denied.length === 0 && total === 0 ? none : undefined,
      tables: withRows([COLUMNS, services.flatMap(rowsOf)]),
      lines: services.length === 0 ? [] : lines,
    });
    for (const { name: each, instances } of services) {
      const problem = mixedPayloads(instances.map(({ instance }) => instance));
      if (problem) complain(io, `warning: ${servicePath(basePath, each)} ${problem}`);
    }
    for (const path of denied) complain(io, `${path}: no-auth: these credentials may not list the instances`);
    return denied.length === 0 ? ExitCode.ok : ExitCode.storeUnusable;
  });
}

function reportOf({ name, instances }: ServiceReport) {
  const detailed = ({ instance, stat: { owner, modifiedAt } }: InstanceWithStat<unknown>) => {
    const session = owner === undefined ? 'none' : 'alive';
    const changedAt = new Date(modifiedAt).toISOString();
    const facts = { url: instanceUrl(instance), dubbo: dubboFacts(instance) };
    return { ...instance, ...facts, changedAt, session, sessionId: owner ?? null };
  };
  return { name, instances: instances.map(detailed) };
}

function rowsOf({ name, instances }: ServiceReport): Cell[][] {
  if (instances.length === 0) return [[name, ['-', 'dim']]];
  return instances.map(({ instance, stat: { owner, modifiedAt } }) => {
    const { id, address = null, port = null, sslPort, serviceType, payload } = instance;
    const state = instanceState(instance);
    return [
      name,
      id,
      formatAddress({ address, port }),
      `${sslPort ?? ''}`,
      [serviceType, 'dim'],
      [state, state === 'enabled' ? 'green' : 'yellow'],
      owner === undefined ? ['none', 'dim'] : `alive ${owner}`,
      [`${new Date(modifiedAt).toISOString().slice(0, -5)}Z`, 'dim'],
      dubboText(instance) ?? (payload === undefined ? '' : JSON.stringify(payload)),
    ];
  });
}
