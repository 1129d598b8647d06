import { checkServiceName } from '../../services/new-instance.js';
import { isInService, jsonPayload } from '../../services/payload-codec.js';
import { ServiceDirectory } from '../../services/service-directory.js';
import type { ServiceInstance } from '../../services/service-instance.js';
import { servicePath } from '../../services/service-path.js';
import { instanceUrl } from '../../services/uri-spec.js';
import { isFault } from '../../zookeeper/zookeeper-error.js';
import { ExitCode } from '../exit-codes.js';
import { onZooKeeper, type ZooKeeperCommandSettings } from '../kit/on-zookeeper.js';
import { complain, say, sayJson, sayLines } from '../kit/reported.js';
import type { Io, Screen } from '../terminal/io.js';
import { type Cell, type Column, renderTable } from '../terminal/table.js';
import { formatAddress, pluralize, printable } from '../terminal/text.js';

/** A service, and who offers it. */
interface ServiceReport {
  readonly name: string;
  readonly instances: readonly ServiceInstance[];
}

const COLUMNS: readonly Column[] = [
  { title: 'SERVICE', minWidth: 8 },
  { title: 'ID', minWidth: 12 },
  { title: 'ADDRESS', minWidth: 12 },
  { title: 'TLS', align: 'right' },
  { title: 'TYPE' },
  { title: 'STATE' },
  { title: 'PAYLOAD', minWidth: 12 },
];

/**
 * `nodelease discovery services [NAME]`: shows the services that Curator knows of, and their instances. It
 * leaves out what it cannot decode, with a warning. Services whose instances it may not list make it fail in
 * the end. Resolves to the exit code.
 *
 * @throws {ConfigError} when no service could have the name
 */
export async function listServicesCommand(
  name: string | undefined,
  { json }: { readonly json: boolean },
  settings: ZooKeeperCommandSettings,
  io: Io,
): Promise<number> {
  if (name !== undefined) checkServiceName(name, 'name');
  const { basePath, connect } = settings.zookeeper;
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    const onUnreadable = (path: string, problem: string) =>
      complain(io, `warning: ${path} ${problem}: left out`);
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
        services.push({ name: each, instances: await directory.instances(each, { signal }) });
      } catch (error) {
        if (!isFault(error, 'no-auth')) throw error;
        denied.push(servicePath(basePath, each));
      }
    }
    const where = `${basePath} of ${connect.text}`;
    if (json) sayJson(io, report(connect.text, basePath, services));
    else if (denied.length === 0 && services.every(({ instances }) => instances.length === 0)) {
      say(
        io,
        name === undefined
          ? `Nobody is registered at ${where}.`
          : `Nobody is registered as ${name} at ${where}.`,
      );
    } else if (services.length > 0) sayLines(io, tables(services, where, io.screen()));
    for (const path of denied) complain(io, `${path}: no-auth: these credentials may not list the instances`);
    return denied.length === 0 ? ExitCode.ok : ExitCode.storeUnusable;
  });
}

function report(zookeeper: string, path: string, services: readonly ServiceReport[]): unknown {
  const told = services.map(({ name, instances }) => ({
    name,
    instances: instances.map((instance) => ({ ...instance, url: instanceUrl(instance) })),
  }));
  return { zookeeper, path, services: told };
}

function tables(services: readonly ServiceReport[], where: string, screen: Screen | undefined): string[] {
  const rows = services.flatMap(({ name, instances }) =>
    instances.length === 0
      ? [[{ text: name }, { text: '-', color: 'dim' } as const]]
      : instances.map((instance) => row(name, instance)),
  );
  const total = services.reduce((sum, { instances }) => sum + instances.length, 0);
  return [
    ...renderTable(COLUMNS, rows, screen),
    '',
    printable(`${pluralize(services.length, 'service')}, ${pluralize(total, 'instance')} at ${where}`),
  ];
}

function row(name: string, instance: ServiceInstance): Cell[] {
  const { id, address, port, sslPort, serviceType, payload } = instance;
  return [
    { text: name },
    { text: id },
    { text: formatAddress({ address: address ?? null, port: port ?? null }) },
    { text: sslPort === undefined ? '' : String(sslPort) },
    { text: serviceType, color: 'dim' },
    stateOf(instance),
    { text: payload === undefined ? '' : JSON.stringify(payload) },
  ];
}

function stateOf(instance: ServiceInstance): Cell {
  if (!instance.enabled) return { text: 'disabled', color: 'yellow' };
  return isInService(instance)
    ? { text: 'enabled', color: 'green' }
    : { text: 'out of service', color: 'yellow' };
}
