import { addCommand, type CommandGroup, type Flags, withZooKeeper } from '../commands/command-group.js';
import { addSettings, settingsOf } from '../commands/command-settings.js';
import type { DiscoveryServeOptions } from './discovery-serve-command.js';

/** Adds `discovery` and the commands below it. */
export function addDiscoveryCommands(parent: CommandGroup): void {
  const { io, end } = parent;
  const discovery = addCommand(parent, 'discovery', 'look into the discovery tree in ZooKeeper');
  const group: CommandGroup = { parent: discovery, io, end };

  const list = addCommand(group, 'ls', 'show the announced nodes, services and endpoints')
    .argument('[path]', 'only what stands there, such as /discovery/nodes')
    .option('--json', 'one JSON object, on one line')
    .action(async (path: string | undefined, { json = false }: Flags<'json'>) => {
      const settings = withZooKeeper(settingsOf(list, io));
      const { listDiscoveryCommand } = await import('./discovery-command.js');
      end(await listDiscoveryCommand(path, { json }, settings, io));
    });
  addSettings(list);

  const watch = addCommand(group, 'watch', 'show what is announced, and then every change, until interrupted')
    .option('--json', 'one JSON object for each change, on one line')
    .action(async ({ json = false }: Flags<'json'>) => {
      const settings = withZooKeeper(settingsOf(watch, io));
      const { watchDiscoveryCommand } = await import('./discovery-watch.js');
      end(await watchDiscoveryCommand({ json }, settings, io));
    });
  addSettings(watch);

  const services = addCommand(group, 'services', 'show the services that Curator and Spring Cloud know of, and their instances')
    .argument('[name]', 'only this service')
    .option('--json', 'one JSON object, on one line')
    .action(async (name: string | undefined, { json = false }: Flags<'json'>) => {
      const settings = withZooKeeper(settingsOf(services, io));
      const { listServicesCommand } = await import('./discovery-services-command.js');
      end(await listServicesCommand(name, { json }, settings, io));
    });
  addSettings(services);

  const resolve = addCommand(group, 'resolve', 'print the URL of one instance of a service, as the strategy picks it')
    .argument('<name>', 'the service, or NAME[:KEY] of an endpoint')
    .option('--json', 'the whole instance, as one JSON object on one line')
    .option('--kind <kind>', 'what the name stands for: service, or endpoint for one that nodelease run --endpoint announces', 'service')
    .option('--strategy <name>', 'round-robin, random, sticky, weighted or least-recently-failed', 'random')
    .action(async (name: string, { json = false, kind, strategy }: Flags<'json'> & { kind: string; strategy: string }) => {
      const settings = withZooKeeper(settingsOf(resolve, io));
      const { resolveDiscoveryCommand } = await import('./discovery-resolve-command.js');
      end(await resolveDiscoveryCommand({ name, kind, strategy, json }, settings, io));
    });
  addSettings(resolve);

  const serve = addCommand(group, 'serve', 'answer over HTTP who offers which service, for programs without ZooKeeper')
    .option('--read-only', 'refuse to register and unregister instances')
    .option(
      '--bearer-token-file <path>',
      'who registers and unregisters must send the token in this file; needed beyond loopback, or --read-only',
    )
    .option('--static-timeout <time>', 'unregister STATIC instances that nobody has written for so long, 1s to 720h (default: never)')
    .option(
      '--strategy <name>',
      'how /v1/anyservice chooses: round-robin, random, sticky, weighted or least-recently-failed (default: round-robin)',
    )
    .action(async (options: DiscoveryServeOptions) => {
      const settings = withZooKeeper(settingsOf(serve, io));
      const { discoveryServeCommand } = await import('./discovery-serve-command.js');
      end(await discoveryServeCommand(options, settings, io));
    });
  addSettings(serve);
}
